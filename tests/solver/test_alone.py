"""Plans are never dearer than jobs planned one after the other by a greedy of the tests' own; every cent is added anew.

Nothing here is the planner's: what there is in a period, what a job costs and what keeps its dates is restated.
"""

from fractions import Fraction

import pytest

from benchmarks.portfolios import portfolio
from planner.solver.fleet.recreating import recreated
from planner.solver.fleet.relaxing import Relaxing
from planner.solver.fleet.schedule import Problem, Schedule
from planner.solver.fleet.windows import improved
from planner.solver.settings import Settings

LIMITED = Settings(deterministic_limit=1.0, linearization=2)
DAY, CENT = 86_400, 10_000


def late(task: object, end: int) -> int:
    """Return the price of an end, up to whole cents."""
    if task.due is None or end <= task.due:
        return 0
    cents = Fraction((end - task.due) * task.late_cents_per_day, DAY)
    return -(-cents.numerator // cents.denominator) * CENT


def possible(problem: Problem, free: list, task: object, after: int) -> list:
    """Return cost, end, option and periods of each way that there is room for, on what is owned or rented."""
    size, found = problem.period_seconds, []
    for option in (one for one in task.options if not problem.pools[one.pool].lots):
        room = free[option.pool]
        for period in range(-(-max(task.release, after) // size), problem.periods):
            end = period * size + option.seconds
            taken = range(period, -(-end // size))
            if end <= (problem.horizon if task.deadline is None else task.deadline) and (
                    room is None or all(room[one] >= option.nodes for one in taken)):
                found.append((option.micro_usd + late(task, end), end, option, taken))
    return found


def one_by_one(problem: Problem) -> int | None:
    """Return what jobs cost that are placed in their order, each where it is cheapest, without purchases; or none."""
    total, ends = 0, []
    free = [None if pool.capacity is None else list(pool.capacity) for pool in problem.pools]
    for task in problem.tasks:
        waits = [ends[other] for other in task.after]
        ways = [] if None in waits else possible(problem, free, task, max(waits, default=0))
        best = min(ways, key=lambda one: one[:2], default=None)
        if best is None or (task.worth is not None and task.worth < best[0]):
            if task.worth is None:
                return None
            total += task.worth
            ends.append(None)
            continue
        total += best[0]
        ends.append(best[1])
        for one in best[3] if free[best[2].pool] is not None else ():
            free[best[2].pool][one] -= best[2].nodes
    return total


def recounted(problem: Problem, found: Schedule) -> int:
    """Return what a schedule costs with all that is bought and reserved, and assert that it can be had."""
    size, total = problem.period_seconds, 0
    used = [[0] * problem.periods for _ in problem.pools]
    ends = []
    for task, placed in zip(problem.tasks, found.tasks, strict=True):
        if placed is None:
            assert task.worth is not None
            total += task.worth
            ends.append(None)
            continue
        option = task.options[placed.option]
        pauses = len(placed.runs) - 1
        assert pauses == 0 or task.may_pause
        for start, end in placed.runs:
            for period in range(start, end):
                used[option.pool][period] += option.nodes
        if pauses:
            end = placed.runs[-1][1] * size
            assert sum(last - first for first, last in placed.runs) * size >= (
                option.seconds + pauses * option.resume_seconds)
        else:
            end = placed.runs[0][0] * size + option.seconds
            assert placed.runs[0][1] * size >= end
        assert placed.runs[0][0] * size >= task.release
        assert end <= (problem.horizon if task.deadline is None else task.deadline)
        ends.append(end)
        total += option.micro_usd + pauses * option.resume_micro_usd + late(task, end)
    for task, placed in zip(problem.tasks, found.tasks, strict=True):
        if placed is not None:
            assert all(ends[other] is not None and ends[other] <= placed.runs[0][0] * size for other in task.after)
    return total + supplied(problem, found, used)


def supplied(problem: Problem, found: Schedule, used: list) -> int:
    """Return what is bought and reserved, and assert that nodes are there when they are used."""
    total = 0
    for pool, taken, counts in zip(problem.pools, used, found.lots, strict=True):
        for period, nodes in enumerate(taken):
            there = pool.capacity[period] if pool.capacity else 0
            there += sum(count for lot, count in zip(pool.lots, counts, strict=True) if lot.start <= period < lot.end)
            assert nodes <= there or (pool.capacity is None and not pool.lots)
        for lot, count in zip(pool.lots, counts, strict=True):
            assert 0 <= count <= lot.most
            total += count * lot.micro_usd[0] if len(lot.micro_usd) == 1 else lot.micro_usd[count]
    return total


@pytest.mark.parametrize("seed", range(4))
def test_no_plan_is_dearer_than_its_jobs_one_after_the_other(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.solver.fleet.windows.ROUNDS", 5_000)  # the jobs are ten
    problem = portfolio(10, 4, 20, seed)
    found, plain = improved(problem, LIMITED), one_by_one(problem)
    assert found.value is not None
    assert plain is None or found.value <= plain
    assert found.bound is not None
    assert found.bound <= found.value == recounted(problem, found)


def test_moving_jobs_only_makes_a_schedule_cheaper_and_the_same_twice() -> None:
    problem = portfolio(10, 4, 20, 1)
    relaxed, start = Relaxing(problem).solve(), improved(problem, LIMITED)
    assert relaxed is not None
    made = [recreated(problem, (), relaxed, start, 300, 7) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0].value is not None
    assert made[0].value <= (start.value or 0)
    assert recounted(problem, made[0]) == made[0].value
