"""The key-value cache of an inference engine: bytes of a token, and what fits beside weights and activations.

    pool = fraction x memory - weights - peak of the profile run - context - communicators      (vLLM)
    pool = fraction x (memory - context - communicators) - weights                             (SGLang)

The peak of the profile run is the larger of a forward pass over as many tokens as a step may have, and the sampler over
as many sequences as may run, which copies logits several times; with it stands what expert layers work in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.catalog.architecture import Attention, LatentAttention, Model, MoeMlp
from planner.catalog.engine import Engine, Limits, Release
from planner.layouts.table import Floats, Ints

CACHE_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "nvfp4": 0.5625}
"""Bytes of one element of the cache, with its scales."""
ACTIVATION = 2
"""Bytes of an activation."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What an engine's memory depends on beside the layout. Sizes in bytes, of one GPU."""

    model: Model
    engine: Engine
    release: Release
    memory: float
    """What a program can allocate."""
    fraction: float

    @property
    def limits(self) -> Limits:
        """Tokens and sequences of a step, by the size of the GPU."""
        return self.release.large if self.memory >= self.release.large_from else self.release.small


def token_bytes(model: Model, element: float, tp: Ints, pp: Ints) -> Floats:
    """Return bytes that one more token of a sequence takes on a GPU, windows not yet full, for each pair of tp and pp.

    Heads are held whole; the latent of MLA is held by every rank of tensor parallelism.
    """
    total = np.zeros(len(tp))
    for block in model.layer_kinds():
        attention = block.attention
        if isinstance(attention, LatentAttention):
            total += (attention.kv_lora_rank + attention.qk_rope) * element
        elif isinstance(attention, Attention):
            total += np.ceil(attention.kv_heads / tp) * (attention.head_dim + attention.value_dim) * element
    held: Floats = total * np.ceil(model.layers / pp) / model.layers
    return held


def pool_bytes(serving: Serving, weights: Floats, tp: Ints, pp: Ints) -> Floats:
    """Return the bytes that the engine gives to the cache on a GPU of the first stage; below zero it cannot start."""
    release = serving.release
    apart = release.context + np.where(tp > 1, release.communicators, 0.0)
    if serving.engine.fraction_of == "what is free":
        left: Floats = serving.fraction * (serving.memory - apart) - weights
        return left
    peak = _forward(serving, tp)
    # the sampler runs where the last layer is
    peak = np.where(pp == 1, np.maximum(peak, release.sampler_bytes * serving.limits.sequences * serving.model.vocab),
                    peak)
    found: Floats = serving.fraction * serving.memory - weights - peak - _experts(serving, tp) - apart
    return found


def _forward(serving: Serving, tp: Ints) -> Floats:
    """Return the widest moment of a forward pass: a layer's feed-forward between its two products."""
    widest = np.zeros(len(tp))
    for block in serving.model.blocks:
        mlp = block.mlp
        if isinstance(mlp, MoeMlp):
            width, fan = mlp.shared_width, 2 if mlp.gated else 1
        else:
            width, fan = (mlp.ffn, 2 if mlp.kind == "gated" else 1) if mlp else (0, 1)
        widest = np.maximum(widest, (fan + 1) * width / tp)
    found: Floats = serving.limits.tokens * (widest + 2 * serving.model.hidden) * ACTIVATION
    return found


def _experts(serving: Serving, tp: Ints) -> Floats:
    """Return what routed experts work in: inputs or the first product of every token and expert, and the second."""
    most = np.zeros(len(tp))
    for block in serving.model.blocks:
        mlp = block.mlp
        if isinstance(mlp, MoeMlp):
            fan = 2 if mlp.gated else 1
            wide = np.maximum(fan * mlp.ffn / tp, serving.model.hidden) + mlp.ffn / tp
            most = np.maximum(most, serving.limits.tokens * mlp.experts_per_token * wide * ACTIVATION)
    return most
