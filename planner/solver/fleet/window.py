"""A window of a schedule: a few tasks are solved again while the others stay, and several such are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.reading import solved, value_of
from planner.solver.fleet.schedule import Placed, Problem, Schedule
from planner.solver.fleet.scheduling_model import Scheduling
from planner.solver.fleet.ways import TaskWays
from planner.solver.settings import Settings


@dataclass(frozen=True, slots=True)
class Window:
    """What is asked of one: small enough to be sent to another process or machine."""

    problem: Problem
    best: Schedule
    """The schedule that it is a window of."""
    free: frozenset[int]
    """Tasks that may move."""
    ways: Sequence[TaskWays]
    patterns: Sequence[Sequence[Placed]]
    """Ways with pauses."""
    settings: Settings

    def solve(self) -> Schedule:
        """Return a schedule that costs no more."""
        model = Scheduling(self.problem, self.ways, self.patterns)
        for at, (mine, placed) in enumerate(zip(model.tasks, self.best.tasks, strict=True)):
            if at not in self.free and mine.rejected is not None:
                # what is rejected stays so, and what is not too
                model.program.row([(mine.rejected, 1)], int(placed is None), int(placed is None))
        return solved(self.problem, model, self.settings, self.best)


def joined(problem: Problem, start: Schedule, found: Sequence[tuple[frozenset[int], Schedule]]) -> Schedule:
    """Return the best schedule that some windows of one schedule make together: the best, with all else that still
    fits and saves.

    found: the tasks that each was free to move, none of them twice, and what came of it.
    """
    best = start
    for free, other in sorted(found, key=lambda one: _value(one[1])):
        if _value(other) >= _value(start):
            break
        made = other if best is start else _with(problem, start, best, free, other)
        if _value(made) < _value(best) and (made is other or not check_schedule(problem, made)):
            best = replace(made, interrupted=False)
    return best


def _value(schedule: Schedule) -> float:
    return float("inf") if schedule.value is None else schedule.value


def _with(problem: Problem, start: Schedule, best: Schedule, free: frozenset[int], other: Schedule) -> Schedule:
    """Return `best` with what another window changed of `start`: its tasks, and nodes of services and lots."""
    tasks = tuple(other.tasks[at] if at in free else placed for at, placed in enumerate(best.tasks))
    services = tuple(theirs if theirs != before else mine for before, mine, theirs in zip(
        start.services, best.services, other.services, strict=True))
    lots = tuple(tuple(mine + theirs - before for before, mine, theirs in zip(*rows, strict=True))
                 for rows in zip(start.lots, best.lots, other.lots, strict=True))
    if any(not 0 <= nodes <= lot.most for pool, rows in zip(problem.pools, lots, strict=True)
           for lot, nodes in zip(pool.lots, rows, strict=True)):
        return best
    made = replace(best, status="feasible", tasks=tasks, services=services, lots=lots)
    return replace(made, value=value_of(problem, made), bound=None)
