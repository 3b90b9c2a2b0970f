"""What is proven holds for every column, also where a job has too many to offer them all."""

import random
from types import SimpleNamespace

import pytest

from planner.ask.portfolio.plan import solved
from planner.jobs import agenda, offering
from planner.solver.column import Column
from planner.solver.fleet import scheduling
from planner.solver.fleet.schedule import Option, Schedule
from planner.solver.settings import UNLIMITED
from tests.ask.test_portfolio import RUN, plan_of

JOBS = [{"name": "one", "workload": RUN, "deadline": "2027-01-07"},
        {"name": "two", "workload": {**RUN, "tokens": "60 G"}, "deadline": "2027-01-12"}]


@pytest.mark.parametrize("nodes", [12, 30])
def test_a_plan_of_few_columns_is_bounded_by_all_of_them(monkeypatch, nodes):
    whole = plan_of(JOBS, own=nodes)
    assert (whole.status, whole.search.removed.get("not_offered")) == ("optimal", None)
    monkeypatch.setattr(agenda, "MOST_WAYS", 0)
    for most in (3, 4):
        monkeypatch.setattr(offering, "MOST_OPTIONS", most)
        monkeypatch.setattr(offering, "MOST_ENDLESS", most)
        few = plan_of(JOBS, own=nodes)
        assert few.search.removed["not_offered"] > 0
        assert few.objective.bound <= whole.objective.value <= few.objective.value
        assert (few.status == "optimal") == (few.objective.bound == few.objective.value)


def test_no_option_that_is_left_out_is_better_than_what_stands_for_it():
    draw = random.Random(7)
    for _ in range(50):
        pairs = [(Option(draw.randrange(3), draw.randrange(1, 40), draw.randrange(1, 99), draw.randrange(9),
                         draw.randrange(5), draw.randrange(5)), Column.__new__(Column)) for _ in range(30)]
        for _, column in pairs:
            object.__setattr__(column, "key", draw.random())
        kept = [pair for pair in pairs if draw.random() < 0.3]
        best = offering.beyond(pairs, kept)
        assert len(best) <= len(kept) + 3
        for option, _ in (pair for pair in pairs if pair not in kept):
            assert any(least.pool == option.pool and all(getattr(least, name) <= getattr(option, name) for name in (
                "nodes", "seconds", "micro_usd", "resume_seconds", "resume_micro_usd")) for least in best)


@pytest.mark.parametrize(("found", "best", "ended"), [
    (Schedule("infeasible"), Schedule("infeasible"), Schedule("infeasible")),
    (Schedule("infeasible"), Schedule("feasible", value=1, bound=1), Schedule("undecided")),
    (Schedule("infeasible"), Schedule("feasible", value=1, bound=1, interrupted=True),
     Schedule("undecided", interrupted=True)),
    (Schedule("feasible", value=9, bound=5), Schedule("infeasible"), Schedule("feasible", value=9, bound=5))])
def test_a_no_of_few_columns_is_no_no_of_all(monkeypatch, found, best, ended):
    few, all_ = object(), object()
    monkeypatch.setattr(scheduling, "checked", lambda problem, effort, over=None: found if problem is few else best)
    assert solved(SimpleNamespace(problem=few, relaxed=all_), UNLIMITED) == ended
