"""A first schedule in no time: task after task at the least it costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.solver.check_schedule import check_schedule, serving, there
from planner.solver.fleet.program import Ints
from planner.solver.fleet.reading import value_of
from planner.solver.fleet.schedule import Ceiling, Counts, Placed, Pool, Problem, Schedule
from planner.solver.fleet.ways import Floats, TaskWays, every_way


def greedy(problem: Problem, served: Schedule | None = None) -> Schedule | None:
    """Return a schedule of tasks on what is owned or taken as needed, beside services and lots as they are `served`;
    none where this way finds none, or there are stocks, or services that are not.
    """
    if (problem.services and served is None) or problem.stocks:
        return None
    ways = every_way(problem)
    nothing = [(0,) * len(pool.lots) for pool in problem.pools] if served is None else served.lots
    usd, needed = [mine.micro_usd for mine in ways], needed_by(problem, {
        at for at, task in enumerate(problem.tasks) if task.worth is None})
    worth = [np.inf if at in needed or task.worth is None else float(task.worth)
             for at, task in enumerate(problem.tasks)]
    waited = {other for task in problem.tasks for other in task.after}
    for hurried in (set[int](), waited):
        made = Placing(problem, ways, usd, worth, nothing, () if served is None else served.services).made(
            in_order(problem), hurried)
        if not any(task.worth is None and placed is None for task, placed in zip(
                problem.tasks, made.tasks, strict=True)) and not check_schedule(problem, made):
            return made
    return None


@dataclass(frozen=True, slots=True)
class Placing:
    """What tasks are placed by: ways with what each costs, what rejecting costs, and nodes of lots."""

    problem: Problem
    ways: Sequence[TaskWays]
    costs: Sequence[Ints | Floats]
    worth: Sequence[float]
    """From which cost on a task is rejected."""
    lots: Sequence[tuple[int, ...]]
    served: tuple[Counts, ...] = ()
    """Blocks that services are on."""

    def made(self, order: Iterator[int], hurried: Collection[int]) -> Schedule:
        """Return a schedule; hurried: tasks that end as early as they can. What finds no place is rejected."""
        problem = self.problem
        free = [np.array(there(problem, pool, counts) or (0,) * problem.periods, dtype=np.int64)
                for pool, counts in zip(problem.pools, self.lots, strict=True)]
        left = [_left(problem, ceiling, self.lots) for ceiling in problem.ceilings]
        for taken in serving(problem, Schedule("feasible", services=self.served)) if self.served else ():
            for pool, nodes_of in enumerate(taken):
                free[pool] -= np.array(nodes_of)
                for number, ceiling in enumerate(problem.ceilings):
                    left[number] -= problem.in_use(ceiling)[pool] * np.array(nodes_of)
        placed = dict[int, Placed | None]()
        for at in order:
            task, mine = problem.tasks[at], self.ways[at]
            before = [placed[other] for other in task.after]
            if any(one is None for one in before):
                placed[at] = None
                continue
            first = max((one.runs[-1][1] for one in before if one is not None), default=0)
            found = _best(problem, at, mine, self.costs[at], first, free, left, hurried=at in hurried)
            if found is None or self.costs[at][found] >= self.worth[at]:
                placed[at] = None
                continue
            option = task.options[int(mine.option[found])]
            start, end = int(mine.start[found]), int(mine.end[found])
            placed[at] = Placed(int(mine.option[found]), ((start, end),))
            for pool, nodes in option.held:
                if not problem.pools[pool].is_endless:
                    free[pool][start:end] -= nodes
                for weights, room in zip(map(problem.in_use, problem.ceilings), left, strict=True):
                    room[start:end] -= weights[pool] * nodes
        lots = tuple(_trimmed(pool, mine, spare) for pool, mine, spare in zip(
            problem.pools, self.lots, free, strict=True))
        made = Schedule("feasible", tuple(placed[at] for at in range(len(problem.tasks))), self.served, lots,
                        bound=0)
        return replace(made, value=value_of(problem, made))


def _left(problem: Problem, ceiling: Ceiling, lots: Sequence[tuple[int, ...]]) -> Ints:
    """Return what a ceiling leaves in each period beside lots that count as long as they are there."""
    room = np.full(problem.periods, ceiling.most, dtype=np.int64)
    for pool, counts, weight in zip(problem.pools, lots, ceiling.weights, strict=True):
        for lot, nodes in zip(pool.lots, counts, strict=True):
            if ceiling.held:
                room[lot.start:lot.end] -= weight * nodes
    return room


def _trimmed(pool: Pool, counts: tuple[int, ...], spare: Ints) -> tuple[int, ...]:
    """Return the nodes of each lot without those that nobody uses, the dearest first."""
    kept = list(counts)
    for at in sorted(range(len(kept)), key=lambda number: -pool.lots[number].cost(kept[number])):
        lot = pool.lots[at]
        less = min(kept[at], int(spare[lot.start:lot.end].min(initial=kept[at])))
        kept[at] -= less
        spare[lot.start:lot.end] -= less
    return tuple(kept)


def needed_by(problem: Problem, must: Collection[int]) -> set[int]:
    """Return the tasks that must be done, themselves or as others that must be wait for them."""
    needed = list(must)
    for at in needed:
        needed += [other for other in problem.tasks[at].after if other not in needed]
    return set(needed)


def in_order(problem: Problem, ranks: Sequence[float] = ()) -> Iterator[int]:
    """Yield tasks so that what is waited for comes first; of those that may come, what ranks or is due first."""
    waiting, done = set(range(len(problem.tasks))), set[int]()
    while waiting:
        at = min((at for at in waiting if done.issuperset(problem.tasks[at].after)), key=lambda at: (
            ranks[at] if ranks else 0, problem.tasks[at].deadline or problem.tasks[at].due or problem.horizon, at))
        waiting.remove(at)
        done.add(at)
        yield at


def _best(problem: Problem, at: int, ways: TaskWays, costs: Ints | Floats, first: int, free: list[Ints],
          left: list[Ints], *, hurried: bool) -> int | None:
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
