"""Admissible bounds on step time, one numpy row a layout, before any stage is solved.

A layout's pipeline takes at least (m v - 1) max T + sum T over v. The sum is at least every layer without recompute,
plus the cheapest seconds per byte for the bytes that cannot be kept; the slowest stage is at least the mean, and holds
at least ceil(L / p) layers. Both hold for every split of the layers, so the bound never exceeds the staged optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from planner.catalog.stack import Stack
from planner.layouts.axes import CHUNKS, RECOMPUTE, SCHEDULES, STAGED, STAGED_LEAD
from planner.layouts.rules import even_chunks
from planner.layouts.table import Floats, Ints, Layouts, Mask
from planner.physics.training.estimate import LayerTerms, TimeTerms, step_seconds
from planner.physics.training.memory import MemoryTerms
from planner.physics.training.question import Question
from planner.physics.training.schedule import (
    DUALPIPE,
    FILLED,
    even_layers,
    in_flight_chunks,
    pipeline_seconds,
    splits_evenly,
)


def mixes(stack: Stack, recompute: int) -> tuple[tuple[int, ...], ...]:
    """Return the sets of recompute modes one job may combine; a fixed mode is alone, a staged one leaves the choice."""
    if recompute >= 0:
        return ((recompute,),)
    full = RECOMPUTE.index("full")
    single = ((0, full),) if stack.recompute_layers else ((0,), (full,))
    if recompute == STAGED_LEAD:
        return tuple(mix for mix in single if full in mix)
    return (*single, (RECOMPUTE.index("selective"),)) if stack.selective_recompute else single


@dataclass(frozen=True, slots=True)
class Bound:
    """Least step seconds of each row; whether any split can hold its memory, and of the GPUs alone; allocated bytes
    short on average, and the share by which host or flash is.
    """

    step: Floats
    fits: Mask
    on_gpus: Mask
    short: Floats
    outside: Floats


def time_bound(question: Question, rows: Layouts, time: TimeTerms) -> Floats:
    """Return the least step seconds of each row if memory were free."""
    return _step(question, rows, time, np.zeros(len(rows)), even_slowest(question, rows, time))


def stem_bound(question: Question, stems: Layouts, terms: LayerTerms, again: Floats | float = 0.0) -> Floats:
    """Return the least step seconds of whatever grows from each stem: no traffic but inside layers, most interleaving.

    Late axes add traffic, optimizer time and recompute, and choose between a split of their own and equal chunks.
    again: seconds that all stages recompute for one micro-batch at least.
    """
    total = question.shape.layers * terms.layer + terms.first + terms.last + again

    def step(slowest: Floats, parts: Ints | int) -> Floats:
        steady, bubble = pipeline_seconds(slowest, total, parts, stems.micro_batches)
        return steady + bubble

    chunks = _most_chunks(question, stems)
    slowest = _least_slowest(question, stems, terms, total)
    plain, even = step(slowest, 1), step(np.maximum(slowest, even_slowest(question, stems, terms)), chunks)
    least = np.where(chunks > 1, np.minimum(plain, even), plain)
    if max(question.stack.schedules, key=SCHEDULES.index) in ("zero-bubble", "dualpipe"):
        least = np.minimum(least, step(slowest, FILLED))
    found: Floats = (least + question.stack.step_overhead) * terms.jitter
    return found


def stem_recompute(question: Question, stems: Layouts, terms: LayerTerms, memory: MemoryTerms) -> Floats:
    """Return the seconds that all stages of whatever grows from each stem recompute for one micro-batch at least; inf
    where no stage holds its layers.

    memory: at what holds least of all that grows from a stem, under 1F1B, of which nothing has fewer in flight.
    """
    allowed = sorted({mode for mix in mixes(question.stack, STAGED) for mode in mix})
    found, price = _held(question, stems, terms, memory, allowed, terms.modes)
    return np.where(found.holds & (found.room >= question.shape.layers), _again(question, found, price), np.inf)


def _most_chunks(question: Question, stems: Layouts) -> Ints:
    """Return the most chunks that a stage of each stem can interleave."""
    layers = question.shape.layers
    most = np.ones(max(layers, int(stems.pp.max(initial=1))) + 1, np.int64)
    if question.stack.interleaving:
        stages = np.arange(2, len(most))
        for chunks in CHUNKS:
            most[2:][even_chunks(layers, stages * chunks)] = chunks
    return np.where(stems.micro_batches % stems.pp == 0, most[stems.pp], 1)


def _least_slowest(question: Question, rows: Layouts, time: LayerTerms | TimeTerms, total: Floats) -> Floats:
    """Return the least slowest stage of any split: the mean, and what holds ceil(L / p) layers."""
    return np.maximum(total / rows.pp, np.ceil(question.shape.layers / rows.pp) * time.layer)


def even_slowest(question: Question, rows: Layouts, time: LayerTerms | TimeTerms) -> Floats:
    """Return the slowest stage of each row if its layers are split evenly and keep everything."""
    even = even_splits(question.shape.layers, int(rows.pp.max(initial=1)))
    first, last = end_times(rows, time)
    middle = even.max(axis=1)[rows.pp] * time.layer
    ends = np.maximum(even[rows.pp, 0] * time.layer + first, even[rows.pp, rows.pp - 1] * time.layer + last)
    alone = question.shape.layers * time.layer + first + last
    slowest: Floats = np.maximum(middle, np.where(rows.pp == 1, alone, ends))
    return slowest


@lru_cache(maxsize=64)
def even_splits(layers: int, most: int) -> Ints:
    """Return layers by number of stages (up to `most`) and stage, of even splits, those of DualPipe where uneven."""
    even = np.zeros((most + 1, most), np.int64)
    for stages in range(1, most + 1):
        even[stages, :stages] = even_layers(layers, stages, DUALPIPE)
    return even


def end_times(rows: Layouts, time: LayerTerms | TimeTerms) -> tuple[Floats, Floats]:
    """Return what the ends add to the first and the last stage; DualPipe's end ranks work on half of both."""
    dual, half = rows.schedule == DUALPIPE, (time.first + time.last) / 2
    return np.where(dual, half, time.first), np.where(dual, half, time.last)


