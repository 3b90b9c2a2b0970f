"""What is minimized, in order: the objective, money, time, GPUs, nodes, the simpler layout, then the lowest keys."""

from __future__ import annotations

from collections.abc import Iterator

from ortools.sat.python import cp_model

from planner.solver.fleet.problem import FleetProblem
from planner.solver.fleet.variables import Variables

TIE_BREAKS = ("cost", "time", "gpus", "nodes", "complexity")


def goals(problem: FleetProblem, variables: Variables) -> Iterator[tuple[str, cp_model.LinearExpr]]:
    """Yield each goal with what it minimizes; the keys go workload by workload, which leaves one answer."""
    for goal in dict.fromkeys((problem.objective, *TIE_BREAKS)):
        yield goal, _expression(goal, variables)
    for workload, row in enumerate(variables.picks):
        yield f"key of workload {workload}", variables.of(workload, range(len(row)))


def _expression(goal: str, variables: Variables) -> cp_model.LinearExpr:
    if goal == "time":
        return variables.slowest()
    if goal == "cost":
        return variables.total(lambda pick: pick.cents)
    if goal == "energy":
        return variables.total(lambda pick: pick.column.energy_wh)
    if goal == "gpus":
        return variables.total(lambda pick: pick.column.gpus)
    if goal == "nodes":
        return variables.total(lambda pick: pick.column.rented_nodes)
    return variables.total(lambda pick: pick.column.complexity)
