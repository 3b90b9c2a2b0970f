"""Many jobs: the first schedule, the relaxation's bound and the windows, against the exact model on small ones."""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks.portfolios import portfolio
from planner.process.together import on_processes
from planner.process.workers import Call
from planner.solver import engine
from planner.solver.check_schedule import check_schedule
from planner.solver.fleet import windows
from planner.solver.fleet.exact import exact
from planner.solver.fleet.greedy import greedy
from planner.solver.fleet.reading import solved, value_of
from planner.solver.fleet.relaxing import Relaxing
from planner.solver.fleet.schedule import Endless, Load, NodeBlock, Option, Placed, Pool, Problem, Schedule, Task
from planner.solver.fleet.scheduling import schedule
from planner.solver.fleet.scheduling_model import Scheduling
from planner.solver.fleet.window import joined
from planner.solver.fleet.windows import improved
from planner.solver.settings import Settings
from tests.solver.schedules import random_problem

LIMITED = Settings(deterministic_limit=2.0, linearization=2)


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every round does the same to another schedule: a few thousand on each of many problems find what more would."""
    monkeypatch.setattr("planner.solver.fleet.windows.ROUNDS", 3_000)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_schedule_is_below_the_bound_nor_above_the_windows(first: int) -> None:
    for seed in range(first, first + 12):
        problem = random_problem(Random(seed))
        best, relaxed = schedule(problem, Settings()), Relaxing(problem).solve()
        if best.value is None:
            continue
        assert relaxed is not None
        assert relaxed.bound <= best.value, seed
        many = improved(problem, LIMITED)
        assert check_schedule(problem, many) == [], seed
        assert many.value is None or many.bound <= best.value <= many.value, seed
        plain = greedy(problem)
        assert plain is None or plain.value >= best.value, seed


def test_many_jobs_are_no_dearer_than_one_after_the_other_and_the_same_twice() -> None:
    problem = portfolio(12, 3, 26, 1)
    many, plain = improved(problem, LIMITED), greedy(problem)
    assert many.value is not None
    assert plain is not None
    assert 0 <= many.bound <= many.value <= plain.value
    assert many == improved(problem, LIMITED)


def test_what_cp_sat_does_not_prove_at_once_has_a_schedule_and_a_bound_from_the_relaxation() -> None:
    problem, brief = portfolio(12, 3, 26, 1), Settings(deterministic_limit=0.01, linearization=2, so_far=True)
    assert solved(problem, Scheduling(problem), brief).value is None
    found, relaxed = exact(problem, brief, None), Relaxing(problem).solve()
    assert check_schedule(problem, found) == []
    assert found.value is not None
    assert relaxed is not None
    assert 0 < relaxed.bound <= found.bound <= found.value < 1.02 * found.bound
    assert found == exact(problem, brief, None)


def test_services_alone_are_solved_although_cp_sat_does_not_prove_them_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are nodes and no ways: there is nothing to relax."""
    problem = next(one for seed in range(60) if (one := random_problem(Random(seed))).services and solved(
        replace(one, tasks=()), Scheduling(replace(one, tasks=())), Settings()).value is not None)
    problem = replace(problem, tasks=())
    best = schedule(problem, Settings())
    monkeypatch.setattr("planner.solver.fleet.exact._tried", lambda *_: replace(best, status="feasible"))
    found = exact(problem, LIMITED, None)
    assert found.value == best.value


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_its_steps_keep_the_optimum_between_bound_and_value(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    monkeypatch.setattr("planner.solver.fleet.exact.BRIEF", 0.0)
    for seed in range(first, first + 10):
        problem = random_problem(Random(seed))
        best, found = schedule(problem, Settings()), exact(problem, LIMITED, None)
        assert check_schedule(problem, found) == [], seed
        assert (found.value is None) == (best.value is None), seed
        assert best.value is None or found.bound <= best.value <= found.value <= (1 + 1e-5) * best.value, seed


def test_services_are_proven_where_cp_sat_has_no_time_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their nodes are whole: CP-SAT's bound of a service that grows was 0, and its fleet twice as dear as need be."""
    asked = portfolio(40, 8, 52, 1)
    loads = tuple(Load(tuple(range(at * 52 // 6, (at + 1) * 52 // 6)), tuple(
        (round(1.2e6 * 1.1**at * level), 42) for level in (2, 4, 6, 7))) for at in range(6))
    rates = {1: 1_300_000, 2: 1_300_000, 3: 1_350_000, 5: 2_300_000, 6: 2_200_000, 7: 2_300_000}
    service = Endless(tuple(NodeBlock(at, 1, rate) for at, rate in rates.items()), loads)
    problem = replace(asked, tasks=(), services=(service,))
    whole = solved(problem, Scheduling(problem), Settings(linearization=2))
    assert whole.status == "optimal"
    monkeypatch.setattr("planner.solver.fleet.exact.BRIEF", 0.0)
    found = exact(problem, replace(LIMITED, deterministic_limit=0.0), None)
    assert check_schedule(problem, found) == []
    assert found.bound is not None
    assert found.bound <= whole.value == found.value <= (1 + 1e-5) * found.bound


def test_windows_that_processes_solve_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(calls: Sequence[Call]) -> Iterator[Any]:
        asked.append(len(calls))
        return real(calls)

    problem, real = portfolio(24, 3, 26, 1), windows.together
    alone = improved(problem, LIMITED)
    monkeypatch.setattr(windows, "together", counted)
    with on_processes(2):
        assert improved(problem, LIMITED) == alone
    assert set(asked) == {2}  # 24 tasks are no more than two windows


def test_what_windows_save_is_joined_where_it_still_fits() -> None:
    # one node for two periods of a day: both tasks can wait, and only one can run first
    pool, options = Pool((1, 1)), (Option(0, 1, 86_400),)
    tasks = tuple(Task(options, due=0, late_cents_per_day=cents, worth=10**9) for cents in (100, 300))
    problem = Problem(2, 86_400, (pool,), tasks)

    def put(*starts: int | None) -> Schedule:
        placed = tuple(None if at is None else Placed(0, ((at, at + 1),)) for at in starts)
        made = Schedule("feasible", placed, (), ((),))
        return replace(made, value=value_of(problem, made))

    start, first, second = put(None, None), put(0, None), put(None, 0)
    left = put(None, 1)
    assert joined(problem, start, [(frozenset({0}), first), (frozenset({1}), left)]) == put(0, 1)
    assert joined(problem, start, [(frozenset({0}), first), (frozenset({1}), second)]) == first
    assert joined(problem, start, [(frozenset({0}), start), (frozenset({1}), put(None, None))]) == start


def test_a_limit_of_the_clock_ends_cp_sat() -> None:
    problem, began = portfolio(40, 4, 52, 1), time.monotonic()
    solved(problem, Scheduling(problem), Settings(deterministic_limit=100.0, linearization=2, seconds=0.5))
    assert time.monotonic() - began < 5


def test_ctrl_c_leaves_the_best_schedule_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine.cp_model.CpSolver.solve

    def waits() -> bool:
        """Whether the main thread waits for the solver."""
        frame = sys._current_frames()[threading.main_thread().ident or 0]
        names = [inner.f_code.co_name for inner, _ in traceback.walk_stack(frame)]
        return "result" in names and names[0] == "wait"

    def interrupting(self: engine.cp_model.CpSolver, model: engine.cp_model.CpModel) -> object:
        while not waits():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
        return real(self, model)

    monkeypatch.setattr(engine.cp_model.CpSolver, "solve", interrupting)
    problem = portfolio(40, 4, 52, 1)
    found = schedule(problem)
    assert found.interrupted
    assert found.value is not None
    assert found.bound is not None
    assert found.bound <= found.value
    assert check_schedule(problem, found) == []


@pytest.mark.parametrize("solve", [lambda one: exact(one, LIMITED, greedy(one)), lambda one: improved(one, LIMITED)])
def test_ctrl_c_after_the_relaxation_leaves_its_bound(monkeypatch: pytest.MonkeyPatch, solve) -> None:  # type: ignore[no-untyped-def]
    real = Relaxing.solve

    def interrupted(self: Relaxing, seconds: float | None = None) -> None:
        real(self, seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(Relaxing, "solve", interrupted)
    monkeypatch.setattr("planner.solver.fleet.exact.BRIEF", 0.001)
    problem = portfolio(12, 4, 26, 1)
    found = solve(problem)
    assert found.interrupted
    assert 0.5 * found.value < found.bound <= found.value
    assert check_schedule(problem, found) == []
