"""Portfolios judged by what shares no predicate with the solver: only the question and the answer are shared.

Dates, nodes, ceilings and money are recomputed here; `benchmarks.placed` has a greedy and a bound of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planner.solver.fleet.schedule import Placed, Problem, Purse, Schedule, Task

Nodes = NDArray[np.int64]
"""By pool and period."""
HOUR, DAY, CENT = 3600, 86_400, 10_000
Money = tuple[int, int, int]
"""Micro-USD, and the seconds from and to which it is spread."""


def faults(problem: Problem, found: Schedule) -> list[str]:
    """Return what is wrong with an answer, and with what it says that it costs."""
    busy = np.zeros((len(problem.pools), problem.periods), dtype=np.int64)
    wrong = [*_ran(problem, found, busy), *_answered(problem, found, busy)]
    held = had(problem, found.lots)
    for at, (pool, mine, there) in enumerate(zip(problem.pools, busy, held, strict=True)):
        wrong += [f"pool {at}: {int((mine - there).max())} nodes too many"] if (
            stays(problem, at) and (mine > there).any()) else []
        wrong += [f"pool {at}: {count} of a lot of {lot.most}" for lot, count in zip(
            pool.lots, found.lots[at], strict=True) if not 0 <= count <= lot.most]
    for ceiling in problem.ceilings:
        total = sum(weight * (there if ceiling.held and pool.lots else mine) for weight, pool, mine, there in zip(
            ceiling.weights, problem.pools, busy, held, strict=True))
        wrong += ["above a ceiling"] if (np.asarray(total) > ceiling.most).any() else []
    return wrong + list(_money(problem, found))


def _ran(problem: Problem, found: Schedule, busy: Nodes) -> Iterator[str]:
    """Yield what is wrong with when jobs run, and add the nodes that they are on."""
    size = problem.period_seconds
    ends = [None if placed is None else end_of(problem, task, placed)
            for task, placed in zip(problem.tasks, found.tasks, strict=True)]
    for at, (task, placed, end) in enumerate(zip(problem.tasks, found.tasks, ends, strict=True)):
        if placed is None or end is None:
            yield from [f"job {at} is not done"] if task.worth is None else []
            continue
        option, runs = task.options[placed.option], placed.runs
        begin = runs[0][0] * size
        length = sum(then - first for first, then in runs) * size
        work = option.seconds + (len(runs) - 1) * option.resume_seconds
        late = end > min(problem.horizon, problem.horizon if task.deadline is None else task.deadline)
        waits = any((before := ends[other]) is None or before > begin for other in task.after)
        for said, is_so in (("early", begin < task.release), ("late", late), ("overtakes", waits),
                            ("short", work > length), ("long", length - work >= size),
                            ("pauses", len(runs) > 1 and not (task.may_pause and stays(problem, option.pool))),
                            ("out of order", any(then > first for (_, then), (first, _) in pairwise(runs)))):
            yield from [f"job {at}: {said}"] if is_so else []
        for first, then in runs:
            busy[option.pool, first:then] += option.nodes


def _answered(problem: Problem, found: Schedule, busy: Nodes) -> Iterator[str]:
    """Yield what services do not answer, and add the nodes that they are on."""
    for service, counts in zip(problem.services, found.services, strict=True):
        for load, rows in zip(service.loads, counts, strict=True):
            for (need, _), row in zip(load.needs, rows, strict=True):
                rate = sum(count * block.micro_rate for count, block in zip(row, service.blocks, strict=True))
                yield from [f"answers {rate} of {need}"] if rate < need else []
            for pool in range(len(problem.pools)):
                busy[pool, list(load.periods)] += max(sum(
                    count * block.nodes for count, block in zip(row, service.blocks, strict=True)
                    if block.pool == pool) for row in rows)


def stays(problem: Problem, pool: int) -> bool:
    """Say whether nodes are there in some number, and not taken as needed."""
    return problem.pools[pool].capacity is not None or bool(problem.pools[pool].lots)


def end_of(problem: Problem, task: Task, placed: Placed) -> int:
    """Return the second at which a job ends."""
    size = problem.period_seconds
    return placed.runs[-1][1] * size if len(placed.runs) > 1 else (
        placed.runs[0][0] * size + task.options[placed.option].seconds)


def had(problem: Problem, lots: Sequence[Sequence[int]]) -> Nodes:
    """Return the nodes that are there, by pool and period."""
    nodes = np.array([pool.capacity or (0,) * problem.periods for pool in problem.pools], dtype=np.int64)
    for at, (pool, counts) in enumerate(zip(problem.pools, lots, strict=True)):
        for lot, count in zip(pool.lots, counts, strict=True):
            nodes[at, lot.start:lot.end] += count
    return nodes


def spent(problem: Problem, found: Schedule) -> Iterator[Money]:
    """Yield all that is paid, without what is forgone or late."""
    size = problem.period_seconds
    for task, placed in zip(problem.tasks, found.tasks, strict=True):
        if placed is not None:
            option, last = task.options[placed.option], end_of(problem, task, placed)
            usd = option.micro_usd + (len(placed.runs) - 1) * option.resume_micro_usd
            whole, done = sum(then - first for first, then in placed.runs), 0
            for first, then in placed.runs:
                part = usd * (done + then - first) // whole - usd * done // whole
                done += then - first
                yield part, first * size, then * size if len(placed.runs) > 1 else last
    for service, counts in zip(problem.services, found.services, strict=True):
        for load, rows in zip(service.loads, counts, strict=True):
            usd = sum(hours * count * block.nodes * problem.pools[block.pool].micro_usd_per_node_hour
                      for (_, hours), row in zip(load.needs, rows, strict=True)
                      for count, block in zip(row, service.blocks, strict=True))
            yield from ((usd, period * size, (period + 1) * size) for period in load.periods)
    for pool, bought in zip(problem.pools, found.lots, strict=True):
        for lot, count in zip(pool.lots, bought, strict=True):
            usd = count * lot.micro_usd[0] if len(lot.micro_usd) == 1 else lot.micro_usd[count]
            yield usd, lot.start * size, lot.end * size


def spent_in(problem: Problem, found: Schedule, purse: Purse) -> Fraction:
    """Return the micro-USD that are spent in the time of a purse, each payment evenly over its own time."""
    return sum((usd * Fraction(max(0, min(end, purse.end) - max(start, purse.start)), end - start)
                for usd, start, end in spent(problem, found)), Fraction())


def late_usd(task: Task, end: int) -> int:
    """Return the micro-USD of ending then, up to whole cents."""
    return 0 if task.due is None else -(-max(0, end - task.due) * task.late_cents_per_day // DAY) * CENT


def cost(problem: Problem, found: Schedule) -> int:
    """Return all that a schedule costs, in micro-USD, with what is forgone and late."""
    return sum(usd for usd, _, _ in spent(problem, found)) + sum(
        (task.worth or 0) if placed is None else late_usd(task, end_of(problem, task, placed))
        for task, placed in zip(problem.tasks, found.tasks, strict=True))


def _money(problem: Problem, found: Schedule) -> Iterator[str]:
    entries, value = list(spent(problem, found)), cost(problem, found)
    if found.value is not None and value != found.value:
        yield f"costs {value} micro-USD, said to cost {found.value}"
    if problem.budget is not None and sum(usd for usd, _, _ in entries) > problem.budget:
        yield "above the budget"
    for purse in problem.purses:
        within = spent_in(problem, found, purse)
        if within > purse.micro_usd:
            yield f"{float(within)} micro-USD in a quarter of {purse.micro_usd}"
