"""A first schedule in no time: services and every task as if each were alone, so that no plan is dearer than all apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.greedy import greedy, in_order, needed_by
from planner.solver.fleet.reading import solved, value_of
from planner.solver.fleet.schedule import NodeBlock, Option, Placed, Problem, Schedule
from planner.solver.fleet.scheduling_model import Scheduling
from planner.solver.fleet.ways import Floats, TaskWays, every_way
from planner.solver.settings import Settings

BRIEF = 1.0
"""Of CP-SAT's own time, for services alone."""


def first_of(problem: Problem, settings: Settings) -> Schedule | None:
    """Return the cheaper of tasks apart and of task after task, beside services alone; none where neither is one."""
    if problem.stocks:
        return None
    served = _served(replace(problem, tasks=()), settings)
    if served.value is None:
        return None
    made = [one for one in (greedy(problem, served), apart(problem, served)) if one is not None]
    return min(made, key=lambda one: one.value or 0, default=None)


def _served(problem: Problem, settings: Settings) -> Schedule:
    """Return services alone: on what is rented, or as a short search finds them where there are other nodes."""
    rented = _rented(problem)
    known = None if check_schedule(problem, rented) else rented
    if known is not None and all(problem.pools[block.pool].is_endless
                                 for service in problem.services for block in service.blocks):
        return known
    limit = min(BRIEF, settings.deterministic_limit or BRIEF)
    found = solved(problem, Scheduling(problem), replace(settings, deterministic_limit=limit, heard=None), known)
    return min([one for one in (known, found) if one is not None and one.value is not None],
               key=lambda one: one.value or 0, default=found)


def _rented(problem: Problem) -> Schedule:
    """Return services alone, each hour on the replicas that cost the least of those taken as needed."""
    services = tuple(tuple(tuple(_counts(problem, service.blocks, need) for need, _ in load.needs)
                           for load in service.loads) for service in problem.services)
    made = Schedule("feasible", (), services, tuple((0,) * len(pool.lots) for pool in problem.pools), bound=0)
    return replace(made, value=value_of(problem, made))


def _counts(problem: Problem, blocks: Sequence[NodeBlock], need: int) -> tuple[int, ...]:
    """Return how many of each block answer a need for least, all of one kind; none where none is taken as needed."""
    usd = [(-(-need // block.micro_rate) * block.nodes * problem.pools[block.pool].micro_usd_per_node_hour, at)
           for at, block in enumerate(blocks) if problem.pools[block.pool].is_endless]
    best = min(usd)[1] if usd else -1
    return tuple(-(-need // block.micro_rate) if at == best else 0 for at, block in enumerate(blocks))


def apart(problem: Problem, served: Schedule) -> Schedule | None:
    """Return every task in its cheapest way on nodes of its own, rented or had for it alone, beside services that have
    theirs; none where that keeps no limit.
    """
    ways, placed = every_way(problem), dict[int, Placed | None]()
    lots = [list(mine) for mine in served.lots]
    needed = needed_by(problem, {at for at, task in enumerate(problem.tasks) if task.worth is None})
    for at in in_order(problem):
        task, mine = problem.tasks[at], ways[at]
        before = [placed[other] for other in task.after]
        placed[at] = None
        if any(one is None for one in before):
            continue
        costs = mine.micro_usd + _paid(problem, task.options, mine)
        costs[mine.start < max((one.runs[-1][1] for one in before if one is not None), default=0)] = np.inf
        if not len(costs) or not np.isfinite(costs.min()):
            continue
        found = int(np.lexsort((mine.end, costs))[0])
        if at not in needed and task.worth is not None and costs[found] >= task.worth:
            continue
        option, start, end = task.options[int(mine.option[found])], int(mine.start[found]), int(mine.end[found])
        placed[at] = Placed(int(mine.option[found]), ((start, end),))
        for pool, nodes in option.held:
            if problem.pools[pool].lots:
                _, lot = min(_lots(problem, pool, nodes, start, end))
                lots[pool][lot] += nodes
    if any(count > lot.most for pool, mine in zip(problem.pools, lots, strict=True)
           for lot, count in zip(pool.lots, mine, strict=True)):
        return None
    made = Schedule("feasible", tuple(placed[at] for at in range(len(problem.tasks))), served.services,
                    tuple(map(tuple, lots)), bound=0)
    made = replace(made, value=value_of(problem, made))
    return None if check_schedule(problem, made) else made


def _paid(problem: Problem, options: tuple[Option, ...], ways: TaskWays) -> Floats:
    """Return what each way pays for nodes that come in lots, the cheapest that last; endless on nodes that are there.
    """
    more = np.zeros(len(ways))
    for number, option in enumerate(options):
        mine = np.flatnonzero(ways.option == number)
        for pool, nodes in option.held:
            if problem.pools[pool].capacity is not None:
                more[mine] = np.inf
            elif problem.pools[pool].lots:
                for way in mine:
                    more[way] += min((usd for usd, _ in _lots(
                        problem, pool, nodes, int(ways.start[way]), int(ways.end[way]))), default=np.inf)
    return more


def _lots(problem: Problem, pool: int, nodes: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what nodes cost in each lot that is there from one period to another, and its number."""
    for at, lot in enumerate(problem.pools[pool].lots):
        if lot.start <= start and end <= min(lot.end, problem.periods) and nodes <= lot.most:
            yield lot.cost(nodes), at
