"""The fleet of one job that ends: linear in its columns, so that trying all of them is a proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.solver.check import check_fleet
from planner.solver.column import Column, undominated
from planner.solver.exhaustive import exhaustive_fleet
from planner.solver.fleet.problem import FleetOffer, FleetProblem, Goal
from planner.solver.settings import Status


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job must keep, in the solver's quanta; none is no limit."""

    deadline_us: int | None = None
    budget_cents: int | None = None
    max_power_w: int | None = None


@dataclass(frozen=True, slots=True)
class Single:
    """How it ended. `value` and `bound` are in the objective's quantum; none where there is none."""

    status: Status
    column: Column | None = None
    value: int | None = None
    bound: int | None = None


def single(runs: Sequence[Column], open_bound: int | None, offers: tuple[FleetOffer, ...], objective: Goal,
           limits: Limits) -> Single:
    """Return the best run; nothing that was left unsearched is below `open_bound`, none where nothing was left.

    Raises RuntimeError where an independent check contradicts the choice, which is a defect and no answer.
    """
    if not runs:
        return Single("infeasible" if open_bound is None else "undecided", bound=open_bound)
    problem = FleetProblem(
        workloads=(undominated(runs),), offers=offers, objective=objective, deadline_us=limits.deadline_us,
        budget_cents=limits.budget_cents, max_power_w=limits.max_power_w)
    found = exhaustive_fleet(problem)
    if found.value is None or found.bound is None:
        raise RuntimeError(f"the fleet model ended {found.status} over {len(runs)} columns that fit")
    if wrong := check_fleet(problem, found):
        raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
    bound = found.bound if open_bound is None else min(found.bound, open_bound)
    status: Status = "optimal" if found.status == "optimal" and found.value == bound else "feasible"
    return Single(status, found.choices[0].column, found.value, bound)
