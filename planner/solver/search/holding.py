"""What cannot be held however it is sharded, offloaded and recomputed: stems that need not be grown, rows not bounded.

A layout holds at least the states of its layers and of both ends of its pipeline, and what it gathers of them. Neither
depends on the order of the pipeline's work or on what is recomputed, so that one test at the leanest ZeRO stage and
offload speaks for all that grows from a stem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from planner.layouts.axes import RECOMPUTE
from planner.layouts.offload import OFFLOAD_AXES, Offloaded, allowed
from planner.layouts.table import Floats, Ints, Layouts, Mask, distinct
from planner.physics.training.estimate import LayerTerms
from planner.physics.training.memory import MemoryTerms, memory_terms
from planner.physics.training.question import Question
from planner.solver.search.bounds import stem_recompute

HAIR = 1e-9
"""Relative slack for what floats lose."""
STATES = ("candidate", "precision", "tp", "cp", "ep", "expert_tp", "dp", "pp")
"""Axes of a stem that decide its states and the memory they lie in."""


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


def stems_recompute(question: Question, levels: Sequence[Offloaded], flash: Mask, stems: Layouts, terms: LayerTerms,
                    stages: Iterable[tuple[int, Mask]]) -> Floats:
    """Return the seconds that whatever grows from each stem recomputes for one micro-batch at least; inf where it
    cannot be held. Arguments as of `stems_short`.
    """
    least = np.full(len(stems), np.inf)
    for stage, left in _leaner(len(stems), stages):
        for at in _leanest(question, levels, flash, stems.take(left), stage):
            again = stem_recompute(question, at, terms.take(left), memory_terms(question, at))
            least[left] = np.minimum(least[left], again)
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
    rows = rows.replace(zero=np.full(len(rows), stage), recompute=np.full(len(rows), RECOMPUTE.index("full")))
    shares = {name: np.zeros(len(rows)) for name in OFFLOAD_AXES[:3]}
    for level in levels:
        can = allowed(level.on(rows).columns, question.stack, flash)
        for name, share in zip(shares, level.values, strict=False):
            shares[name] = np.maximum(shares[name], can * share)
    # one group shards most; groups of one rank need no buckets
    copies = (np.ones_like(rows.dp), rows.dp * rows.cp)[:1 + question.stack.hybrid_shard]
    return [rows.replace(**shares, hsdp=one) for one in copies]
