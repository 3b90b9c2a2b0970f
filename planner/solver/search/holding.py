"""What cannot be held however it is sharded, offloaded and recomputed: stems that need not be grown, rows not bounded.

A layout holds at least the states of its layers and of both ends of its pipeline, and what it gathers of them. Neither
depends on the order of the pipeline's work or on what is recomputed, so that one test at the leanest ZeRO stage and
offload speaks for all that grows from a stem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from planner.layouts.axes import RECOMPUTE
from planner.layouts.offload import OFFLOAD_AXES, Offloaded, allowed
from planner.layouts.table import Floats, Ints, Layouts, Mask, distinct, joined
from planner.physics.training.estimate import LayerTerms, layer_terms, optimizer_seconds, with_swaps
from planner.physics.training.memory import MemoryTerms, memory_terms
from planner.physics.training.offload import offload_times
from planner.physics.training.question import Question
from planner.solver.search.bounds import stem_recompute
from planner.solver.search.outside import host_short
from planner.solver.search.refine import stem_fastest, stem_slowest
from planner.solver.search.stem_bounds import StemSends

PIECE = 2**13
"""Stems, each at a ZeRO stage and level of offload, whose memory is worked out at once."""
FEW = 1024
"""Rows of several tables whose memory is worked out in one piece."""
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


def backward_short(question: Question, rows: Layouts, memory: MemoryTerms) -> Floats:
    """Return the bytes that the average stage of each row is short of at least when backward ends, with all gradients.
    """
    layer, first, last = (states.every for states in (memory.layer, memory.first, memory.last))
    states = (question.shape.layers * layer + first + last) / rows.pp
    found: Floats = states * (1 - HAIR) + memory.live + memory.gathered - memory.capacity
    return found


def stems_short(question: Question, levels: Sequence[Offloaded], flash: Mask, stems: Layouts,
                stages: Iterable[tuple[int, Mask]]) -> Floats:
    """Return the bytes that the average stage of whatever grows from each stem is short of at least.

    levels: the levels of offload that are searched; flash: which candidates have NVMe; stages: ZeRO stages, each with
    the stems that may have it.
    """
    least = np.full(len(stems), np.inf)
    for _, left, short in _by_stage(question, levels, flash, stems, stages):
        least[left] = np.minimum(least[left], short)
    return least


def _by_stage(question: Question, levels: Sequence[Offloaded], flash: Mask, stems: Layouts,
              stages: Iterable[tuple[int, Mask]]) -> Iterator[tuple[int, Ints, Floats]]:
    """Yield the ZeRO stages at which stems may hold least, each with the stems that may have it and the bytes that they
    are short of there.
    """
    leaner, looked = np.zeros(len(stems), bool), list[tuple[int, Ints, Ints, list[Layouts]]]()
    for stage, has in sorted(stages, key=lambda one: -one[0]):
        # below ZeRO-2 nothing is gathered, so that sharding the optimizer only holds less
        left = np.flatnonzero(has & ~leaner)
        leaner |= has & (stage <= 1)
        if len(left):
            columns: list[Ints] = [getattr(stems, name)[left] for name in STATES]
            first, place = distinct(*columns)
            looked.append((stage, left, place, leanest(question, levels, flash, stems.take(left[first]), stage)))
    tables = [at for *_, copies in looked for at in copies]
    shorts = iter([least_short(question, at, memory) for at, memory in zip(tables, _memories(question, tables),
                                                                            strict=True)])
    for stage, left, place, copies in looked:
        yield stage, left, np.min([next(shorts) for _ in copies], axis=0)[place]


def _memories(question: Question, tables: Sequence[Layouts]) -> list[MemoryTerms]:
    """Return the memory terms of each table; of few rows all at once."""
    if sum(map(len, tables)) > FEW or len(tables) < 2:
        return [memory_terms(question, table) for table in tables]
    whole, ends = memory_terms(question, joined(tables)), np.cumsum([*map(len, tables)])
    return [whole.take(np.arange(end - len(table), end)) for table, end in zip(tables, ends, strict=True)]


def stems_steps(question: Question, levels: Sequence[Offloaded], flash: Mask, stems: Layouts,
                stages: Iterable[tuple[int, Mask]], near: Near = everything) -> tuple[Floats, Mask]:
    """Return the least step seconds of whatever grows from each stem with what its memory forces: recompute, offload.
    And of which stems less was worked out, as they are of no interest.

    Infinite where it cannot be held. near: which stems are of interest at given step seconds. Other arguments as of
    `stems_short`.
    """
    least, cut, none = np.full(len(stems), np.inf), np.zeros(len(stems), bool), np.zeros(0, np.int64)
    staged = [(stage, left[short <= 0]) for stage, left, short in _by_stage(question, levels, flash, stems, stages)]
    who = np.concatenate([none, *(left for _, left in staged)])
    zero = np.concatenate([none, *(np.full(len(left), stage) for stage, left in staged)])
    held = np.unique(who)
    who, all_ = np.searchsorted(held, who), _Stems.of(question, stems.take(held))
    # most is offloaded only where memory is short without
    for some in filter(None, (levels[:1], levels[1:])):
        every, place = np.tile(who, len(some)), np.tile(np.arange(len(who)), len(some))
        now = joined([level.on(_at_stage(all_.rows.take(who), zero)) for level in some])
        open_ = np.ones(len(who), bool)
        legal = np.flatnonzero(allowed(now.columns, question.stack, flash))
        for start in range(0, len(legal), PIECE):
            mine = legal[start:start + PIECE]
            at = held[every[mine]]
            steps, short, far = _at_level(question, all_.take(every[mine]), now.take(mine), near, least[at])
            np.minimum.at(least, at, steps)
            cut[at[far]] = True
            open_[place[mine]] = short
        who, zero = who[open_], zero[open_]
    return least, cut


@dataclass(frozen=True, slots=True)
class _Stems:
    """Stems with what bounds their step."""

    rows: Layouts
    terms: LayerTerms
    sends: StemSends

    @classmethod
    def of(cls, question: Question, stems: Layouts) -> _Stems:
        """Return stems with what bounds them."""
        return cls(stems, layer_terms(question, stems), StemSends.of(question, stems))

    def take(self, rows: Ints) -> _Stems:
        """Return the chosen ones."""
        return _Stems(self.rows.take(rows), self.terms.take(rows), self.sends.take(rows))

    def steps(self, question: Question, *more: Floats | float) -> Floats:
        """Return their least step seconds; more: as of `StemSends.bound`."""
        return self.sends.bound(question, self.rows, self.terms, *more)


def _at_level(question: Question, stems: _Stems, now: Layouts, near: Near, known: Floats
              ) -> tuple[Floats, Mask, Mask]:
    """Return the least step seconds of stems at a ZeRO stage and level of offload, whether more offload may lower them,
    and which stems turned out to be of no interest.

    now: the stems there; known: their least step seconds elsewhere.
    """
    swapped = offload_times(question, now, stems.terms.compute)
    stems = replace(stems, terms=with_swaps(stems.terms, swapped))
    besides = optimizer_seconds(question, now) + swapped.step
    # what is no better than is known, or of no interest, if memory were free is neither with it
    steps = stems.steps(question, 0.0, besides)
    of_use = near(stems.rows, steps)
    far, of_use = ~of_use, of_use & (steps < known)
    at = np.flatnonzero(of_use)
    if len(at):
        steps[at], of_use[at], far[at] = _with_memory(question, stems.take(at), now.take(at), besides[at], near)
    return steps, of_use, far


def _with_memory(question: Question, stems: _Stems, now: Layouts, besides: Floats, near: Near
                 ) -> tuple[Floats, Mask, Mask]:
    """Return the least step seconds of stems at a ZeRO stage and level of offload, where memory costs time, and which
    turned out to be of no interest.

    now: the stems there; besides: seconds a step beside its pipeline.
    """
    steps, short, far = np.full(len(now), np.inf), np.ones(len(now), bool), np.zeros(len(now), bool)
    # sharded over one group, a GPU owns least and its host holds least
    memory = _memories(question, _copies(question, now))
    may = [host_short(question, now, memory[0]) <= 0] * len(memory)
    may = [can & (least_short(question, now, one) <= 0) for can, one in zip(may, memory, strict=True)]
    may[1:] = [can & _may_hold_more(question, one, memory[0]) for can, one in zip(may[1:], memory[1:], strict=True)]

    def least_of(bound: Callable[[Question, Layouts, LayerTerms, MemoryTerms], Floats], rows: Ints) -> Floats:
        least = np.full(len(rows), np.inf)
        for can, one in zip(may, memory, strict=True):
            at = np.flatnonzero(can[rows])
            if len(at):
                some = rows[at]
                least[at] = np.minimum(least[at], bound(question, now.take(some), stems.terms.take(some),
                                                        one.take(some)))
        return least

    held = np.flatnonzero(np.any(may, axis=0))
    again = least_of(stem_recompute, held)
    finite = np.isfinite(again)
    held, again = held[finite], again[finite]
    some = stems.take(held)
    steps[held] = some.steps(question, again, besides[held])
    of_use = near(some.rows, steps[held])
    far[held] = ~of_use
    some, held, again = some.take(np.flatnonzero(of_use)), held[of_use], again[of_use]
    slowest = least_of(stem_slowest, held)
    short[held] = (again > 0) | (slowest > stem_fastest(question, some.rows, some.terms) * (1 + HAIR))
    possible = np.isfinite(slowest)
    steps[held] = np.where(possible, some.steps(question, again, besides[held], np.where(possible, slowest, 0.0)),
                           np.inf)
    return steps, short, far


def _may_hold_more(question: Question, memory: MemoryTerms, other: MemoryTerms) -> Mask:
    """Return where a stage may have more room for what its layers keep than under `other`, whose layers and ends hold
    less.
    """
    persist = question.stack.gradients_persist
    more = (memory.capacity - other.capacity + other.gathered - memory.gathered
            + np.maximum(0.0, other.live - memory.live))
    found: Mask = memory.layer.held(persist) - other.layer.held(persist) <= more
    return found


def leanest(question: Question, levels: Sequence[Offloaded], flash: Mask, rows: Layouts, stage: int) -> list[Layouts]:
    """Return the rows at a ZeRO stage with the largest share of everything offloaded that is allowed there."""
    rows = _at_stage(rows, np.full(len(rows), stage))
    shares = {name: np.zeros(len(rows)) for name in OFFLOAD_AXES[:3]}
    for level in levels:
        can = allowed(level.on(rows).columns, question.stack, flash)
        for name, share in zip(shares, level.values, strict=False):
            shares[name] = np.maximum(shares[name], can * share)
    return _copies(question, rows.replace(**shares))


def _at_stage(rows: Layouts, stage: Ints) -> Layouts:
    """Return each row at a ZeRO stage, with everything recomputed."""
    return rows.replace(zero=stage, recompute=np.full(len(rows), RECOMPUTE.index("full")))


def _copies(question: Question, rows: Layouts) -> list[Layouts]:
    """Return the rows sharded over one group, which shards most, and over groups of one rank, which need no buckets."""
    groups = (np.ones_like(rows.dp), rows.dp * rows.cp)[:1 + question.stack.hybrid_shard]
    return [rows.replace(hsdp=one) for one in groups]
