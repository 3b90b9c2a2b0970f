"""Turn one row of physics into the integers that staging solves, rounded against the plan."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.layouts.table import Layouts
from planner.physics.estimate import TimeTerms, end_seconds
from planner.physics.memory import MemoryTerms
from planner.physics.question import Question
from planner.physics.schedule import bubble_parts, even_layers, in_flight_chunks, splits_evenly
from planner.solver.bounds import host_layers, mixes
from planner.solver.quantize import memory_capacity, memory_use, nanoseconds
from planner.solver.staging.problem import Modes, SharedLimit, StagingProblem


def staging_problem(question: Question, rows: Layouts, time: TimeTerms, memory: MemoryTerms,
                    row: int) -> StagingProblem:
    """Return the staging problem of row `row`."""
    p, v, m = int(rows.pp[row]), int(rows.vpp[row]), int(rows.micro_batches[row])
    persist = question.stack.gradients_persist
    live, logits, gathered = (float(a[row]) for a in (memory.live, memory.logits, memory.gathered))
    order = int(rows.schedule[row])
    flights = in_flight_chunks(p, v, m, np.arange(p), order).tolist()
    held, backward = [live + gathered] * p, [live + gathered] * p
    held[-1] = max(live, logits) + gathered
    for stage, states in ((0, memory.first), (-1, memory.last)):
        held[stage] += float(states.held(persist)[row])
        backward[stage] += float(states.every[row])
    held[0] += float(memory.kept_first[row]) * flights[0] / v
    held[-1] += float(memory.kept_last[row]) * flights[-1] / v
    shared = _shared_hosts(question, rows, memory, row)
    equal = bool(splits_evenly(v, order))
    even = [int(n) for n in even_layers(question.shape.layers, p)]
    most = question.shape.layers if shared else host_layers(question, rows, memory, row)
    return StagingProblem(
        layers=question.shape.layers, chunks=v, micro_batches=m,
        in_flight=tuple(flights),
        layer_ns=nanoseconds(float(time.layer[row])),
        mode_ns=_three(nanoseconds(float(x)) for x in time.take(np.array([row])).added[0]),
        keep_units=_three(memory_use(float(x)) for x in memory.kept[row]),
        mixes=mixes(question.stack, int(rows.recompute[row])),
        extra_ns=tuple(nanoseconds(float(x)) for x in end_seconds(time, rows, row)),
        state_units=memory_use(float(memory.layer.held(persist)[row])),
        fixed_units=tuple(memory_use(size) for size in held),
        capacity_units=max(0, memory_capacity(float(memory.capacity[row]))),
        backward_units=memory_use(float(memory.layer.every[row])),
        backward_fixed=tuple(memory_use(size) for size in backward),
        min_layers=tuple(even) if equal else (1,) * p,
        max_layers=tuple(min(n, most) for n in even) if equal else (most,) * p,
        bubble_parts=int(bubble_parts(rows.vpp[row], rows.schedule[row])),
        shared=shared)


def _shared_hosts(question: Question, rows: Layouts, memory: MemoryTerms, row: int) -> tuple[SharedLimit, ...]:
    """Return the host and flash limits of nodes that hold several stages; none where each holds one stage."""
    node_gpus = min(question.candidates[int(rows.candidate[row])].node.gpus, int(rows.gpus[row]))
    ranks = int(rows.tp[row] * rows.cp[row] * rows.dp[row])
    per_node = node_gpus // ranks
    if per_node < 2:
        return ()
    places = ((memory.host_per_layer, memory.host_capacity), (memory.nvme_per_layer, memory.nvme_capacity))
    return tuple(SharedLimit(tuple(range(first, min(first + per_node, int(rows.pp[row])))),
                             memory_use(float(held[row]) * ranks / node_gpus), 0, memory_capacity(float(capacity[row])))
                 for held, capacity in places if held[row] > 0 for first in range(0, int(rows.pp[row]), per_node))


def _three(values: Iterable[int]) -> Modes:
    none, selective, full = values
    return none, selective, full
