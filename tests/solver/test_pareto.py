"""The frontier of trade-offs against staging every legal layout, and in a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import plan
from planner.errors import InputError
from planner.layouts.enumerate import Grid
from planner.solver.fleet.problem import Goal
from planner.solver.search.found import StagedLayout
from planner.solver.search.job import MOST_NODES
from planner.solver.search.pareto import pareto, parse_measures
from planner.solver.search.source import grid_source
from tests.enumerated import enumerate_layouts
from tests.search_cases import Case, random_case
from tests.small_cases import small_case
from tests.solver.test_frontier import staged_all

MEASURES: list[tuple[Goal, ...]] = [("cost", "time"), ("gpus", "time"), ("energy", "cost", "time"),
                                    ("cost", "time", "gpus", "energy")]


def vector(one: StagedLayout, measures: tuple[Goal, ...]) -> tuple[int, ...]:
    held = {"cost": one.cents, "time": one.column.duration_us, "gpus": one.column.gpus, "energy": one.column.energy_wh}
    return tuple(held[name] for name in measures)


def undominated(vectors: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return sorted(one for one in vectors if not any(
        other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in vectors))


@pytest.mark.parametrize("seed", range(500, 508))
def test_the_frontier_equals_that_of_staging_everything(seed: int) -> None:
    case, measures = random_case(seed), MEASURES[seed % len(MEASURES)]
    every = undominated({vector(one, measures) for one in staged_all(case, slice(None))})
    points, account = pareto(case.question, case.space, case.job, grid_source(Grid(case.facts)), measures)
    assert [vector(one, measures) for one in points] == every
    assert account.open_bound is None


def test_the_frontier_trades_spare_nodes_too() -> None:
    """Where a commitment is paid to its end in any case, one layout is dear and fast with spares, cheap without."""
    small, measures = small_case(337), parse_measures(("cost", "time"))
    case = Case(small.question, small.space, small.facts, replace(small.job, objective="cost"),
                enumerate_layouts(small.facts))
    every = undominated({vector(one, measures) for one in staged_all(case, slice(None))})
    points, _ = pareto(case.question, case.space, case.job, grid_source(Grid(case.facts)), measures)
    assert [vector(one, measures) for one in points] == every
    assert len(points) > len({one.column.key // MOST_NODES for one in points})


def test_a_plan_lists_every_trade_off_and_minimizes_the_first() -> None:
    asked = {"model": "llama-3.1-8b", "tokens": "100 G", "on": "dgx-h100,dgx-a100", "max_gpus": 64,
             "stack": "megatron-core"}
    answer = plan(pareto="cost,days", **asked)
    points = [(a.cost_usd, a.duration_days) for a in (*answer.assignments, *answer.alternatives)]
    assert answer.status == "optimal"
    assert answer.objective.value == points[0][0] == plan(**asked).objective.value
    assert len(points) > 2
    assert points == sorted(points)
    assert [days for _, days in points] == sorted((days for _, days in points), reverse=True)
    assert points[-1][1] == pytest.approx(plan(objective="time", **asked).objective.value, rel=1e-12)
    assert answer.provenance.pareto == ("cost_usd", "duration_days")


@pytest.mark.parametrize("text", ["cost", "cost,cost", "cost,dayz", "days,time", ""])
def test_measures_that_are_no_trade_off_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected two or more of cost, days, gpus, energy"):
        parse_measures(text.split(","))


def test_a_frontier_needs_an_amount_of_work() -> None:
    with pytest.raises(InputError, match=r"--pareto needs workload\.tokens"):
        plan(model="llama-3.1-8b", on="dgx-h100", pareto="cost,days")
