"""Plain enumeration of the fleet model, for one workload and small instances: no bound, no pruning, no solver."""

from __future__ import annotations

from itertools import product

from planner.solver.check import fleet_violations
from planner.solver.fleet.problem import Choice, FleetProblem, Pick, Solution


def exhaustive_fleet(problem: FleetProblem) -> Solution:
    """Return the best picks by the goals and tie-breaks of the model; exponential in workloads.

    For a single workload this is linear, hence a full proof without ortools.
    """
    best: tuple[tuple[int, ...], tuple[Pick, ...]] | None = None
    for picks in product(*problem.picks()):
        if not fleet_violations(problem, choices_of(picks)):
            rank = _rank(problem, picks)
            if best is None or rank < best[0]:
                best = (rank, picks)
    if best is None:
        return Solution("infeasible", (), None, None)
    value = best[0][0]
    return Solution("optimal", choices_of(best[1]), value, value)


def choices_of(picks: tuple[Pick, ...]) -> tuple[Choice, ...]:
    """Return the picks as choices, which is how an answer spells them."""
    return tuple(Choice(pick.workload, pick.column, pick.offer) for pick in picks)


def _rank(problem: FleetProblem, picks: tuple[Pick, ...]) -> tuple[int, ...]:
    goals = {
        "time": max((pick.column.duration_us for pick in picks), default=0),
        "cost": sum(pick.cents for pick in picks),
        "gpus": sum(pick.column.gpus for pick in picks),
        "nodes": sum(pick.column.rented_nodes for pick in picks),
        "energy": sum(pick.column.energy_wh for pick in picks),
        "complexity": sum(pick.column.complexity for pick in picks),
    }
    keys = tuple(key for pick in picks for key in (pick.column.key, pick.offer.key))
    order = (problem.objective, "cost", "time", "gpus", "nodes", "complexity")
    return (*(goals[goal] for goal in order), *keys)
