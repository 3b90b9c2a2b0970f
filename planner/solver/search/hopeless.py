"""Which candidates need no search: those on which whatever there is lies behind what is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.layouts.axes import Space, domain
from planner.layouts.table import Layouts
from planner.physics.training.question import Question
from planner.solver.search.floor import floors
from planner.solver.search.found import StagedLayout
from planner.solver.search.job import Job, Key, Pricing
from planner.solver.search.source import Source

SHOWN = 6
"""Candidates of interest: the best, and those shown beside it."""


def in_turn(question: Question, space: Space, job: Job) -> list[tuple[float, ...]]:
    """Return the candidates in groups to search one after the other, those with the least floors first."""
    every = tuple(map(float, domain("candidate", space)))
    if job.objective != "cost" or not job.timed or len(every) <= SHOWN:
        return [every]
    least = floors(question, space, Pricing(job, question.candidates))
    order = sorted(every, key=lambda one: (int(one) in least, least.get(int(one)), one))
    return [tuple(sorted(order[at:at + SHOWN])) for at in range(0, len(order), SHOWN)]


def cut_off(job: Job, known: Sequence[StagedLayout]) -> Key | None:
    """Return the key behind which no candidate is shown, by what is known of each; none where all are of interest."""
    best: dict[int, Key] = {}
    for one in known:
        best[one.column.candidate] = min(one.key, best.get(one.column.candidate, one.key))
    # beside the cheapest, the fastest or smallest are shown with what is cheaper still
    return sorted(best.values())[SHOWN - 1] if job.objective == "cost" and len(best) >= SHOWN else None


def hopeless(question: Question, space: Space, job: Job, known: Sequence[StagedLayout], end: Key | None) -> set[int]:
    """Return the candidates on which whatever there is lies behind what is known of them, or behind `end`."""
    ends = {one.column.candidate: one.key[0] for one in sorted(known, key=lambda one: one.key, reverse=True)}
    least = floors(question, space, Pricing(job, question.candidates))
    far = np.inf if end is None else end[0]
    return {at for at, key in least.items() if key[0] > min(far, ends.get(at, np.inf))}


def without(source: Source, dropped: Collection[int], removed: Counter[str]) -> Source:
    """Return a source less some candidates, whose points are counted as removed by their bound."""
    def stems(check: Callable[[], None]) -> Iterator[tuple[list[int], Layouts]]:
        for alike, table in source.stems(check):
            left = [one for one in alike if one not in dropped]
            removed["bound"] += (len(alike) - len(left)) * len(table) * source.points
            if left:
                yield left, table

    return replace(source, stems=stems)
