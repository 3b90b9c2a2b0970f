"""Turn one row of physics into the integers that staging solves, rounded against the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from planner.layouts.table import Layouts
from planner.physics.training.estimate import TimeTerms, end_seconds
from planner.physics.training.memory import MemoryTerms
from planner.physics.training.question import Question
from planner.physics.training.schedule import bubble_parts, fixed_layers, in_flight_chunks, splits_evenly
from planner.solver.quantize import MEMORY_QUANTUM, TIME_QUANTUM, coarse, memory_capacity, memory_use, nanoseconds
from planner.solver.search.bounds import mixes
from planner.solver.search.outside import host_layers
from planner.solver.staging.problem import VALUE_LIMIT, Modes, SharedLimit, StagingProblem

ROUNDED = VALUE_LIMIT // 4
"""Below the limit of staging by more than rounding up adds."""


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
    even = fixed_layers(question.shape.layers, p).tolist()
    layers, parts = question.shape.layers, int(bubble_parts(rows.vpp[row], rows.schedule[row]))
    most = layers if shared else host_layers(question, memory, row)
    layer, capacity = float(time.layer[row]), max(0.0, float(memory.capacity[row]))
    added, extra = time.take(np.array([row])).added[0].tolist(), [float(x) for x in end_seconds(time, rows, row)]
    kept, state, every = memory.kept[row].tolist(), float(memory.layer.held(persist)[row]), float(
        memory.layer.every[row])
    # what multiplies times: the tie-break, or how often the slowest stage counts
    scale = max(layers**2 + 1, m * parts + p)
    ns = coarse(scale * (layers * (layer + max(added)) + sum(extra)) / TIME_QUANTUM, ROUNDED)
    unit = _memory_unit(layers, v, max(flights), kept, (capacity, *held, *backward, layers * max(state, every)))
    return StagingProblem(
        layers=layers, chunks=v, micro_batches=m,
        in_flight=tuple(flights),
        layer_ns=nanoseconds(layer, ns),
        mode_ns=_three(nanoseconds(x, ns) for x in added),
        keep_units=_three(memory_use(x, unit) for x in kept),
        mixes=mixes(question.stack, int(rows.recompute[row])),
        extra_ns=tuple(nanoseconds(x, ns) for x in extra),
        state_units=memory_use(state, unit),
        fixed_units=tuple(memory_use(size, unit) for size in held),
        capacity_units=memory_capacity(capacity, unit),
        backward_units=memory_use(every, unit),
        backward_fixed=tuple(memory_use(size, unit) for size in backward),
        min_layers=tuple(even) if equal else (1,) * p,
        max_layers=tuple(min(n, most) for n in even) if equal else (most,) * p,
        bubble_parts=parts, shared=shared, unit_ns=ns)


def _memory_unit(layers: int, chunks: int, flight: int, kept: Sequence[float], held: Sequence[float]) -> int:
    """Return the MiB in a unit of memory: more than one only where a stage would hold petabytes."""
    return coarse(max(8 * chunks * max(held), layers * max(kept) * flight) / MEMORY_QUANTUM, ROUNDED)


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
