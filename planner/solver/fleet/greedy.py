"""A first schedule in no time: task after task at the least it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from planner.solver.check_schedule import check_schedule, there
from planner.solver.fleet.program import Ints
from planner.solver.fleet.reading import value_of
from planner.solver.fleet.schedule import Ceiling, Placed, Pool, Problem, Schedule
from planner.solver.fleet.ways import Floats, Ways, every_way

SEVERAL = 5
"""Ways of a task: what the last of so many costs more than the best says how much depends on when it is placed."""
ROUNDED = (0.1, 0.5, 0.9)
"""Parts of a node up to which a lot is rounded down."""


def greedy(problem: Problem) -> Schedule | None:
    """Return a schedule of tasks alone; none where this way finds none, or there are services or stocks."""
    if problem.services or problem.stocks:
        return None
    ways, deadlines = every_way(problem), list(_in_order(problem))
    nothing = [(0,) * len(pool.lots) for pool in problem.pools]
    usd = [mine.micro_usd for mine in ways]
    waited = {other for task in problem.tasks for other in task.after}
    return _made(problem, ways, usd, nothing, deadlines, set()) or _made(problem, ways, usd, nothing, deadlines, waited)


def guided(problem: Problem, ways: Sequence[Ways], more: Sequence[Floats], lots: Sequence[Sequence[float]]
           ) -> Schedule | None:
    """Return the cheapest of schedules by what ways cost at prices of nodes, on lots that a relaxation has, rounded."""
    if problem.services or problem.stocks:
        return None
    dearest = [-float(np.sort(costs)[min(len(costs), SEVERAL) - 1]) if len(costs) else 0.0 for costs in more]
    found, orders = list[Schedule](), (list(_in_order(problem)), list(_in_order(problem, dearest)))
    waited = {other for task in problem.tasks for other in task.after}
    for down, order, hurried in product(ROUNDED, orders, (set[int](), waited)):
        counts = [tuple(min(lot.most, max(0, math.ceil(nodes - down)))
                        for lot, nodes in zip(pool.lots, mine, strict=True))
                  for pool, mine in zip(problem.pools, lots, strict=True)]
        if (made := _made(problem, ways, more, counts, order, hurried)) is not None:
            found.append(made)
    return min(found, key=lambda made: made.value or 0, default=None)


def _made(problem: Problem, ways: Sequence[Ways], costs: Sequence[Ints | Floats], lots: Sequence[tuple[int, ...]],
          order: Sequence[int], waited: set[int]) -> Schedule | None:
    """Return a schedule on so many nodes of each lot; waited: what others wait for, which ends as early as it can."""
    needed = _needed(problem)
    free = [np.array(there(problem, pool, counts) or (0,) * problem.periods, dtype=np.int64)
            for pool, counts in zip(problem.pools, lots, strict=True)]
    left = [np.full(problem.periods, one.most, dtype=np.int64) for one in problem.ceilings]
    for ceiling, room in zip(problem.ceilings, left, strict=True):
        _held(problem, ceiling, lots, room)
    placed = dict[int, Placed | None]()
    for at in order:
        task = problem.tasks[at]
        before = [placed[other] for other in task.after]
        if any(one is None for one in before):
            placed[at] = None
            continue
        first = max((one.runs[-1][1] for one in before if one is not None), default=0)
        found = _best(problem, at, ways[at], costs[at], first, free, left, hurried=at in waited)
        worth = None if at in needed else task.worth
        if found is None or (worth is not None and int(ways[at].micro_usd[found]) >= worth):
            placed[at] = None
            continue
        option = task.options[int(ways[at].option[found])]
        start, end = int(ways[at].start[found]), int(ways[at].end[found])
        placed[at] = Placed(int(ways[at].option[found]), ((start, end),))
        for pool, nodes in option.held:
            if not problem.pools[pool].is_endless:
                free[pool][start:end] -= nodes
            for weights, room in zip(map(problem.in_use, problem.ceilings), left, strict=True):
                room[start:end] -= weights[pool] * nodes
    if any(task.worth is None and placed[at] is None for at, task in enumerate(problem.tasks)):
        return None
    counts = tuple(_trimmed(pool, mine, spare) for pool, mine, spare in zip(problem.pools, lots, free, strict=True))
    made = Schedule("feasible", tuple(placed[at] for at in range(len(problem.tasks))), lots=counts, bound=0)
    made = replace(made, value=value_of(problem, made))
    return None if check_schedule(problem, made) else made


def _held(problem: Problem, ceiling: Ceiling, lots: Sequence[tuple[int, ...]], room: Ints) -> None:
    """Take from what a ceiling leaves what lots take as long as they are there."""
    for pool, counts, weight in zip(problem.pools, lots, ceiling.weights, strict=True):
        for lot, nodes in zip(pool.lots, counts, strict=True):
            if ceiling.held:
                room[lot.start:lot.end] -= weight * nodes


def _trimmed(pool: Pool, counts: tuple[int, ...], spare: Ints) -> tuple[int, ...]:
    """Return the nodes of each lot without those that nobody uses, the dearest first."""
    kept = list(counts)
    for at in sorted(range(len(kept)), key=lambda number: -pool.lots[number].cost(kept[number])):
        lot = pool.lots[at]
        less = min(kept[at], int(spare[lot.start:lot.end].min(initial=kept[at])))
        kept[at] -= less
        spare[lot.start:lot.end] -= less
    return tuple(kept)


def _needed(problem: Problem) -> set[int]:
    """Return the tasks that must be done, themselves or as others that must be wait for them."""
    needed = [at for at, task in enumerate(problem.tasks) if task.worth is None]
    for at in needed:
        needed += [other for other in problem.tasks[at].after if other not in needed]
    return set(needed)


def _in_order(problem: Problem, ranks: Sequence[float] = ()) -> Iterator[int]:
    """Yield tasks so that what is waited for comes first; of those that may come, what ranks or is due first."""
    waiting, done = set(range(len(problem.tasks))), set[int]()
    while waiting:
        at = min((at for at in waiting if done.issuperset(problem.tasks[at].after)), key=lambda at: (
            ranks[at] if ranks else 0, problem.tasks[at].deadline or problem.tasks[at].due or problem.horizon, at))
        waiting.remove(at)
        done.add(at)
        yield at


def _best(problem: Problem, at: int, ways: Ways, costs: Ints | Floats, first: int, free: list[Ints], left: list[Ints],
          *, hurried: bool) -> int | None:
    """Return the number of the cheapest way from some period on that there is room for, of alike the earliest."""
    possible = ways.start >= first
    for number, option in enumerate(problem.tasks[at].options):
        rooms = [(free[pool], nodes) for pool, nodes in option.held if not problem.pools[pool].is_endless]
        rooms += [(room, sum(weights[pool] * nodes for pool, nodes in option.held))
                  for weights, room in zip(map(problem.in_use, problem.ceilings), left, strict=True)]
        mine = ways.option == number
        for room, nodes in rooms:
            short = np.concatenate([[0], np.cumsum(room < nodes)])
            possible &= ~mine | (short[ways.end] == short[ways.start])
    rows = np.flatnonzero(possible)
    keys = (costs[rows], ways.end[rows]) if hurried else (ways.end[rows], costs[rows])
    return int(rows[np.lexsort(keys)[0]]) if len(rows) else None
