"""Seconds of drawing a batch of answers: the engine's steps at every batch size as it drains, and its prompts.

Samples of one prompt share its prefix, which is read once on each replica that has some of them. Slots are what the
cache holds of sequences that have written half of their answers, and no more than the engine's limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.catalog.engine import Engine
from planner.layouts.table import Amount
from planner.physics.posttraining.drain import AnswerLengths, drain, steady
from planner.physics.serving.capacity import CacheInput, capacity, paging_of
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.sequences import Cut, sequence_bytes
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

    @property
    def longest(self) -> float:
        """Tokens of the longest answer of a step."""
        return float(self.answers.quantiles(np.array([1 - 0.5 / self.sequences]))[0])


@dataclass(frozen=True, slots=True)
class Engines:
    """Layouts of an engine's replicas, and bytes of one GPU that they may take."""

    d: Deployment
    rows: Replicas
    engine: Engine
    release: str | None
    memory: float
    """What the engine may take of a GPU in all, bytes."""
    most: int | None = None
    """Answers that are drawn at once for each GPU; none are as many as the cache holds."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What drawing takes: seconds, and of one GPU bytes of weights, cache and the rest."""

    decode: Amount
    prefill: Amount
    slots: int
    weights: Amount
    cache: Amount
    work: Amount

    @property
    def seconds(self) -> Amount:
        """Decoding and prompts."""
        return self.decode + self.prefill


@dataclass(frozen=True, slots=True)
class ReplicaRoom:
    """What one replica holds: answers at once, and bytes of one GPU of weights, cache and the rest."""

    count: int
    weights: float
    cache: float
    work: float


def slots_of(batch: RolloutBatch, on: Engines) -> list[ReplicaRoom | None]:
    """Return what a replica of each layout holds of the answers of a step; none where the longest is not held."""
    d, rows = on.d, on.rows
    gpu = d.candidates[0].gpu
    release = on.engine.release(on.release)
    fraction = min(1.0, on.memory / gpu.usable_memory)
    longest = batch.input + batch.answers.longest
    half = batch.input + batch.answers.weighted / 2
    asked = CacheInput(d.model, d.weights, d.cache, on.engine, release, gpu.usable_memory,
                       EngineSettings(fraction=fraction), length=max(1, round(longest)), architecture=gpu.architecture)
    cut = Cut(rows.tp * rows.dp, rows.pp, rows.dp)
    room = capacity(asked, cut)
    of_half = sequence_bytes(d.model, max(1, round(half)), d.cache, cut, paging_of(asked))
    held = np.maximum(room.worst_pool, 0.0) / of_half * rows.dp
    many = np.maximum(1, np.minimum(held, asked.limits.sequences * rows.dp).astype(np.int64))
    if on.most is not None:
        many = np.minimum(many, on.most * rows.gpus)
    columns = (many, room.weights, np.maximum(0.0, room.worst_pool), room.activations + room.apart)
    return [ReplicaRoom(int(count), float(weights), float(cache), float(work)) if fits else None
            for fits, count, weights, cache, work in zip(room.concurrency >= 1, *columns, strict=True)]


SOCKETS = 2
"""Of a machine with GPUs: a rack that is one node has as many machines as its sockets make."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A layout of replicas by its row, how many of them, and the answers that each writes at once."""

    row: int
    replicas: int
    slots: int


def drawing_seconds(batch: RolloutBatch, on: Engines, drawings: Sequence[Drawing], eager: float, *,
                    ahead: int = 0, across: float = 0.0) -> list[tuple[float, float]]:
    """Return seconds of decoding and of prompts that a step of rollouts takes, of each drawing.

    eager: seconds in which the host launches a layer without CUDA graphs, which kernels that take longer hide.
    across: seconds of the host in each step of a replica on several machines, which nothing hides.
    ahead: steps whose answers are at work at once, where none waits for the longest of each; else 0.
    """
    if not drawings:
        return []
    d, limits = on.d, on.engine.release(on.release).limits(
        on.d.candidates[0].gpu.usable_memory, on.d.candidates[0].gpu.architecture)
    courses, loads = [], []
    for each in drawings:
        mine = -(-batch.sequences // each.replicas)
        course = (steady(batch.answers, mine, each.slots, ahead) if ahead
                  else drain(batch.answers, mine, min(each.replicas, batch.sequences), each.slots))
        # a prompt's samples go to one replica where there are enough prompts
        tokens = -(-batch.prompts // each.replicas) * batch.input
        chunks = max(1.0, tokens / limits.tokens)
        courses.append(np.append(course.steps, chunks))
        none = np.zeros(len(course.steps))
        loads.append(np.stack([np.append(course.active, 0.0), np.append(batch.input + course.written, 1.0),
                               np.append(none, tokens / chunks), np.append(none, batch.input / 2)]))
    rows = np.repeat([each.row for each in drawings], [len(course) for course in courses])
    times = step_times(d, on.rows.take(rows), StepLoad(*np.concatenate(loads, axis=1)))
    # kernels hide launches, and neither what the host does between steps
    took = np.maximum(times.total - times.host, eager * d.model.layers) + times.host
    node = d.candidates[0].node
    machine = node.gpus / max(1, node.cpu.sockets // SOCKETS)
    took = took + across * (on.rows.take(rows).gpus > machine)
    parts = np.split(took * np.concatenate(courses), np.cumsum([len(course) for course in courses])[:-1])
    return [(float(part[:-1].sum()), float(part[-1])) for part in parts]