def _step(question: Question, rows: Layouts, time: TimeTerms, recompute: Floats, even: Floats) -> Floats:
    """Return least step seconds with `recompute` over all stages; `even` is the slowest stage of even splits."""
    total = question.shape.layers * time.layer + time.first + time.last + recompute
    slowest = _least_slowest(question, rows, time, total)
    fixed = splits_evenly(rows.vpp, rows.schedule)
    return step_seconds(time, rows, np.where(fixed, np.maximum(slowest, even), slowest), total)


def bound(question: Question, rows: Layouts, time: TimeTerms, memory: MemoryTerms) -> Bound:
    """Return the bound of each row with its memory."""
    layers = question.shape.layers
    staged = np.unique(rows.recompute).tolist() or [0]
    allowed = sorted({mode for recompute in staged for mix in mixes(question.stack, recompute) for mode in mix})
    found, price = _held(question, rows, time, memory, allowed, time.added)
    fixed = splits_evenly(rows.vpp, rows.schedule)
    extra = np.where(fixed, found.recompute, _again(question, found, price))
    held, outside = found.holds & (fixed | (found.room >= layers)), _host_short(question, rows, memory)
    return Bound(_step(question, rows, time, extra, found.slowest), held & (outside <= 0), held, found.short, outside)


def _held(question: Question, rows: Layouts, time: LayerTerms | TimeTerms, memory: MemoryTerms, allowed: list[int],
          added: Floats) -> tuple[_Stages, Floats]:
    """Return what the stages hold under the allowed recompute modes, and the least seconds per byte that one frees."""
    kept = memory.kept[:, allowed]
    most, least = memory.kept[:, 0] if 0 in allowed else kept.max(axis=1), kept.min(axis=1)
    price = _seconds_per_byte(added, memory, allowed)
    return _stages(question, rows, time, memory, _Kept(most, least, price)), price


