"""Pipeline schedules: in-flight micro-batches, and step time from stage times.

p stages, v chunks of layers each stage interleaves, m micro-batches. Held in flight on stage s (0 is the first):

    1F1B         min(m, p - s); interleaved, the warm-up of Megatron-Core: 2(p - s - 1) + (v - 1)p + 1 chunks
    GPipe        m
    zero-bubble  min(m, p) on every stage (ZB-H1)
    DualPipe     min(m, p + 1), of the two stages that a rank works on from both ends

Where chunks of a stage are unlike, the smaller ones come first, of which most are in flight, and each pass through the
stages is paced by its largest chunk: with chunks as launch/chunks.py lays them that adds up to the slowest stage. What
stages wait where a larger chunk follows is counted beside (`uneven_waits`); no published run shows it apart.

The bubble is the time of the other stages over v; zero-bubble fills two thirds of it with weight gradients, and
DualPipe at least as much. Sources: Huang et al. 2019 (arXiv 1811.06965), Narayanan et al. 2021 (arXiv 2104.04473),
Megatron-Core pipeline_parallel/schedules.py, Qi et al. 2023 (arXiv 2401.10241), DeepSeek-V3 (arXiv 2412.19437,
table 2).
"""

from __future__ import annotations

import numpy as np

from planner.layouts.axes import SCHEDULES
from planner.layouts.table import Floats, Ints, Mask

GPIPE, ZERO_BUBBLE, DUALPIPE = (SCHEDULES.index(name) for name in ("gpipe", "zero-bubble", "dualpipe"))
EQUAL = (DUALPIPE,)
"""Schedules whose stages are as even as they can be, as those of interleaved chunks are equal."""
FILLED = 3
"""Forward, input gradient and weight gradient take alike, so that what fills two of three leaves a third."""


def in_flight_chunks(pp: Ints | int, vpp: Ints | int, micro_batches: Ints | int, stage: Ints | int,
                     schedule: Ints | int = 0) -> Ints:
    """Return how many chunk activations stage `stage` (0 is the first) holds at its peak."""
    p, v, m, order = np.asarray(pp), np.asarray(vpp), np.asarray(micro_batches), np.asarray(schedule)
    chunks: Ints = np.minimum(m, p - stage)
    if not (plain := v == 1).all():
        chunks = np.where(plain, chunks, np.minimum(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1))
    if order.any():
        chunks = np.choose(order, (chunks, m + 0 * chunks, np.minimum(m, p), np.minimum(m, p + 1)))
    return chunks.astype(np.int64)


def bubble_parts(vpp: Ints, schedule: Ints) -> Ints:
    """Return into how many parts the other stages' time is cut, of which one is the bubble."""
    parts: Ints = np.where(schedule >= ZERO_BUBBLE, FILLED, vpp)
    return parts


def pipeline_seconds(slowest: Floats, total: Floats, parts: Ints | int, micro_batches: Ints) -> tuple[Floats, Floats]:
    """Return (steady, bubble) seconds of a step.

    `slowest` is the slowest stage's time for one micro-batch, `total` the sum over stages. The steady part is m times
    the slowest stage; the bubble is what the other stages take once, over `parts`.
    """
    return micro_batches * slowest, (total - slowest) / parts


def fixed_layers(layers: int, stages: int) -> Ints:
    """Return layers per stage where they cannot be moved: equal, or as even as can be about the middle."""
    return even_layers(layers, stages, DUALPIPE)


def uneven_waits(layers: int, pp: Ints, vpp: Ints, micro_batches: Ints) -> Floats:
    """Return how many layers' time the stages of each row wait in a step because the chunks of a stage are unlike.

    Where larger chunks follow smaller ones, each stage but the first waits once more for the one before it: once for
    each group of p micro-batches that passes through all chunks, forward and backward.
    """
    slots, left = np.divmod(layers + 2, pp)
    fullest = np.where(layers % pp == 0, layers // pp, slots + (left > 0))
    waits: Floats = np.where((vpp > 1) & (fullest % vpp != 0), (pp - 1) * np.maximum(1.0, micro_batches / pp), 0.0)
    return waits


def splits_evenly(vpp: Ints | int, schedule: Ints | int) -> Mask:
    """Say whose layers cannot be moved between stages. Bounds and staging both go by this, or neither would hold."""
    fixed = np.asarray(vpp) > 1
    for equal in EQUAL:
        fixed = fixed | (np.asarray(schedule) == equal)
    return fixed


def usual_layers(layers: int, lead: int, stages: int, schedule: int = 0) -> Ints:
    """Return uniform layers per stage where a framework splits all layers alike, the leading ones on the first stage.

    The first stage has so many fewer uniform ones, or none, and the rest goes to the other stages.
    """
    split = even_layers(layers + lead, stages, schedule)
    if not lead or stages == 1 or schedule in EQUAL:
        return even_layers(layers, stages, schedule)
    if split[0] >= lead:
        split[0] -= lead
        return split
    return np.concatenate([[0], even_layers(layers, stages - 1, schedule)]).astype(np.int64)


def even_layers(layers: int, stages: int, schedule: int = 0) -> Ints:
    """Return layers per stage as frameworks split by default.

    Equal where they divide; else the embedding and the head count as a layer each, as Megatron's
    account-for-embedding and account-for-loss options do, and what is left over goes to the middle: evenly about it
    under DualPipe, whose ranks work on two stages as far from either end.
    """
    if layers % stages == 0:
        return np.full(stages, layers // stages, np.int64)
    slots = np.full(stages, (layers + 2) // stages, np.int64)
    left = (layers + 2) % stages
    start = (stages - left) // 2 if schedule == DUALPIPE else 1
    slots[start:start + left] += 1
    slots[0] -= 1
    slots[-1] -= 1
    return slots
