"""Pipeline schedules: in-flight micro-batches, and step time from stage times.

p stages, v chunks of layers each stage interleaves, m micro-batches. One-forward-one-backward keeps p - stage
micro-batches in flight; interleaved, the warm-up of Megatron-Core: 2(p - stage - 1) + (v - 1)p + 1 chunks.
Source: Narayanan et al. 2021 (arXiv 2104.04473), Megatron-Core pipeline_parallel/schedules.py.
"""

from __future__ import annotations

import numpy as np

from planner.layouts.table import Floats, Ints


def in_flight_chunks(pp: Ints | int, vpp: Ints | int, micro_batches: Ints | int, stage: Ints | int) -> Ints:
    """Return how many chunk activations stage `stage` (0 is the first) holds at its peak."""
    p, v, m = np.asarray(pp), np.asarray(vpp), np.asarray(micro_batches)
    plain = np.minimum(m, p - stage)
    interleaved = np.minimum(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1)
    chunks: Ints = np.where(v == 1, plain, interleaved).astype(np.int64)
    return chunks


def pipeline_seconds(slowest: Floats, total: Floats, vpp: Ints, micro_batches: Ints) -> tuple[Floats, Floats]:
    """Return (steady, bubble) seconds of a step.

    `slowest` is the slowest stage's time for one micro-batch, `total` the sum over stages. The steady part is m times
    the slowest stage; the bubble is what the other stages take once, a v-th of it when interleaved.
    """
    return micro_batches * slowest, (total - slowest) / vpp


def even_layers(layers: int, stages: int) -> Ints:
    """Return layers per stage as frameworks split by default.

    Equal where they divide; else the embedding and the head count as a layer each, as Megatron's
    account-for-embedding and account-for-loss options do, and what is left over goes to the middle.
    """
    if layers % stages == 0:
        return np.full(stages, layers // stages, np.int64)
    slots = np.full(stages, (layers + 2) // stages, np.int64)
    slots[1:1 + (layers + 2) % stages] += 1
    slots[0] -= 1
    slots[-1] -= 1
    return slots
