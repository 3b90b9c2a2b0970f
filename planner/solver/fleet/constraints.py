"""The constraints of the fleet model, one function each; `add_constraints` is the table of contents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ortools.sat.python import cp_model

from planner.solver.fleet.problem import FleetProblem, Pick
from planner.solver.fleet.variables import Variables


def add_constraints(problem: FleetProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """Add every constraint of the problem."""
    one_pick_each(problem, variables, model)
    offer_sizes(problem, variables, model)
    deadline(problem, variables, model)
    budget(problem, variables, model)
    gpu_limit(problem, variables, model)
    node_limit(problem, variables, model)
    power_limit(problem, variables, model)


def one_pick_each(problem: FleetProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """Every workload runs in exactly one column on exactly one offer; without any the model is infeasible."""
    for taken in variables.taken:
        model.add_exactly_one(taken)


def offer_sizes(problem: FleetProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """No offer gives more nodes than it holds."""
    for offer in problem.offers:
        _at_most(partial(_nodes_on, offer.key), offer.max_nodes, variables, model)


def deadline(problem: FleetProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """No workload takes a column that ends too late."""
    if problem.deadline_us is None:
        return
    for picks, taken in zip(variables.picks, variables.taken, strict=True):
        for pick, variable in zip(picks, taken, strict=True):
            if problem.finish_us(pick.column) > problem.deadline_us:
                model.add(variable == 0)


def budget(problem: FleetProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """All workloads together stay within the budget, in cents."""
    _at_most(lambda pick: pick.cents, problem.budget_cents, variables, model)


def gpu_limit(problem: FleetProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """All workloads together stay within the GPU limit."""
    _at_most(lambda pick: pick.column.gpus, problem.max_gpus, variables, model)


def node_limit(problem: FleetProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """All workloads together stay within the node limit, spares included."""
    _at_most(lambda pick: pick.column.rented_nodes, problem.max_nodes, variables, model)


def power_limit(problem: FleetProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """All workloads together stay within the power limit, in watts under load."""
    _at_most(lambda pick: pick.column.power_w, problem.max_power_w, variables, model)


def _nodes_on(offer: int, pick: Pick) -> int:
    return pick.column.rented_nodes if pick.offer.key == offer else 0


def _at_most(amount: Callable[[Pick], int], limit: int | None, variables: Variables,
             model: cp_model.CpModel) -> None:
    if limit is not None:
        model.add(variables.total(amount) <= limit)
