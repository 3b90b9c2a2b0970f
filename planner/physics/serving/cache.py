"""The pool of an inference engine: what it gives to the cache beside weights, activations and the rest.

    pool = fraction x memory - weights - peak of the profile run - context - communicators      (vLLM)
    pool = fraction x (memory - context - communicators) - weights                             (SGLang)
    pool = fraction x (memory - weights - peak of the profile run - context - communicators)   (TensorRT-LLM)
    pool = memory - weights - compute buffer - context                                         (llama.cpp)

The peak of the profile run is the larger of a forward pass over as many tokens as a step may have, and the sampler over
as many sequences as may run, which copies logits several times; with it stands what expert layers work in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.catalog.architecture import Model, MoeMlp
from planner.catalog.engine import Engine, Release, StepLimits
from planner.layouts.table import Floats, Ints
from planner.physics.encoders import TowerWork
from planner.physics.serving.settings import USUAL, EngineSettings

ACTIVATION = 2
"""Bytes of an activation."""


@dataclass(frozen=True, slots=True)
class StepMost:
    """What a step may hold at most: one figure, or of several settings a row each."""

    tokens: Ints
    sequences: Ints


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """What an engine's memory depends on beside the layout. Sizes in bytes, of one GPU."""

    model: Model
    engine: Engine
    release: Release
    memory: float
    """What a program can allocate."""
    fraction: float | Floats
    """Of each row of what is asked, where they differ."""
    length: int = 0
    """Tokens of the longest sequence that is admitted."""
    architecture: str = ""
    """Of the GPU."""
    activation: float = 0.0
    """Bytes of an element of the copy of activations that quantized products read."""
    settings: Sequence[EngineSettings] = (USUAL,)
    """One; of several, answers have a row for each."""
    seen: tuple[TowerWork, ...] = ()
    """What encoders do for a request."""

    def limits(self, settings: EngineSettings) -> StepLimits:
        """Return tokens and sequences of a step: as asked, else by the size of the GPU."""
        usual = self.release.limits(self.memory, self.architecture)
        whole = self.length if self.length <= self.release.whole_to else 0
        return StepLimits(tokens=settings.tokens or max(usual.tokens, whole),
                          sequences=settings.sequences or usual.sequences)

    @property
    def step(self) -> StepMost:
        """The same by setting."""
        limits = [self.limits(settings) for settings in self.settings]
        tokens, sequences = (np.array([getattr(each, name) for each in limits]) for name in ("tokens", "sequences"))
        return StepMost(tokens, sequences) if len(limits) == 1 else StepMost(tokens[:, None], sequences[:, None])


def pool_bytes(serving: CacheFacts, weights: Floats, tp: Ints, pp: Ints, *, last: bool = False) -> Floats:
    """Return the bytes that the engine gives to the cache on a GPU of the first stage; below zero it cannot start.

    last: of the last stage, which samples, in place of the first. weights: bytes held there.
    """
    context, shared = serving.release.apart(serving.memory, serving.architecture)
    apart = context + np.where(tp > 1, shared, 0.0)
    free = serving.memory - apart
    if serving.engine.fraction_of == "what is free":
        left: Floats = serving.fraction * free - weights
        return left
    peak = activation_bytes(serving, tp, pp, last=last)
    match serving.engine.fraction_of:
        case "memory":
            pool: Floats = serving.fraction * serving.memory - weights - peak - apart
        case "what is left":
            pool = serving.fraction * (free - weights - peak)
        case _:
            pool = free - weights - peak
    return pool


def activation_bytes(serving: CacheFacts, tp: Ints, pp: Ints, *, last: bool = False) -> Floats:
    """Return the bytes of the widest moment of a step on a GPU of the first or last stage, for each row."""
    step = serving.step
    peak = _forward(serving, step, tp)
    if not last:
        peak = np.maximum(peak, sum((_encoding(step, part, tp) for part in serving.seen), np.zeros(len(tp))))
    # the sampler runs where the last layer is
    logits = serving.release.sampler_bytes * step.sequences * serving.model.vocab
    sampling: Floats = np.where((pp == 1) | last, np.maximum(peak, logits), peak)
    return sampling + _experts(serving, step, tp)


def _forward(serving: CacheFacts, step: StepMost, tp: Ints) -> Floats:
    """Return the widest moment of a forward pass: a layer's feed-forward between its two products."""
    widest, copied = np.zeros(len(tp)), np.zeros(len(tp))
    for block in serving.model.blocks:
        mlp = block.mlp
        if isinstance(mlp, MoeMlp):
            width, fan = mlp.shared_width, 2 if mlp.gated else 1
        else:
            width, fan = (mlp.ffn, 2 if mlp.kind == "gated" else 1) if mlp else (0, 1)
        widest = np.maximum(widest, (fan + 1) * width / tp)
        copied = np.maximum(copied, width / tp)
    total: Floats = step.tokens * (
        (widest + serving.release.hidden_copies * serving.model.hidden) * ACTIVATION + copied * serving.activation)
    return total


def _encoding(step: StepMost, part: TowerWork, tp: Ints) -> Floats:
    """Return the widest moment of an encoder over the images of a request, or of as many tokens as a step may have."""
    pictures = np.maximum(part.pictures, step.tokens * part.pictures / (part.memory or part.tokens))
    split = np.ones(len(tp)) if part.tower.whole else tp
    width = max(kind.attention_width + kind.fan * kind.ffn for kind, _ in part.shape.kinds)
    peak: Floats = ACTIVATION * pictures * part.positions * (2 * part.shape.hidden + width / split)
    return peak


def _experts(serving: CacheFacts, step: StepMost, tp: Ints) -> Floats:
    """Return what routed experts work in: inputs or the first product of every token and expert, and the second."""
    most = np.zeros(len(tp))
    for block in serving.model.blocks:
        mlp = block.mlp
        if isinstance(mlp, MoeMlp):
            fan = 2 if mlp.gated else 1
            wide = np.maximum(fan * mlp.ffn / tp, serving.model.hidden) + mlp.ffn / tp
            most = np.maximum(most, step.tokens * mlp.experts_per_token * wide * ACTIVATION)
    return most
