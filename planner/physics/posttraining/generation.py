"""Seconds of drawing a batch of answers: the engine's steps at every batch size as it drains, and its prompts.

Samples of one prompt share its prefix, which is read once on each replica that has some of them. Slots are what the
cache holds of sequences that have written half of their answers, and no more than the engine's limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.engine import Engine
from planner.physics.posttraining.drain import AnswerLengths, drain, steady
from planner.physics.serving.capacity import CacheInput, capacity
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.sequences import Cut
from planner.physics.serving.settings import EngineSettings
from planner.physics.serving.step import StepLoad, step_times


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """What a step draws: distinct prompts, samples of each, tokens of a prompt, lengths of the answers."""

    prompts: int
    samples: int
    input: float
    answers: AnswerLengths

    @property
    def sequences(self) -> int:
        """Answers of a step."""
        return self.prompts * self.samples

    @property
    def tokens(self) -> float:
        """Prompt and answer tokens of a step, prompts counted with every sample."""
        return self.sequences * (self.input + self.answers.mean)


@dataclass(frozen=True, slots=True)
class Engines:
    """Replicas of one layout of an engine: a table of one row, how many, and bytes of one GPU that they may take."""

    d: Deployment
    rows: Replicas
    count: int
    engine: Engine
    release: str | None
    memory: float
    """What the engine may take of a GPU in all, bytes."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What drawing takes: seconds, and of one GPU bytes of weights, cache and the rest."""

    decode: float
    prefill: float
    slots: int
    weights: float
    cache: float
    work: float
    longest: float
    """Tokens of the longest answer of the step."""

    @property
    def seconds(self) -> float:
        """Decoding and prompts."""
        return self.decode + self.prefill


@dataclass(frozen=True, slots=True)
class Slots:
    """What one replica holds: answers at once, and bytes of one GPU of weights, cache and the rest."""

    count: int
    chunk: int
    """Prompt tokens of a step at most."""
    weights: float
    cache: float
    work: float


def slots_of(batch: RolloutBatch, on: Engines) -> Slots | None:
    """Return what a replica holds of the answers of a step; none where the longest is not held."""
    d, rows = on.d, on.rows
    gpu = d.candidates[0].gpu
    release = on.engine.release(on.release)
    fraction = min(1.0, on.memory / gpu.usable_memory)
    longest = batch.input + batch.answers.longest
    half = batch.input + batch.answers.weighted / 2
    asked = CacheInput(d.model, d.weights, d.cache, on.engine, release, gpu.usable_memory,
                       EngineSettings(fraction=fraction), length=max(1, round(longest)), architecture=gpu.architecture)
    cut = Cut(rows.tp * rows.dp, rows.pp, rows.dp)
    room, held = capacity(asked, cut), capacity(replace(asked, length=max(1, round(half))), cut)
    if float(room.concurrency[0]) < 1:
        return None
    limits = asked.limits
    count = max(1, int(min(float(held.concurrency[0]), limits.sequences * int(rows.dp[0]))))
    return Slots(count, limits.tokens, float(room.weights[0]), max(0.0, float(room.worst_pool[0])),
                 float(room.activations[0] + room.apart[0]))


def drawn(batch: RolloutBatch, on: Engines, slots: Slots, eager: float, *, flowing: bool = False) -> Drawn:
    """Return what a step of rollouts takes.

    eager: seconds of the host for a layer and step without CUDA graphs. flowing: whether answers of the next steps fill
    the free slots.
    """
    d, rows = on.d, on.rows
    each = -(-batch.sequences // on.count)
    course = (steady(batch.answers, each, slots.count) if flowing
              else drain(batch.answers, each, min(on.count, batch.sequences), slots.count))
    none = np.zeros(len(course.steps))
    engine = d.engine.model_copy(update={"layer": d.engine.layer + eager, "chunk": slots.chunk})
    many = rows.take(np.zeros(len(none), np.int64))
    load = StepLoad(course.active, batch.input + course.written, none, none)
    took = step_times(replace(d, engine=engine), many, load)
    decode = float((took.total * course.steps).sum())
    # a prompt's samples go to one replica where there are enough prompts
    prompts = -(-batch.prompts // on.count)
    tokens, chunk = prompts * batch.input, float(slots.chunk)
    load = StepLoad(np.zeros(1), np.ones(1), np.array([min(tokens, chunk)]), np.array([batch.input / 2]))
    prefill = float(step_times(replace(d, engine=engine), rows, load).total[0]) * max(1.0, tokens / chunk)
    return Drawn(decode, prefill, slots.count, slots.weights, slots.cache, slots.work,
                 float(batch.answers.quantiles(np.array([1 - 0.5 / batch.sequences]))[0]))