def _again(question: Question, found: _Stages, price: Floats) -> Floats:
    """Return the least seconds of recompute over all stages for what they cannot keep, however layers are split."""
    deficit = np.maximum(0.0, question.shape.layers - found.free)
    return np.where(deficit > 0, deficit * found.slope * price, 0.0)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Bytes of activations a layer keeps at most and at least, and the least seconds per byte in between."""

    most: Floats
    least: Floats
    price: Floats


@dataclass(frozen=True, slots=True)
class _Stages:
    """What the stages of each row hold. For splits of any kind: layers that fit keeping most, and (whole ones)
    keeping least, over all stages, the mean stage's shortage, and the least bytes that one layer less frees. For even
    splits: the slowest stage and the seconds of recompute over all stages. `holds`: no stage lacks what it must hold.
    """

    free: Floats
    room: Floats
    short: Floats
    slope: Floats
    slowest: Floats
    recompute: Floats
    holds: Mask

    def back(self, order: Ints) -> _Stages:
        """Return the rows in the order they had before `order` was applied."""
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return _Stages(*(getattr(self, f.name)[place] for f in fields(self)))


def _stages(question: Question, rows: Layouts, time: LayerTerms | TimeTerms, memory: MemoryTerms, keep: _Kept
            ) -> _Stages:
    """Add up the stages of each row."""
    layers, persist = question.shape.layers, question.stack.gradients_persist
    # deepest pipelines first, so that the rows that have a stage are a slice
    order = np.argsort((-rows.pp).astype(np.int16), kind="stable")
    pp, vpp, batches = rows.pp[order], rows.vpp[order], rows.micro_batches[order]
    schedule = rows.schedule[order]
    state, first, last = (s.held(persist)[order] for s in (memory.layer, memory.first, memory.last))
    most, least, price = keep.most[order], keep.least[order], keep.price[order]
    kept_first, live = memory.kept_first[order], memory.live[order]
    room_of_states = memory.capacity[order] - memory.gathered[order]
    average = layers * (state + memory.kept.min(axis=1)[order]) / pp
    ended = np.maximum(live, memory.logits[order]) + last - live
    each, at_first, at_last = (values[order] for values in (time.layer, *end_times(rows, time)))
    even, fixed = even_splits(layers, int(pp.max(initial=1))), splits_evenly(rows.vpp, rows.schedule)[order]
    zero = np.zeros(len(rows))
    found = _Stages(zero, zero.copy(), zero.copy(), np.full(len(rows), np.inf), zero.copy(), zero.copy(),
                    np.ones(len(rows), bool))
    for stage in range(int(pp.max(initial=1))):
        on = slice(0, int(np.searchsorted(-pp, -stage, side="left")))
        flight = in_flight_chunks(pp[on], vpp[on], batches[on], stage, schedule[on]) / vpp[on]
        ends = pp[on] == stage + 1
        left = room_of_states[on] - live[on] - np.where(ends, ended[on], 0.0)
        if stage == 0:
            left -= first[on] + kept_first[on] * flight
        # a byte at least, so that a layer held elsewhere divides nothing by zero
        found.free[on] += np.clip(left / np.maximum(state[on] + flight * most[on], 1.0), 0, layers)
        leanest = state[on] + flight * least[on]
        found.room[on] += np.clip(np.floor(left / np.maximum(leanest, 1.0) + 1e-9), 0, layers)
        found.short[on] += (average[on] - left) / pp[on]
        found.slope[on] = np.minimum(found.slope[on], state[on] / flight + most[on])
        count = even[pp[on], stage]
        # a stage of a split of its own holds one layer at least
        found.holds[on] &= np.where(fixed[on], count, 1) * leanest <= left * (1 + 1e-12)
        again = np.maximum(0.0, count * most[on] - (left - count * state[on]) / flight) * price[on]
        found.recompute[on] += again
        seconds = count * each[on] + again + np.where(ends, at_last[on], 0.0) + (at_first[on] if stage == 0 else 0.0)
        found.slowest[on] = np.maximum(found.slowest[on], seconds)
    return found.back(order)


def _seconds_per_byte(added: Floats, memory: MemoryTerms, allowed: list[int]) -> Floats:
    """Return the least seconds of recompute per byte it frees, over the allowed modes."""
    price = np.full(len(memory.live), np.inf)
    for mode in allowed:
        freed = memory.kept[:, 0] - memory.kept[:, mode]
        with np.errstate(divide="ignore", invalid="ignore"):
            price = np.minimum(price, np.where(freed > 0, added[:, mode] / freed, np.inf))
    return np.where(np.isfinite(price), price, 0.0)


def _host_short(question: Question, rows: Layouts, memory: MemoryTerms) -> Floats:
    """Return by what share of itself host or flash is too small for what the average node offloads; the last node may
    hold fewer stages.
    """
    node = np.minimum(rows.gpus, np.array([c.node.gpus for c in question.candidates])[rows.candidate])
    ranks = rows.gpus // rows.pp
    stages = np.maximum(node // ranks, 1)
    shared = question.shape.layers / np.ceil(rows.pp / stages) * ranks / node
    layers = np.where(stages > 1, shared, question.shape.layers / rows.pp)
    # a node without flash is asked for none
    host, flash = (held * layers / np.maximum(capacity, 1.0) for held, capacity in (
        (memory.host_per_layer, memory.host_capacity), (memory.nvme_per_layer, memory.nvme_capacity)))
    short: Floats = np.maximum(host, flash) - 1
    return short


def host_layers(question: Question, memory: MemoryTerms, row: int) -> int:
    """Return how many layers a stage may hold before what its node offloads outgrows the host or its flash."""
    most = question.shape.layers
    for per_layer, capacity in ((memory.host_per_layer[row], memory.host_capacity[row]),
                                (memory.nvme_per_layer[row], memory.nvme_capacity[row])):
        most = most if per_layer == 0 else min(most, int(capacity // per_layer))
    return most
