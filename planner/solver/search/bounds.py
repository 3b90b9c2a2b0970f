"""Admissible bounds on step time, one numpy row a layout, before any stage is solved.

A layout's pipeline takes at least (m v - 1) max T + sum T over v. The sum is at least every layer without recompute,
plus the cheapest seconds per byte for the bytes that cannot be kept; the slowest stage is at least the mean, and holds
at least ceil(L / p) layers. Both hold for every split of the layers, so the bound never exceeds the staged optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from planner.catalog.stack import Stack
from planner.layouts.axes import RECOMPUTE, STAGED, STAGED_LEAD
from planner.layouts.table import Floats, Ints, Layouts, Mask
from planner.physics.training.estimate import LayerTerms, TimeTerms, step_seconds
from planner.physics.training.memory import MemoryTerms
from planner.physics.training.question import Question
from planner.physics.training.schedule import (
    DUALPIPE,
    fixed_layers,
    in_flight_chunks,
    splits_evenly,
)
from planner.solver.search.outside import host_short

PIECE = 2**15
"""Stages that are added up at once."""


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


def stem_recompute(question: Question, stems: Layouts, terms: LayerTerms, memory: MemoryTerms) -> Floats:
    """Return the seconds that all stages of whatever grows from each stem recompute for one micro-batch at least; inf
    where no stage holds its layers.

    memory: at what holds least of all that grows from a stem, under 1F1B, of which nothing has fewer in flight.
    """
    allowed = sorted({mode for mix in mixes(question.stack, STAGED) for mode in mix})
    found, price = _held(question, stems, terms, memory, allowed, terms.modes)
    return np.where(found.holds & (found.room >= question.shape.layers), _again(question, found, price), np.inf)


def least_slowest(question: Question, rows: Layouts, time: LayerTerms | TimeTerms, total: Floats) -> Floats:
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
    """Return layers by number of stages (up to `most`) and stage, of splits whose layers cannot be moved."""
    even = np.zeros((most + 1, most), np.int64)
    for stages in range(1, most + 1):
        even[stages, :stages] = fixed_layers(layers, stages)
    return even


def end_times(rows: Layouts, time: LayerTerms | TimeTerms) -> tuple[Floats, Floats]:
    """Return what the ends add to the first and the last stage; DualPipe's end ranks work on half of both."""
    dual, half = rows.schedule == DUALPIPE, (time.first + time.last) / 2
    return np.where(dual, half, time.first), np.where(dual, half, time.last)


def _step(question: Question, rows: Layouts, time: TimeTerms, recompute: Floats, even: Floats) -> Floats:
    """Return least step seconds with `recompute` over all stages; `even` is the slowest stage of even splits."""
    total = question.shape.layers * time.layer + time.first + time.last + recompute
    slowest = least_slowest(question, rows, time, total)
    fixed = splits_evenly(rows.vpp, rows.schedule)
    return step_seconds(time, rows, np.where(fixed, np.maximum(slowest, even), slowest), total)


def bound(question: Question, rows: Layouts, time: TimeTerms, memory: MemoryTerms) -> Bound:
    """Return the bound of each row with its memory."""
    layers = question.shape.layers
    found, price = _held(question, rows, time, memory, _modes(question, rows), time.added)
    fixed = splits_evenly(rows.vpp, rows.schedule)
    extra = np.where(fixed, found.recompute, _again(question, found, price))
    held, outside = found.holds & (fixed | (found.room >= layers)), host_short(question, rows, memory)
    return Bound(_step(question, rows, time, extra, found.slowest), held & (outside <= 0), held, found.short, outside)


def shortage(question: Question, rows: Layouts, memory: MemoryTerms) -> tuple[Mask, Floats, Floats]:
    """Return of `bound` what depends on no time: whether GPUs hold each row, and what they and hosts are short of."""
    none = np.zeros(len(rows))
    free = LayerTerms(compute=none, tensor=none, context=none, expert=none, modes=np.zeros((len(rows), len(RECOMPUTE))),
                      first=none, last=none, jitter=none)
    found = _held(question, rows, free, memory, _modes(question, rows), free.modes)[0]
    held = found.holds & (splits_evenly(rows.vpp, rows.schedule) | (found.room >= question.shape.layers))
    return held, found.short, host_short(question, rows, memory)


