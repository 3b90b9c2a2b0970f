"""Many jobs on one fleet: the model against every schedule tried, and the check against schedules that are wrong."""

from dataclasses import replace
from random import Random

import pytest

from planner.solver.check_schedule import check_schedule
from planner.solver.fleet import even, exact, scheduling
from planner.solver.fleet.apart import first_of
from planner.solver.fleet.compressing import compress
from planner.solver.fleet.evolving import Evolution
from planner.solver.fleet.reading import value_of
from planner.solver.fleet.schedule import CENT, Lot, Option, Placed, Pool, Problem, Purse, Schedule, Task
from planner.solver.fleet.scheduling import LIMITED, keeping, schedule
from planner.solver.fleet.waiting import EVOLVED, PLACED_A_UNIT, by_start
from planner.solver.settings import Settings
from tests.solver.schedules import by_night, cheapest, holding_more, paying, random_problem, turning, waiting

DAY = 86_400
SEEDS = range(0, 500, 50)


@pytest.mark.parametrize("first", SEEDS)
def test_the_model_is_as_cheap_as_every_schedule_tried(first):
    for seed in range(first, first + 50):
        problem = random_problem(Random(seed))
        best, found = cheapest(problem), schedule(problem, Settings())
        assert (found.status, found.value) == ("infeasible" if best is None else "optimal", best), seed
        assert check_schedule(problem, found) == [], seed


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_options_that_hold_several_pools_and_use_up_stocks_are_as_cheap_as_every_schedule_tried(first):
    for seed in range(first, first + 30):
        problem = holding_more(random_problem(Random(seed)), Random(seed + 1))
        best, found = cheapest(problem), schedule(problem, Settings())
        assert (found.status, found.value) == ("infeasible" if best is None else "optimal", best), seed
        assert check_schedule(problem, found) == [], seed


@pytest.mark.parametrize("first", range(0, 60, 20))
@pytest.mark.parametrize("asked", [paying, by_night, turning, lambda problem, random: paying(turning(
    problem, random), random)])
def test_budgets_by_time_and_nights_of_services_are_as_cheap_as_every_schedule_tried(asked, first):
    for seed in range(first, first + 20):
        problem = asked(random_problem(Random(seed)), Random(seed + 1))
        best, found = cheapest(problem), schedule(problem, Settings())
        assert (found.status, found.value) == ("infeasible" if best is None else "optimal", best), seed
        assert check_schedule(problem, found) == [], seed


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_tasks_that_wait_are_as_cheap_by_when_they_start_as_every_schedule_tried(first):
    for seed in range(first, first + 40):
        problem = waiting(holding_more(random_problem(Random(seed)), Random(seed + 1)))
        best, found = cheapest(problem), by_start(problem, Settings())
        assert (found.status, found.value) == ("infeasible" if best is None else "optimal", best), seed
        assert check_schedule(problem, found) == [], seed


def project(seed, count=24):
    """Tasks that wait for each other in two modes on two pools, with a stock; what the last one's end costs counts."""
    random = Random(seed)
    tasks = []
    for at in range(count):
        modes = ((random.randint(1, 4), 3), (random.randint(4, 9), 1))
        options = tuple(Option(0, random.randint(1, 6), hours * 3600, beside=((1, random.randint(0, 6)),), uses=(used,))
                        for hours, used in modes)
        tasks.append(Task(options, after=tuple(sorted(set(random.sample(range(at), min(at, 2)))))))
    end = Task((Option(2, 0, 1),), due=1, late_cents_per_day=24, after=tuple(range(count)))
    return Problem(240, 3600, (Pool((10,) * 240), Pool((9,) * 100 + (3,) * 140), Pool()), (*tasks, end),
                   stocks=(2 * count,))


