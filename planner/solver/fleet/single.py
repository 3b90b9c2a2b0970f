"""The fleet of one job that ends: linear in its columns, so that trying all of them is a proof."""

from __future__ import annotations

from dataclasses import replace

from planner.solver.check import check_run, over_limits
from planner.solver.fleet.problem import Choice, RunProblem, Solution


def single(problem: RunProblem, open_bound: int | None) -> Solution:
    """Return the best run; nothing that was left unsearched is below `open_bound`, none where nothing was left.

    Raises RuntimeError where no column is possible, or an independent check contradicts the choice: both are defects.
    """
    if not problem.columns:
        return Solution("infeasible" if open_bound is None else "undecided", bound=open_bound)
    solution = best_run(problem)
    if solution.value is None or solution.bound is None:
        raise RuntimeError(f"the fleet model ended {solution.status} over {len(problem.columns)} columns that fit")
    if wrong := check_run(problem, solution):
        raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
    if open_bound is None or open_bound >= solution.value:
        return solution
    return replace(solution, status="feasible", bound=open_bound)


def best_run(problem: RunProblem) -> Solution:
    """Return the best choice of all: ties go to the cheaper, faster, smaller and simpler, then by keys."""
    choices = [Choice(column, offer) for column in problem.columns for offer in problem.offers
               if offer.candidate == column.candidate]
    ranked = ((_rank(problem, choice), choice) for choice in choices if not over_limits(problem, choice))
    best = min(ranked, key=lambda pair: pair[0], default=None)
    return Solution("infeasible") if best is None else Solution("optimal", best[1], best[0][0], best[0][0])


def _rank(problem: RunProblem, choice: Choice) -> tuple[int, ...]:
    column, offer = choice
    goals = {"cost": offer.cents(column.rented_nodes, column.paid_us), "time": column.duration_us,
             "gpus": column.gpus, "energy": column.energy_wh}
    return (goals[problem.objective], goals["cost"], goals["time"], goals["gpus"], column.rented_nodes,
            column.complexity, column.key, offer.key)
