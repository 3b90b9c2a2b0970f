"""Which candidates are searched first, and the key behind which none is shown."""

from __future__ import annotations

from collections.abc import Sequence

from planner.layouts.axes import Space, domain
from planner.solver.search.floor import Floors
from planner.solver.search.found import StagedLayout
from planner.solver.search.job import JobTerms
from planner.solver.search.keys import Key

SHOWN = 6
"""Candidates of interest: the best, and those shown beside it."""


def in_turn(space: Space, job: JobTerms, floors: Floors) -> list[tuple[float, ...]]:
    """Return the candidates in groups to search one after the other, those with the least floors first."""
    every = tuple(map(float, domain("candidate", space)))
    if job.objective != "cost" or not job.timed or len(every) <= SHOWN:
        return [every]
    return by_floor(space, floors)


def by_floor(space: Space, floors: Floors) -> list[tuple[float, ...]]:
    """Return the candidates in groups that are searched side by side, those with the least floors first."""
    order = sorted(map(float, domain("candidate", space)),
                   key=lambda at: (int(at) in floors.least, floors.least.get(int(at)), at))
    return [tuple(sorted(order[at:at + SHOWN])) for at in range(0, len(order), SHOWN)]


def cut_off(job: JobTerms, known: Sequence[StagedLayout]) -> Key | None:
    """Return the key behind which no candidate is shown, by what is known of each; none where all are of interest."""
    best: dict[int, Key] = {}
    for staged in known:
        best[staged.column.candidate] = min(staged.key, best.get(staged.column.candidate, staged.key))
    # beside the cheapest, the fastest or smallest are shown with what is cheaper still
    return sorted(best.values())[SHOWN - 1] if job.objective == "cost" and len(best) >= SHOWN else None