def test_lists_of_tasks_that_wait_are_schedules_and_go_on_to_better_ones():
    few, many = [], []
    for seed in range(3):
        problem = project(seed)
        evolution = Evolution(problem, seed)
        for count, made in ((20, few), (200, many)):
            evolution.run(count, 0)
            found = Schedule("feasible", evolution.placed, (), ((), (), ()), bound=0)
            found = replace(found, value=value_of(problem, found))
            assert check_schedule(problem, found) == [], seed
            made.append(found.value // CENT)
        again = Evolution(problem, seed)
        again.run(200, 0)
        assert again.placed == evolution.placed
    assert sum(many) < sum(few)


def test_windows_placed_anew_make_schedules_that_hold_and_are_shorter():
    before, after = 0, 0
    for seed in range(3):
        problem = project(seed)
        evolution = Evolution(problem, seed)
        evolution.run(40, 0)
        before += evolution.best.rank[0]
        compress(evolution, Settings(deterministic_limit=0.06), 0)
        after += evolution.best.rank[0]
        found = Schedule("feasible", evolution.placed, (), ((), (), ()), bound=0)
        found = replace(found, value=value_of(problem, found))
        assert check_schedule(problem, found) == [], seed
        assert found.value == evolution.best.rank[0]
    assert after < before


def test_what_uses_pools_evenly_is_a_bound_of_every_schedule_and_keeps_stocks(monkeypatch):
    monkeypatch.setattr(even, "COUNT", 3)
    known = 0
    for seed in range(40):
        problem = waiting(holding_more(random_problem(Random(seed)), Random(seed + 1)))
        best, (bound, modes) = cheapest(problem), even.evenly(problem, Settings(deterministic_limit=0.3))
        assert best is None or bound <= best, seed
        known += bound > 0
        for options in modes:
            assert all(sum((task.options[at].uses or (0,) * len(problem.stocks))[stock] for task, at in zip(
                problem.tasks, options, strict=True)) <= most for stock, most in enumerate(problem.stocks)), seed
    assert known


def test_a_short_search_by_when_tasks_start_goes_on_from_lists():
    problem, brief = project(1), Settings(deterministic_limit=0.02)
    evolution = Evolution(problem, brief.seed)
    evolution.run(round(brief.deterministic_limit * EVOLVED * PLACED_A_UNIT / len(problem.tasks)), 0)
    lists = value_of(problem, Schedule("feasible", evolution.placed, (), ((), (), ())))
    found = by_start(problem, brief)
    assert check_schedule(problem, found) == []
    assert found.bound <= found.value <= lists


def test_a_stock_and_a_pool_beside_are_rechecked():
    task = Task((Option(0, 1, DAY, beside=((1, 2),), uses=(3,)),))
    problem = Problem(2, DAY, (Pool((1, 1)), Pool((2, 2))), (task, task), stocks=(6,))
    fits = Schedule("optimal", (Placed(0, ((0, 1),)), Placed(0, ((1, 2),))), (), ((), ()), 0, 0)
    assert check_schedule(problem, fits) == []
    assert "of stock 0" in check_schedule(replace(problem, stocks=(5,)), fits)[0]
    assert "pool 1: 4 nodes of 2" in "; ".join(check_schedule(problem, replace(fits, tasks=(fits.tasks[0],) * 2)))


def test_seeds_see_every_kind_of_answer():
    found = [schedule(random_problem(Random(seed)), Settings()) for seed in range(150)]
    assert any(one.status == "infeasible" for one in found)
    assert any(placed is None for one in found for placed in one.tasks)
    assert any(placed and len(placed.runs) > 1 for one in found for placed in one.tasks)
    assert any(any(counts) for one in found for counts in one.lots)


def test_money_of_a_quarter_moves_a_job_or_leaves_none():
    task = Task((Option(0, 1, 2 * DAY, 200 * 10**6),))
    purses = (Purse(0, 3 * DAY, 10**6), Purse(3 * DAY, 6 * DAY, 10**9))
    problem = Problem(6, DAY, (Pool(None, 1),), (task,), purses=purses)
    found = schedule(problem, Settings())
    assert found.tasks[0].runs == ((3, 5),)
    assert schedule(replace(problem, purses=(Purse(0, 6 * DAY, 199 * 10**6),)), Settings()).status == "infeasible"


OWN = Pool((2, 2, 0, 2), 0)
BOUGHT = Pool(lots=(Lot(1, 4, (5,), 3),))
RIGHT = Problem(4, DAY, (OWN, BOUGHT), (
    Task((Option(0, 2, DAY + 1),), deadline=2 * DAY), Task((Option(1, 1, DAY),), after=(0,), worth=9),
    Task((Option(0, 1, 2 * DAY, 6, 60, 1),), release=DAY, due=3 * DAY, late_cents_per_day=2, may_pause=True)))
FOUND = Schedule("optimal", (Placed(0, ((0, 2),)), Placed(0, ((2, 3),)), None), (), ((), (1,)), 5, 5)


@pytest.mark.parametrize(("change", "words"), [
    ({"tasks": (Placed(0, ((1, 3),)), *FOUND.tasks[1:])}, "after its deadline"),
    ({"tasks": (FOUND.tasks[0], Placed(0, ((1, 2),)), FOUND.tasks[2])}, "before task 0 has ended"),
    ({"tasks": (None, *FOUND.tasks[1:])}, "must be done"),
    ({"lots": ((), (0,))}, "pool 1: 1 nodes of 0"),
    ({"lots": ((), (4,))}, "4 nodes of a lot of 3"),
    ({"value": 6, "bound": 6}, "the answer says 6"),
    ({"bound": 4}, "optimal with bound"),
    ({"tasks": (*FOUND.tasks[:2], Placed(0, ((0, 2),)))}, "before its release"),
    ({"tasks": (*FOUND.tasks[:2], Placed(0, ((1, 3),)))}, "nodes of 0 in period 2"),
    ({"tasks": (Placed(0, ((0, 1), (2, 3))), *FOUND.tasks[1:])}, "may not be"),
    ({"tasks": (*FOUND.tasks[:2], Placed(0, ((1, 2), (3, 4))))}, "seconds of work")])
def test_the_check_finds_what_is_wrong(change, words):
    problem = replace(RIGHT, tasks=(*RIGHT.tasks[:2], replace(RIGHT.tasks[2], worth=0)))
    assert check_schedule(problem, FOUND) == []
    assert words in "; ".join(check_schedule(problem, replace(FOUND, **change)))


def test_every_task_at_its_least_is_optimal_only_where_no_schedule_is_cheaper(monkeypatch):
    monkeypatch.setattr(scheduling, "MUCH", 1)
    proven = 0
    for seed in range(1000, 1080):
        drawn = random_problem(Random(seed))
        problem = replace(drawn, pools=tuple(replace(pool, lots=(), capacity=pool.capacity or (
            (2,) * drawn.periods if pool.lots else None)) for pool in drawn.pools))
        best, found = cheapest(problem), schedule(problem, Settings())
        assert (found.status, found.value) == ("infeasible" if best is None else "optimal", best), seed
        tried = scheduling._cheap(problem, Settings())
        proven += tried is not None and tried.status == "optimal" and tried.value == best
    assert proven > 5


def test_what_is_added_starts_early_and_without_a_pause_beside_what_stays():
    problem = Problem(9, DAY, (Pool((2,) * 9),), tuple(
        Task((Option(0, 1, DAY * days),), may_pause=days > 2) for days in (1, 2, 3)))
    found = Schedule("optimal", (Placed(0, ((0, 1),)), Placed(0, ((4, 6),)), Placed(0, ((5, 8),))), (), ((),), 0, 0)
    kept = keeping(problem, found, found.tasks[:1])
    assert kept.tasks[0] == found.tasks[0]
    assert sorted(placed.runs for placed in kept.tasks[1:]) in (
        [((0, 2),), ((1, 4),)], [((0, 3),), ((1, 3),)])
    assert check_schedule(problem, kept) == []


def test_no_plan_is_dearer_than_its_jobs_apart():
    answered = 0
    for seed in range(40):
        problem = random_problem(Random(seed))
        endless = [replace(pool, capacity=None, lots=tuple(replace(lot, micro_usd=lot.micro_usd[-1:], most=99)
                                                           for lot in pool.lots)) for pool in problem.pools]
        tasks = tuple(replace(task, after=(), may_pause=False) for task in problem.tasks)
        problem = replace(problem, pools=tuple(endless), tasks=tasks, ceilings=(), budget=None)
        alone = [cheapest(replace(problem, tasks=(task,), services=())) for task in tasks]
        alone += [cheapest(replace(problem, tasks=(), services=(service,))) for service in problem.services]
        found = first_of(problem, Settings())
        assert (found is None) == (None in alone), seed
        if found is not None:
            assert check_schedule(problem, found) == []
            assert found.value <= sum(alone)
            assert schedule(problem, replace(LIMITED, seconds=0.1)).value <= sum(alone)
            answered += 1
    assert answered > 20


@pytest.mark.parametrize("interrupted", [False, True])
def test_what_branch_and_bound_leaves_open_cp_sat_proves_unless_ctrl_c_ended_it(monkeypatch, interrupted):
    problem = turning(random_problem(Random(1)), Random(2))
    best = schedule(problem, Settings())
    asked = []

    def tried(*_):
        asked.append(1)
        return replace(best, status="feasible", bound=best.value - len(asked) % 2)

    def branched(*given):
        if interrupted:
            raise KeyboardInterrupt
        return given[2]
    monkeypatch.setattr(exact, "_tried", tried)
    monkeypatch.setattr(exact, "_branched", branched)
    found = exact.exact(problem, LIMITED, None)
    assert (found.interrupted, found.status, len(asked)) == ((True, "feasible", 1) if interrupted else (
        False, "optimal", 2))
