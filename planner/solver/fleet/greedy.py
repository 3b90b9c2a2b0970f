"""A first schedule in no time: task after task at the least it costs, on nodes that are owned or taken as needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.program import Ints
from planner.solver.fleet.reading import value_of
from planner.solver.fleet.schedule import Placed, Problem, Schedule
from planner.solver.fleet.ways import Ways, every_way


def greedy(problem: Problem) -> Schedule | None:
    """Return a schedule of tasks alone; none where this way finds none, or there are services."""
    if problem.services:
        return None
    ways = every_way(problem)
    return _made(problem, ways, hurried=False) or _made(problem, ways, hurried=True)


def _made(problem: Problem, ways: Sequence[Ways], *, hurried: bool) -> Schedule | None:
    """Return a schedule; hurried: what others wait for ends as early as it can."""
    waited = {other for task in problem.tasks for other in task.after} if hurried else set()
    needed = _needed(problem)
    free = [np.array(pool.capacity or (0,) * problem.periods, dtype=np.int64) for pool in problem.pools]
    left = [np.full(problem.periods, one.most, dtype=np.int64) for one in problem.ceilings]
    placed = dict[int, Placed | None]()
    for at in _in_order(problem):
        task = problem.tasks[at]
        before = [placed[other] for other in task.after]
        if any(one is None for one in before):
            placed[at] = None
            continue
        first = max((one.runs[-1][1] for one in before if one is not None), default=0)
        found = _best(problem, at, ways[at], first, free, left, hurried=at in waited)
        worth = None if at in needed else task.worth
        if found is None or (worth is not None and int(ways[at].micro_usd[found]) >= worth):
            placed[at] = None
            continue
        option = task.options[int(ways[at].option[found])]
        start, end = int(ways[at].start[found]), int(ways[at].end[found])
        placed[at] = Placed(int(ways[at].option[found]), ((start, end),))
        if not problem.pools[option.pool].is_endless:
            free[option.pool][start:end] -= option.nodes
        for ceiling, room in zip(problem.ceilings, left, strict=True):
            room[start:end] -= ceiling.weights[option.pool] * option.nodes
    made = Schedule("feasible", tuple(placed[at] for at in range(len(problem.tasks))),
                    lots=tuple((0,) * len(pool.lots) for pool in problem.pools), bound=0)
    if any(task.worth is None and placed[at] is None for at, task in enumerate(problem.tasks)):
        return None
    made = Schedule(made.status, made.tasks, made.services, made.lots, value_of(problem, made), 0)
    return None if check_schedule(problem, made) else made


def _needed(problem: Problem) -> set[int]:
    """Return the tasks that must be done, themselves or as others that must be wait for them."""
    needed = [at for at, task in enumerate(problem.tasks) if task.worth is None]
    for at in needed:
        needed += [other for other in problem.tasks[at].after if other not in needed]
    return set(needed)


def _in_order(problem: Problem) -> Iterator[int]:
    """Yield tasks so that what is waited for comes first; of those that may come, what is due first."""
    waiting, done = set(range(len(problem.tasks))), set[int]()
    while waiting:
        at = min((at for at in waiting if done.issuperset(problem.tasks[at].after)), key=lambda at: (
            problem.tasks[at].deadline or problem.tasks[at].due or problem.horizon, at))
        waiting.remove(at)
        done.add(at)
        yield at


def _best(problem: Problem, at: int, ways: Ways, first: int, free: list[Ints], left: list[Ints], *, hurried: bool
          ) -> int | None:
    """Return the number of the cheapest way from some period on that there is room for, of alike the earliest."""
    possible = ways.start >= first
    for number, option in enumerate(problem.tasks[at].options):
        rooms = [] if problem.pools[option.pool].is_endless else [(free[option.pool], option.nodes)]
        rooms += [(room, ceiling.weights[option.pool] * option.nodes)
                  for ceiling, room in zip(problem.ceilings, left, strict=True) if ceiling.weights[option.pool]]
        mine = ways.option == number
        for room, nodes in rooms:
            short = np.concatenate([[0], np.cumsum(room < nodes)])
            possible &= ~mine | (short[ways.end] == short[ways.start])
    rows = np.flatnonzero(possible)
    keys = (ways.micro_usd[rows], ways.end[rows]) if hurried else (ways.end[rows], ways.micro_usd[rows])
    return int(rows[np.lexsort(keys)[0]]) if len(rows) else None
