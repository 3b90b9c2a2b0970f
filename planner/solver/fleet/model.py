"""Assembly of the fleet model and its lexicographic solve: each goal is proven, then fixed for the next."""

from __future__ import annotations

from ortools.sat.python import cp_model

from planner.solver.engine import Ending, run
from planner.solver.fleet.constraints import add_constraints
from planner.solver.fleet.objective import goals
from planner.solver.fleet.problem import Choice, FleetProblem, Proof, Solution
from planner.solver.fleet.variables import Variables, make
from planner.solver.settings import Settings


def build(problem: FleetProblem) -> tuple[cp_model.CpModel, Variables]:
    """Return the model of `problem` without an objective, with its variables."""
    model = cp_model.CpModel()
    variables = make(problem, model)
    add_constraints(problem, variables, model)
    return model, variables


def solve_fleet(problem: FleetProblem, settings: Settings | None = None) -> Solution:
    """Return the best choices with a proof of each goal in turn; `settings.deterministic_limit` is per goal.

    Stops at the first goal whose proof is cut short, and keeps the best choices so far.
    """
    model, variables = build(problem)
    proofs: list[Proof] = []
    choices: tuple[Choice, ...] = ()
    for goal, expression in goals(problem, variables):
        ending = run(model, expression, settings or Settings())
        proofs.append(Proof(goal, ending.status, ending.value, ending.bound, ending.deterministic_time))
        if ending.value is not None:
            choices = _read(variables, ending)
        if ending.status != "optimal":
            break
        _fix(model, variables, expression, ending)
    return _solution(choices, tuple(proofs))


def _read(variables: Variables, ending: Ending) -> tuple[Choice, ...]:
    return tuple(
        Choice(pick.workload, pick.column, pick.offer)
        for picks, taken in zip(variables.picks, variables.taken, strict=True)
        for pick, variable in zip(picks, taken, strict=True)
        if ending.read(variable)
    )


def _fix(model: cp_model.CpModel, variables: Variables, expression: cp_model.LinearExpr,
         ending: Ending) -> None:
    """Hold this goal at its optimum and hint the next solve with the solution at hand."""
    model.add(expression == ending.read(expression))
    model.clear_hints()  # type: ignore[no-untyped-call]
    every = [variable for taken in variables.taken for variable in taken]
    if variables.latest is not None:
        every.append(variables.latest)
    for variable in every:
        model.add_hint(variable, ending.read(variable))


def _solution(choices: tuple[Choice, ...], proofs: tuple[Proof, ...]) -> Solution:
    first, last = proofs[0], proofs[-1]
    if first.value is not None and last.status == "infeasible":
        raise RuntimeError(f"CP-SAT lost its own solution when minimizing {last.goal}")
    cut_short_later = first.value is not None and last.status == "undecided"
    return Solution("feasible" if cut_short_later else last.status, choices, first.value, first.bound, proofs)
