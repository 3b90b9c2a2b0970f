"""Admissible bounds on step time, one numpy row a layout, before any stage is solved.

A layout's pipeline takes at least (m v - 1) max T + sum T over v. The sum is at least every layer without recompute,
plus the cheapest seconds per byte for the bytes that cannot be kept; the slowest stage is at least the mean, and holds
at least ceil(L / p) layers. Both hold for every split of the layers, so the bound never exceeds the staged optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.catalog.stack import Stack
from planner.layouts.axes import RECOMPUTE, STAGED
from planner.layouts.table import Floats, Layouts, Mask
from planner.physics.estimate import TimeTerms, step_seconds
from planner.physics.memory import MemoryTerms
from planner.physics.question import Question
from planner.physics.schedule import in_flight_chunks


def mixes(stack: Stack, recompute: int) -> tuple[tuple[int, ...], ...]:
    """Return the sets of recompute modes one job may combine; a fixed mode is alone, STAGED leaves the choice."""
    if recompute != STAGED:
        return ((recompute,),)
    full = RECOMPUTE.index("full")
    single = ((0, full),) if stack.recompute_layers else ((0,), (full,))
    return (*single, (RECOMPUTE.index("selective"),)) if stack.selective_recompute else single


@dataclass(frozen=True, slots=True)
class Bound:
    """Least step seconds of each row, whether any split can hold its memory, and allocated bytes short on average."""

    step: Floats
    fits: Mask
    short: Floats


def time_bound(question: Question, rows: Layouts, time: TimeTerms) -> Floats:
    """Return the least step seconds of each row if memory were free."""
    return _step(question, rows, time, np.zeros(len(rows)))


def _step(question: Question, rows: Layouts, time: TimeTerms, recompute: Floats) -> Floats:
    layers = question.shape.layers
    total = layers * time.layer + time.first + time.last + recompute
    slowest = np.maximum(total / rows.pp, np.ceil(layers / rows.pp) * time.layer)
    return step_seconds(time, rows, slowest, total)


def bound(question: Question, rows: Layouts, time: TimeTerms, memory: MemoryTerms) -> Bound:
    """Return the bound of each row with its memory."""
    layers = question.shape.layers
    allowed = sorted({k for mix in mixes(question.stack, int(rows.recompute[0])) for k in mix}) if len(rows) else [0]
    kept = memory.kept[:, allowed]
    most, least = memory.kept[:, 0] if 0 in allowed else kept.max(axis=1), kept.min(axis=1)
    price = _seconds_per_byte(time, memory, allowed)
    free, room, short, slope = _stages(question, rows, memory, most, least)
    deficit = np.maximum(0.0, layers - free)
    extra = np.where(deficit > 0, deficit * slope * price, 0.0)
    return Bound(_step(question, rows, time, extra), (room >= layers) & _host_fits(question, rows, memory),
                 short)


def _stages(question: Question, rows: Layouts, memory: MemoryTerms, most: Floats,
            least: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, summed over stages, layers that fit keeping `most` and (whole ones) keeping `least` bytes, and the
    mean stage's shortage; and the least bytes that one layer less frees on any stage.
    """
    layers, persist = question.shape.layers, question.stack.gradients_persist
    # deepest pipelines first, so that the rows that have a stage are a slice
    order = np.argsort(-rows.pp, kind="stable")
    pp, vpp, batches = rows.pp[order], rows.vpp[order], rows.micro_batches[order]
    schedule = rows.schedule[order]
    state, first, last = (s.held(persist)[order] for s in (memory.layer, memory.first, memory.last))
    most, least, kept_first, live = most[order], least[order], memory.kept_first[order], memory.live[order]
    room_of_states = memory.capacity[order] - memory.gathered[order]
    average = layers * (state + memory.kept.min(axis=1)[order]) / pp
    ended = np.maximum(live, memory.logits[order]) + last - live
    free, room, short = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    slope = np.full(len(rows), np.inf)
    for stage in range(int(pp.max(initial=1))):
        on = slice(0, int(np.searchsorted(-pp, -stage, side="left")))
        flight = in_flight_chunks(pp[on], vpp[on], batches[on], stage, schedule[on]) / vpp[on]
        left = room_of_states[on] - live[on] - np.where(pp[on] == stage + 1, ended[on], 0.0)
        if stage == 0:
            left -= first[on] + kept_first[on] * flight
        # a byte at least, so that a layer held elsewhere divides nothing by zero
        free[on] += np.clip(left / np.maximum(state[on] + flight * most[on], 1.0), 0, layers)
        room[on] += np.clip(np.floor(left / np.maximum(state[on] + flight * least[on], 1.0) + 1e-9), 0, layers)
        short[on] += (average[on] - left) / pp[on]
        slope[on] = np.minimum(slope[on], state[on] / flight + most[on])
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return free[back], room[back], short[back], slope[back]


def _seconds_per_byte(time: TimeTerms, memory: MemoryTerms, allowed: list[int]) -> Floats:
    """Return the least seconds of recompute per byte it frees, over the allowed modes."""
    price, added = np.full(len(memory.live), np.inf), time.added
    for mode in allowed:
        freed = memory.kept[:, 0] - memory.kept[:, mode]
        with np.errstate(divide="ignore", invalid="ignore"):
            price = np.minimum(price, np.where(freed > 0, added[:, mode] / freed, np.inf))
    return np.where(np.isfinite(price), price, 0.0)


def _host_fits(question: Question, rows: Layouts, memory: MemoryTerms) -> Mask:
    """Say whether host and flash can hold what the average node offloads."""
    layers = question.shape.layers / rows.pp
    fits: Mask = ((memory.host_per_layer * layers <= memory.host_capacity)
                  & (memory.nvme_per_layer * layers <= memory.nvme_capacity))
    return fits


def host_layers(question: Question, rows: Layouts, memory: MemoryTerms, row: int) -> int:
    """Return how many layers a stage may hold before what its node offloads outgrows the host or its flash."""
    most = question.shape.layers
    for per_layer, capacity in ((memory.host_per_layer[row], memory.host_capacity[row]),
                                (memory.nvme_per_layer[row], memory.nvme_capacity[row])):
        most = most if per_layer == 0 else min(most, int(capacity // per_layer))
    return most
