"""One workload from its legal layouts to a proven choice: frontier, then the fleet model over its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.layouts.enumerate import Grid
from planner.physics.question import Question
from planner.solver.check import check_fleet, check_staging
from planner.solver.column import Column, undominated
from planner.solver.exhaustive import exhaustive_fleet
from planner.solver.fleet.problem import FleetProblem
from planner.solver.found import Frontier, StagedLayout
from planner.solver.job import Job
from planner.solver.parallel import search_grid
from planner.solver.settings import UNLIMITED, Effort
from planner.solver.staging_input import staging_problem

Status = Literal["optimal", "feasible", "infeasible", "undecided"]


@dataclass(frozen=True, slots=True)
class Choice:
    """How the search ended. `value` and `bound` are in the objective's quantum: cents, us or GPUs."""

    status: Status
    best: StagedLayout | None
    value: int | None
    bound: int | None
    frontier: Frontier


def choose(question: Question, grid: Grid, job: Job, effort: Effort = UNLIMITED, *, each: bool = True,
           so_far: bool = False) -> Choice:
    """Return the best layout of the grid and its proof; `each`: and what is best on every other candidate.

    so_far: what Ctrl-C cuts short is an answer too; otherwise KeyboardInterrupt is raised. Raises RuntimeError where an
    independent check contradicts the solver, which is a defect and no answer.
    """
    frontier = search_grid(question, grid, job, effort, each=each)
    if frontier.interrupted and not so_far:
        raise KeyboardInterrupt
    open_value = frontier.open_bound[0] if frontier.open_bound is not None else None
    if not frontier.found:
        return Choice("infeasible" if open_value is None else "undecided", None, None, open_value, frontier)
    by_key = {f.column.key: f for f in frontier.found}
    problem = FleetProblem(
        workloads=(undominated(_leaders(frontier.found)),),
        offers=job.offers,
        objective=job.objective, deadline_us=job.deadline_us, deadline_on="upper", budget_cents=job.budget_cents,
        max_power_w=job.max_power_w)
    # one workload is linear in its columns: trying all is a proof, and needs no import of ortools
    solution = exhaustive_fleet(problem)
    if solution.value is None or solution.bound is None:
        raise RuntimeError(f"the fleet model ended {solution.status} over {len(frontier.found)} columns that fit")
    best = by_key[solution.choices[0].column.key]
    wrong = check_fleet(problem, solution) + check_staging(
        staging_problem(question, best.batch.rows, best.batch.time, best.batch.memory, best.row), best.staged)
    if wrong:
        raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
    bound = solution.bound if open_value is None else min(solution.bound, open_value)
    status: Status = "optimal" if solution.status == "optimal" and solution.value == bound else "feasible"
    return Choice(status, best, solution.value, bound, frontier)


MOST_COLUMNS = 900
"""Columns offered to the fleet model; those left out are worse in the order it sorts by, hence never its choice."""


def _leaders(found: list[StagedLayout]) -> list[Column]:
    """Return the columns of the best staged layouts in the order of the objective and its tie-breaks."""
    return [f.column for f in sorted(found, key=lambda f: f.key)[:MOST_COLUMNS]]
