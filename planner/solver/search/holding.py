"""What cannot be held however it is sharded, offloaded and recomputed: stems that need not be grown, rows not bounded.

A layout holds at least the states of its layers and of both ends of its pipeline, and what it gathers of them. Neither
depends on the order of the pipeline's work or on what is recomputed, so that one test at the leanest ZeRO stage and
offload speaks for all that grows from a stem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from planner.layouts.axes import RECOMPUTE
from planner.layouts.offload import OFFLOAD_AXES, Offloaded, allowed
from planner.layouts.table import Floats, Ints, Layouts, Mask, distinct
from planner.physics.training.estimate import LayerTerms, optimizer_seconds, with_swaps
from planner.physics.training.memory import MemoryTerms, memory_terms
from planner.physics.training.offload import offload_times
from planner.physics.training.question import Question
from planner.solver.search.bounds import stem_bound, stem_recompute
from planner.solver.search.outside import host_short
from planner.solver.search.refine import stem_slowest

HAIR = 1e-9
"""Relative slack for what floats lose."""
STATES = ("candidate", "precision", "tp", "cp", "ep", "expert_tp", "dp", "pp")
"""Axes of a stem that decide its states and the memory they lie in."""


Near: TypeAlias = Callable[[Layouts, Floats], Mask]


def everything(stems: Layouts, steps: Floats) -> Mask:
    """Say that all stems are of interest."""
    return np.ones(len(stems), bool)


def least_short(question: Question, rows: Layouts, memory: MemoryTerms) -> Floats:
    """Return the bytes that the average stage of each row is short of at least; what is above zero cannot fit."""
    persist = question.stack.gradients_persist
    layer, first, last = (states.held(persist) for states in (memory.layer, memory.first, memory.last))
    states = (question.shape.layers * layer + first + last) / rows.pp
    found: Floats = states * (1 - HAIR) + memory.gathered - memory.capacity
    return found


def stems_short(question: Question, levels: Sequence[Offloaded], flash: Mask, stems: Layouts,
                stages: Iterable[tuple[int, Mask]]) -> Floats:
    """Return the bytes that the average stage of whatever grows from each stem is short of at least.

    levels: the levels of offload that are searched; flash: which candidates have NVMe; stages: ZeRO stages, each with
    the stems that may have it.
    """
    short = np.full(len(stems), np.inf)
    for stage, left in _leaner(len(stems), stages):
        columns: list[Ints] = [getattr(stems, name)[left] for name in STATES]
        first, place = distinct(*columns)
        for at in _leanest(question, levels, flash, stems.take(left[first]), stage):
            short[left] = np.minimum(short[left], least_short(question, at, memory_terms(question, at))[place])
    return short


def stems_steps(question: Question, levels: Sequence[Offloaded], flash: Mask, stems: Layouts, terms: LayerTerms,
                stages: Iterable[tuple[int, Mask]], near: Near = everything) -> Floats:
    """Return the least step seconds of whatever grows from each stem with what its memory forces: recompute, offload.

    Infinite where it cannot be held. near: which stems are of interest at given step seconds; of the others less is
    worked out. Other arguments as of `stems_short`.
    """
    least = np.full(len(stems), np.inf)
    for stage, left in _leaner(len(stems), stages):
        steps = _by_level(question, levels, flash, stems.take(left), terms.take(left), stage, near)
        least[left] = np.minimum(least[left], steps)
    return least


def _by_level(question: Question, levels: Sequence[Offloaded], flash: Mask, stems: Layouts, terms: LayerTerms,
              stage: int, near: Near) -> Floats:
    """Return the least step seconds of stems at a ZeRO stage, each level of offload where all lesser ones are short."""
    least, open_ = np.full(len(stems), np.inf), np.ones((len(levels), len(stems)), bool)
    rows = _at_stage(stems, stage)
    for number, level in enumerate(levels):
        lesser = [n for n, other in enumerate(levels[:number]) if other.precedes(level)]
        mine = np.flatnonzero(open_[lesser].all(axis=0))
        now = level.on(rows.take(mine))
        legal = np.flatnonzero(allowed(now.columns, question.stack, flash))
        if not len(legal):
            continue
        mine, now = mine[legal], now.take(legal)
        own = terms.take(mine)
        swapped = offload_times(question, now, own.compute)
        own = with_swaps(own, swapped)
        besides = optimizer_seconds(question, now) + swapped.step
        # sharded over one group, a GPU owns least and its host holds least
        memory = [memory_terms(question, one) for one in _copies(question, now)]
        again = np.min([stem_recompute(question, now, own, one) for one in memory], axis=0)
        again[host_short(question, now, memory[0]) > 0] = np.inf
        held, short = np.flatnonzero(np.isfinite(again)), again > 0
        steps = np.full(len(now), np.inf)
        some = stems.take(mine[held])
        steps[held] = stem_bound(question, some, own.take(held), again[held], besides[held])
        at = np.flatnonzero(near(some, steps[held]))
        some, held = some.take(at), held[at]
        whole = [stem_slowest(question, now.take(held), own.take(held), one.take(held)) for one in memory]
        slowest, free = (np.min([one[part] for one in whole], axis=0) for part in (0, 1))
        short[held] |= slowest > free * (1 + HAIR)
        possible = np.isfinite(slowest)
        steps[held[~possible]] = np.inf
        some, held, slowest = some.take(possible), held[possible], slowest[possible]
        steps[held] = stem_bound(question, some, own.take(held), again[held], besides[held], slowest)
        least[mine] = np.minimum(least[mine], steps)
        open_[number, mine] = short
    return least


def _leaner(count: int, stages: Iterable[tuple[int, Mask]]) -> Iterator[tuple[int, Ints]]:
    """Yield the ZeRO stages at which stems may hold least, each with the stems that may have it."""
    leaner = np.zeros(count, bool)
    for stage, has in sorted(stages, key=lambda one: -one[0]):
        # below ZeRO-2 nothing is gathered, so that sharding the optimizer only holds less
        left = np.flatnonzero(has & ~leaner)
        leaner |= has & (stage <= 1)
        if len(left):
            yield stage, left


def _leanest(question: Question, levels: Sequence[Offloaded], flash: Mask, rows: Layouts, stage: int) -> list[Layouts]:
    """Return the rows at a ZeRO stage with the largest share of everything offloaded that is allowed there."""
    rows = _at_stage(rows, stage)
    shares = {name: np.zeros(len(rows)) for name in OFFLOAD_AXES[:3]}
    for level in levels:
        can = allowed(level.on(rows).columns, question.stack, flash)
        for name, share in zip(shares, level.values, strict=False):
            shares[name] = np.maximum(shares[name], can * share)
    return _copies(question, rows.replace(**shares))


def _at_stage(rows: Layouts, stage: int) -> Layouts:
    """Return the rows at a ZeRO stage, with everything recomputed."""
    return rows.replace(zero=np.full(len(rows), stage), recompute=np.full(len(rows), RECOMPUTE.index("full")))


def _copies(question: Question, rows: Layouts) -> list[Layouts]:
    """Return the rows sharded over one group, which shards most, and over groups of one rank, which need no buckets."""
    groups = (np.ones_like(rows.dp), rows.dp * rows.cp)[:1 + question.stack.hybrid_shard]
    return [rows.replace(hsdp=one) for one in groups]
