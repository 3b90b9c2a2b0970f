"""The search of one question over several processes: candidates are shared out, and the accounts added up.

Candidates are searched in groups, one after the other. Within a group what one candidate's search finds depends on no
other, so the answer is the same for every number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from planner.layouts.axes import domain
from planner.layouts.enumerate import Grid
from planner.layouts.rules import Facts
from planner.physics.training.question import Question
from planner.process.workers import Call, Workers
from planner.solver.progress import among
from planner.solver.search.floor import Floors, floors
from planner.solver.search.found import Frontier, StagedLayout
from planner.solver.search.frontier import GridSearch
from planner.solver.search.job import JobTerms, Pricing
from planner.solver.search.keys import Key
from planner.solver.search.leaders import Leaders, beaten_by_fewer
from planner.solver.search.source import grid_source
from planner.solver.search.turns import by_floor, cut_off, in_turn
from planner.solver.settings import Effort

PATIENCE = 5.0
"""Seconds that processes have to end after Ctrl-C with what they have; those that take longer are ended without."""

UNGROWN = ("deadline", "budget", "power", "owned", "states", "bound", "time")
"""Why the search drops a stem before it is grown, in grid points."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one process found: its frontier, and what its grid removed and grew."""

    frontier: Frontier
    removed: Counter[str]
    grown: int


def search_grid(question: Question, grid: Grid, job: JobTerms, effort: Effort, *, each: bool = True,
                known: Sequence[StagedLayout] = (), every: bool = False) -> Frontier:
    """Search a whole grid with the processes of `effort`; its account is kept in `grid` as if there were one.

    each: find the best of every candidate, or else, in this process, only what may be the best of all. known: what is
    found already and has to be beaten. every: the one best of every candidate, those far behind the others too; raises
    KeyboardInterrupt.
    """
    frontier = _searched(question, grid, job, effort, known, each=each, every=every)
    if every and frontier.interrupted:
        raise KeyboardInterrupt  # who asks for every candidate has no use for some
    if frontier.open_bound is not None:
        # what was not reached: the grid less all that was made or dropped for a reason
        dropped = sum(frontier.removed[name] for name in UNGROWN if name != "time")
        frontier.removed["time"] = max(0, grid.size - grid.grown - grid.removed.total() - dropped)
    return frontier


def _searched(question: Question, grid: Grid, job: JobTerms, effort: Effort, known: Sequence[StagedLayout], *,
              each: bool, every: bool) -> Frontier:
    facts, parts = grid.facts, list[_Part]()
    lowest = floors(question, facts.space, Pricing(job, question.candidates))
    if not each:
        best = Leaders()
        for one in known if job.timed else map(beaten_by_fewer, known):
            best.offer(one)
        # what may be least first, as it teaches what the others need not look at
        turns = by_floor(facts.space, lowest)
        for turn, some in enumerate(turns):
            later = [*chain(*turns[turn + 1:])]
            with among(turn / len(turns), 1 / len(turns), _value(known, parts), _bound(later, lowest)):
                parts.append(_part(question, facts, job, effort, some, (), best.end, lowest, best))
            if parts[-1].frontier.interrupted:
                parts += _unreached(later, lowest)
                break
        return _ordered(_joined(parts, grid))
    turns = [tuple(map(float, domain("candidate", facts.space)))] if every else in_turn(facts.space, job, lowest)
    rivals = [*map(alone, known)]
    with Workers[int](effort.workers) as pool:
        for turn, candidates in enumerate(turns):
            found = [*known, *(one for part in parts for one in part.frontier.found)]
            end = None if every else cut_off(job, found)
            workers = min(effort.workers, len(candidates))
            calls = [partial(_part, question, facts, job, effort, candidates[at::workers], rivals, end, lowest)
                     for at in range(workers)]
            later = [*chain(*turns[turn + 1:])]
            before, share = (len(some) / sum(map(len, turns)) for some in ([*chain(*turns[:turn])], candidates))
            with among(before, share, _value(known, parts), _bound(later, lowest)):
                more, interrupted = _parts(pool, calls) if workers > 1 else ([calls[0]()], False)
            parts += more
            if interrupted or parts[-1].frontier.interrupted:
                # a process that was ended told nothing of its candidates
                parts += _unreached(chain(*turns[turn + (not interrupted):]), lowest)
                break
    return _ordered(_joined(parts, grid))


def _value(known: Sequence[StagedLayout], parts: Sequence[_Part]) -> int | None:
    """Return the best objective of what is found."""
    return min((one.key[0] for one in (*known, *(one for part in parts for one in part.frontier.found))), default=None)


def _bound(candidates: Iterable[float], lowest: Floors) -> int | None:
    """Return the objective that nothing on some candidates is below; none where there are none."""
    least = lowest.lowest(candidates)
    return None if least is None else least[0]


def _unreached(candidates: Iterable[float], lowest: Floors) -> list[_Part]:
    """Return what an interrupted search did not reach, of which no more is known than that nothing is below its floor.
    """
    least = lowest.lowest(candidates)
    return [] if least is None else [_Part(Frontier(interrupted=True, open_bound=least), Counter(), 0)]


def _ordered(frontier: Frontier) -> Frontier:
    """Put what was found in an order that does not depend on who found it first."""
    frontier.found.sort(key=lambda one: one.key)
    return frontier


def _parts(workers: Workers[int], calls: Sequence[Call]) -> tuple[list[_Part], bool]:
    """Return all parts in order, and whether Ctrl-C came; then those that end soon, each with what it has."""
    found: dict[int, _Part] = {}
    interrupted = False
    workers.losses.clear()
    for at, call in enumerate(calls):
        workers.add(at, call)
    try:
        for answer in workers.answers():
            found[answer.key] = answer.result()
    except KeyboardInterrupt:
        interrupted = True
        workers.stop()
        for answer in workers.answers(PATIENCE):
            if answer.error is None:  # else it was interrupted before it had anything
                found[answer.key] = answer.value
    return [found[at] for at in sorted(found)], interrupted


def alone(found: StagedLayout) -> StagedLayout:
    """Return a found layout without the thousands of rows of its batch, which need not travel."""
    if len(found.batch.rows) == 1:
        return found
    return replace(found, batch=found.batch.take(np.array([found.row])), row=0)


def _part(question: Question, facts: Facts, job: JobTerms, effort: Effort,
          candidates: tuple[float, ...], known: Sequence[StagedLayout], end: Key | None, lowest: Floors,
          best: Leaders | None = None) -> _Part:
    """Search some of the candidates; best: the leaders of all, where nothing else is of interest."""
    grid = Grid(replace(facts, space=replace(facts.space, only={**facts.space.only, "candidate": candidates})))
    mine = [one for one in known if one.column.candidate in candidates]
    search = GridSearch(question, grid.facts.space, job, effort, known=mine, end=end, floors=lowest,
                        leaders=(lambda sizes: best) if best else None, apart=False)
    frontier = search.run(grid_source(grid))
    frontier.found = [*map(alone, frontier.found)]
    return _Part(frontier, grid.removed, grid.grown)


def _joined(parts: Sequence[_Part], grid: Grid) -> Frontier:
    """Return the frontiers of disjoint candidates as one, and add up their accounts in `grid`."""
    whole = Frontier()
    for one in parts:
        grid.removed.update(one.removed)
        grid.grown += one.grown
        part = one.frontier
        whole.found += part.found
        whole.removed.update(part.removed)
        whole.fit, whole.staged = whole.fit + part.fit, whole.staged + part.staged
        whole.interrupted |= part.interrupted
        if part.open_bound is not None:
            whole.note_open(part.open_bound)
    return whole
