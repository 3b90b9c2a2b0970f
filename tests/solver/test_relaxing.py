"""The bound of many jobs against every schedule tried; and what whole nodes keep that parts of nodes do not."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from benchmarks.portfolios import portfolio
from planner.solver.fleet.exact import within
from planner.solver.fleet.reading import solved
from planner.solver.fleet.relaxing import Relaxing
from planner.solver.fleet.rounded import Rounded
from planner.solver.fleet.schedule import HOUR_SECONDS, Option, Pool, Problem, Task
from planner.solver.settings import Settings
from tests.solver.schedules import by_night, cheapest, random_problem


def crowded(random: Random) -> Problem:
    """Return a question of several tasks on few nodes of their own, which leave a remainder by most sizes."""
    problem = random_problem(random)
    own = replace(problem.pools[0], capacity=tuple(random.choice((3, 5, 5)) for _ in range(problem.periods)))
    tasks = []
    for task in problem.tasks:
        size = random.choice((2, 3, 4))
        options = (Option(0, size, problem.period_seconds * random.randint(1, 2), size * 10**6), *task.options)
        tasks.append(replace(task, options=options[:2]))
    return replace(problem, pools=(own, *problem.pools[1:]), tasks=tuple(tasks))


@pytest.mark.parametrize(("first", "large", "huge"), [
    (0, 50_000, 100_000), (30, 50_000, 100_000), (60, 0, 100_000), (90, 0, 0)])
def test_no_schedule_of_all_is_below_the_bound(monkeypatch: pytest.MonkeyPatch, first: int, large: int, huge: int
                                               ) -> None:
    monkeypatch.setattr("planner.solver.fleet.relaxing.LARGE", large)
    monkeypatch.setattr("planner.solver.fleet.relaxing.HUGE", huge)
    for seed in range(first, first + 30):
        for made in (random_problem, crowded):
            problem = made(Random(f"bound {seed}"))
            best, relaxed = cheapest(problem), Relaxing(problem).solve()
            assert best is None or relaxed is None or relaxed.bound <= best, (made.__name__, seed)


def test_a_relaxation_that_ends_when_rows_were_just_found_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = portfolio(20, 3, 30, 0)
    whole = Relaxing(problem).solve()
    monkeypatch.setattr("planner.solver.fleet.relaxing.ROUNDS", 2)
    relaxation = Relaxing(problem)
    short = relaxation.solve()
    assert len(relaxation.master.rounded.stated) > len(relaxation.master.cuts)
    assert whole is not None
    assert short is not None
    assert 0 < short.bound <= whole.bound


def test_a_cheapest_schedule_is_among_the_ways_that_the_relaxation_leaves() -> None:
    left = every = pausing = 0
    for seed in range(10):
        for made in (crowded, lambda random: by_night(random_problem(random), random)):
            problem = made(Random(f"left {seed}"))
            best, relaxed = cheapest(problem), Relaxing(problem).solve()
            if best is None or relaxed is None:
                continue
            model = within(problem, relaxed, best)
            assert solved(problem, model, Settings()).value == best, seed
            left, every = left + sum(len(mine.ways) for mine in model.tasks), every + sum(map(len, relaxed.ways))
            pausing += sum(len(mine.by_pauses) for mine in model.tasks)
    assert 0 < left < every
    assert pausing


def test_rounded_rows_raise_the_bound_to_the_optimum() -> None:
    # of five nodes, jobs of three leave two to nobody: one of them waits or is rented
    tasks = tuple(Task((Option(0, 3, HOUR_SECONDS), Option(1, 3, HOUR_SECONDS, 30 * 10**6)), worth=90 * 10**6)
                  for _ in range(3))
    problem = Problem(1, HOUR_SECONDS, (Pool((5,)), Pool(None, 10**7)), tasks)
    relaxed = Relaxing(problem).solve()
    assert relaxed is not None
    assert relaxed.bound == pytest.approx(60 * 10**6, rel=1e-6)
    assert cheapest(problem) == 60 * 10**6


def test_every_set_of_whole_jobs_that_fits_keeps_the_rounded_rows() -> None:
    random = Random(7)
    for _ in range(300):
        capacity, lots = random.randint(1, 20), random.randint(0, 4)
        sizes = [random.randint(1, 9) for _ in range(random.randint(1, 6))]
        if sum(sizes) > capacity + lots:
            continue
        rounded = Rounded(Problem(1, HOUR_SECONDS, (Pool((capacity,)),)), [(0, size) for size in sizes])
        for divisor in range(2, 10):
            taken = sum(int(rounded.weights(0, divisor, size)[0]) for size in sizes)
            assert taken <= int(rounded.most(0, divisor)[0]) + lots, (capacity, lots, sizes, divisor)
    assert np.array_equal(Rounded(Problem(1, HOUR_SECONDS, (Pool((14,)),)), [(0, 8)]).weights(0, 8, 8), [2])