def _modes(question: Question, rows: Layouts) -> list[int]:
    """Return the recompute modes that some row may use."""
    staged = np.unique(rows.recompute).tolist() or [0]
    return sorted({mode for recompute in staged for mix in mixes(question.stack, recompute) for mode in mix})


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


def _stages(question: Question, rows: Layouts, time: LayerTerms | TimeTerms, memory: MemoryTerms, keep: _Kept
            ) -> _Stages:
    """Add up the stages of each row; in pieces, so that what is at work stays in the cache."""
    layers, persist = question.shape.layers, question.stack.gradients_persist
    state, first, last = (s.held(persist) for s in (memory.layer, memory.first, memory.last))
    left = memory.capacity - memory.gathered - memory.live
    at_first, at_last = end_times(rows, time)
    columns: tuple[Any, ...] = (
        rows.pp, rows.vpp, rows.micro_batches, rows.schedule, state, keep.most, keep.least, keep.price, left, first,
        memory.kept_first, np.maximum(memory.live, memory.logits) + last - memory.live,
        layers * (state + memory.kept.min(axis=1)) / rows.pp, time.layer, at_first, at_last)
    ends = np.cumsum(rows.pp)
    cuts = np.searchsorted(ends, np.arange(PIECE, int(ends[-1:].sum()), PIECE)).tolist()
    even, fixed = even_splits(layers, int(rows.pp.max(initial=1))), splits_evenly(rows.vpp, rows.schedule)
    parts = [_piece(layers, even, fixed[start:end], *(column[start:end] for column in columns))
             for start, end in pairwise([*dict.fromkeys((0, *cuts)), len(rows)])]
    return parts[0] if len(parts) == 1 else _Stages(*(
        np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(_Stages)))


def _piece(layers: int, even: Ints, fixed: Mask, pp: Ints, vpp: Ints, batches: Ints, schedule: Ints, state: Floats,
           most: Floats, least: Floats, price: Floats, left: Floats, first: Floats, kept_first: Floats, ended: Floats,
           average: Floats, each: Floats, at_first: Floats, at_last: Floats) -> _Stages:
    """Add up the stages of rows, which lie one after the other."""
    firsts = np.cumsum(pp) - pp
    lasts = firsts + pp - 1
    row = np.repeat(np.arange(len(pp)), pp)
    stage = np.arange(len(row)) - firsts[row]
    chunks = in_flight_chunks(pp[row], vpp[row], batches[row], stage, schedule[row] if schedule.any() else 0)
    flight: Floats = chunks / vpp[row]
    room = left[row]
    room[lasts] -= ended
    room[firsts] -= first + kept_first * flight[firsts]
    states, keeps, leanest = state[row], most[row], state[row] + flight * least[row]
    # a byte at least, so that a layer held elsewhere divides nothing by zero
    free = np.clip(room / np.maximum(states + flight * keeps, 1.0), 0, layers)
    whole = np.clip(np.floor(room / np.maximum(leanest, 1.0) + 1e-9), 0, layers)
    count = even[pp[row], stage]
    # a stage of a split of its own holds one layer at least
    holds = np.where(fixed[row], count, 1) * leanest <= room * (1 + 1e-12)
    again = np.maximum(0.0, count * keeps - (room - count * states) / flight) * price[row]
    seconds = count * each[row] + again
    seconds[lasts] += at_last
    seconds[firsts] += at_first
    total = np.add.reduceat
    return _Stages(free=total(free, firsts), room=total(whole, firsts),
                   short=total((average[row] - room) / pp[row], firsts),
                   slope=np.minimum.reduceat(states / flight + keeps, firsts),
                   slowest=np.maximum.reduceat(seconds, firsts), recompute=total(again, firsts),
                   holds=np.logical_and.reduceat(holds, firsts))


def _seconds_per_byte(added: Floats, memory: MemoryTerms, allowed: list[int]) -> Floats:
    """Return the least seconds of recompute per byte it frees, over the allowed modes."""
    price = np.full(len(memory.live), np.inf)
    for mode in allowed:
        freed = memory.kept[:, 0] - memory.kept[:, mode]
        with np.errstate(divide="ignore", invalid="ignore"):
            price = np.minimum(price, np.where(freed > 0, added[:, mode] / freed, np.inf))
    return np.where(np.isfinite(price), price, 0.0)
