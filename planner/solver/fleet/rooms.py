"""What is left of every pool and ceiling while tasks are placed one after the other, and the first way with room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.solver.check_schedule import serving, there
from planner.solver.fleet.program import Ints
from planner.solver.fleet.schedule import Option, Placed, Problem, Schedule
from planner.solver.fleet.ways import TaskWays


class Rooms:
    """Nodes left in pools, and what ceilings leave, by period; beside the services and lots of a schedule."""

    def __init__(self, problem: Problem, start: Schedule) -> None:
        """Start without a task."""
        self.problem = problem
        free = [np.array(there(problem, pool, counts) or (0,) * problem.periods, dtype=np.int64)
                for pool, counts in zip(problem.pools, start.lots, strict=True)]
        uses = [problem.in_use(ceiling) for ceiling in problem.ceilings]
        left = [np.full(problem.periods, ceiling.most, dtype=np.int64) for ceiling in problem.ceilings]
        for ceiling, room in zip(problem.ceilings, left, strict=True):
            for pool, counts, weight in zip(problem.pools, start.lots, ceiling.weights, strict=True):
                for lot, nodes in zip(pool.lots, counts, strict=True):
                    if ceiling.held:
                        room[lot.start:lot.end] -= weight * nodes
        for taken in serving(problem, start):
            for at, nodes_of in enumerate(taken):
                free[at] -= np.array(nodes_of, dtype=np.int64)
                for number, weights in enumerate(uses):
                    left[number] -= weights[at] * np.array(nodes_of, dtype=np.int64)
        self.free = [*free, *left]
        self.taking = [[self._taken(option, uses) for option in task.options] for task in problem.tasks]
        """By task and option: rooms, and how much of each."""
        amounts = [sorted({much for mine in self.taking for taken in mine for at, much in taken if at == room})
                   for room in range(len(self.free))]
        first = np.cumsum([1, *map(len, amounts)])
        self.amounts = [np.array(one, dtype=np.int64)[:, None] for one in amounts]
        self.rows = [slice(int(first[at]), int(first[at + 1])) for at in range(len(self.free))]
        self.row = {(room, much): int(first[room]) + at for room, mine in enumerate(amounts)
                    for at, much in enumerate(mine)}
        self.short = np.zeros((int(first[-1]), problem.periods + 1), dtype=np.int32)
        """By room and amount, periods before each in which less is left; the first row is of what needs no room."""
        for at in range(len(self.free)):
            self._count(at)

    def _taken(self, option: Option, uses: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
        pools = self.problem.pools
        taken = [(pool, nodes) for pool, nodes in option.held if not pools[pool].is_endless]
        return taken + [(len(pools) + at, much) for at, weights in enumerate(uses)
                        if (much := sum(weights[pool] * nodes for pool, nodes in option.held))]

    def _count(self, room: int) -> None:
        if len(self.amounts[room]):
            (self.free[room] < self.amounts[room]).cumsum(axis=1, out=self.short[self.rows[room], 1:])

    def take(self, taken: Iterable[tuple[int, Placed | None]], given: Iterable[tuple[int, Placed | None]] = ()) -> None:
        """Take what tasks need where they are placed, and give back what others did."""
        changed = dict[int, None]()
        for sign, tasks in ((-1, given), (1, taken)):
            for at, placed in tasks:
                for room, much in self.taking[at][placed.option] if placed is not None else ():
                    for start, end in placed.runs if placed is not None else ():
                        self.free[room][start:end] -= sign * much
                    changed[room] = None
        for room in changed:
            self._count(room)

    def places(self, at: int, ways: TaskWays) -> list[tuple[Ints, Ints]]:
        """Return where in `short` each way begins and ends, for each room that it may need."""
        width, taking = self.problem.periods + 1, self.taking[at]
        found = []
        for number in range(max(map(len, taking), default=0)):
            rows = np.array([self.row[taken[number]] if number < len(taken) else 0 for taken in taking], dtype=np.int64)
            first = rows[ways.option] * width
            found.append((first + ways.start, first + ways.end))
        return found

    def fitting(self, places: Sequence[tuple[Ints, Ints]], count: int) -> NDArray[np.bool_]:
        """Return whether each way has room."""
        if not places:
            return np.ones(count, dtype=bool)
        flat = self.short.ravel()
        (first, last), *others = places
        has: NDArray[np.bool_] = flat.take(first) == flat.take(last)
        for first, last in others:
            has &= flat.take(first) == flat.take(last)
        return has

    def periods(self, at: int, option: int, first: int, last: int) -> NDArray[np.intp]:
        """Return the periods between two in which an option has room."""
        has = np.ones(max(0, last - first), dtype=bool)
        for room, much in self.taking[at][option]:
            has &= self.free[room][first:last] >= much
        return has.nonzero()[0] + first
