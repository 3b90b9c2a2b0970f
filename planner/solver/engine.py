"""The one gate to CP-SAT: validate, solve with fixed settings, and hand out values only where there are some.

Both models go through `run`. Imported only where a CP-SAT solve is needed: ortools takes 0.6 s to import.
"""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from planner.solver.settings import Settings, Status


@dataclass(frozen=True, slots=True)
class Ending:
    """How a solve ended. `value` and `bound` are exact integers of the objective, None where absent."""

    status: Status
    value: int | None
    bound: int | None
    deterministic_time: float
    solver: cp_model.CpSolver

    def read(self, expression: cp_model.LinearExprT) -> int:
        """Return the value of `expression` in the solution. Raises ValueError when there is no solution."""
        if self.status not in {"optimal", "feasible"}:
            raise ValueError(f"no values after {self.status}")
        return self.solver.value(expression)


def run(model: cp_model.CpModel, objective: cp_model.LinearExprT, settings: Settings) -> Ending:
    """Minimize the integer expression `objective`; "optimal" means that value and bound agree exactly.

    Raises RuntimeError when the model is invalid or breaks off, which is a defect and not an answer.
    """
    model.minimize(objective)
    if problem := model.validate():
        raise RuntimeError(f"invalid CP-SAT model: {problem}")
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = settings.workers
    solver.parameters.random_seed = settings.seed
    solver.parameters.cp_model_presolve = settings.presolve
    solver.parameters.linearization_level = settings.linearization
    # else every solve leaves Ctrl-C at its default behind, which ends the process without an answer
    solver.parameters.catch_sigint_signal = False
    if settings.deterministic_limit is not None:
        solver.parameters.max_deterministic_time = settings.deterministic_limit
    status = solver.solve(model)
    spent = solver.response_proto.deterministic_time
    if status in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        value, bound = solver.value(objective), _bound(model, solver)
        return Ending("optimal" if value == bound else "feasible", value, bound, spent, solver)
    if status == cp_model.INFEASIBLE:
        return Ending("infeasible", None, None, spent, solver)
    if status == cp_model.UNKNOWN:
        return Ending("undecided", None, _bound(model, solver), spent, solver)
    raise RuntimeError(f"CP-SAT ended with {solver.status_name(status)}")


def _bound(model: cp_model.CpModel, solver: cp_model.CpSolver) -> int:
    """Return the exact bound: an integer before the constant term, where the printed one is a float."""
    return solver.response_proto.inner_objective_lower_bound + round(model.proto.objective.offset)
