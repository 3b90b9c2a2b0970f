"""The judge of portfolios agrees with every schedule tried, finds what is wrong, and holds answers to its greedy."""

from dataclasses import replace
from random import Random

import pytest

from benchmarks.judged import cost, faults
from benchmarks.placed import apart, bound, drawn, listed
from planner.solver.fleet.schedule import DAY_SECONDS
from planner.solver.fleet.scheduling import LIMITED, schedule
from planner.solver.settings import Settings
from tests.solver.schedules import cheapest, paying, random_problem


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_the_judge_agrees_with_every_schedule_tried(first):
    done = 0
    for seed in range(first, first + 20):
        problem = random_problem(Random(seed))
        problem = paying(problem, Random(seed)) if seed % 3 == 0 else problem
        best, plain, found = cheapest(problem), listed(problem), schedule(problem, Settings())
        if best is None:
            assert plain is None
            continue
        done += 1
        assert faults(problem, found) == []
        assert bound(problem) <= best == cost(problem, found)
        assert plain is None or plain.value >= best
    assert done > 5


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_keeps_what_is_asked_and_is_no_dearer_than_a_greedy_or_the_jobs_apart(seed):
    problem = drawn(seed, most=9)
    found = schedule(problem, LIMITED)
    assert found.value is not None
    assert found.bound is not None
    assert faults(problem, found) == []
    others = [usd for usd in ((listed(problem) or found).value, apart(problem)) if usd is not None]
    assert bound(problem) <= found.value <= min(others)
    assert found.bound <= found.value


def test_the_judge_finds_what_is_wrong():
    problem = drawn(3, most=9)
    found = listed(problem)
    assert found is not None
    at, placed = next((at, placed) for at, placed in enumerate(found.tasks) if placed is not None)
    moved = replace(placed, runs=tuple((start - 99, end - 99) for start, end in placed.runs))
    tasks = (*found.tasks[:at], moved, *found.tasks[at + 1:])
    assert f"job {at}: early" in faults(problem, replace(found, tasks=tasks))
    assert any("said to cost" in one for one in faults(problem, replace(found, value=(found.value or 0) - 1)))
    empty = replace(problem, pools=tuple(pool if pool.capacity is None else replace(
        pool, capacity=(0,) * problem.periods) for pool in problem.pools))
    assert any("nodes too many" in one for one in faults(empty, found))
    late = replace(problem, tasks=tuple(replace(task, deadline=DAY_SECONDS // 2, due=None) for task in problem.tasks))
    assert any(one.endswith("late") for one in faults(late, found))
