"""The one gate to CP-SAT: validate, solve with fixed settings, and hand out values only where there are some.

Both models go through `run`. Imported only where a CP-SAT solve is needed: ortools takes 0.6 s to import.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import floor

from ortools.sat.python import cp_model

from planner.solver.settings import Heard, Settings, Status


@dataclass(frozen=True, slots=True)
class Ending:
    """How a solve ended. `value` and `bound` are exact integers of the objective, None where absent."""

    status: Status
    value: int | None
    bound: int | None
    deterministic_time: float
    solver: cp_model.CpSolver
    interrupted: bool = False
    """Whether Ctrl-C ended it."""

    def read(self, expression: cp_model.LinearExprT) -> int:
        """Return the value of `expression` in the solution. Raises ValueError when there is no solution."""
        if self.status not in {"optimal", "feasible"}:
            raise ValueError(f"no values after {self.status}")
        return self.solver.value(expression)


class CpModel(cp_model.CpModel):
    """A CP-SAT model without the names that its methods had of old: adding these takes longer than many a model."""

    def _add_pre_pep8_methods(self) -> None:
        """Add none."""


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
    solver.parameters.linearization_level = settings.linearization
    # else every solve leaves Ctrl-C at its default behind, which ends the process without an answer
    solver.parameters.catch_sigint_signal = False
    if settings.deterministic_limit is not None:
        solver.parameters.max_deterministic_time = settings.deterministic_limit
    if settings.seconds is not None:
        solver.parameters.max_time_in_seconds = settings.seconds
    told: tuple[_Heard, ...] = ()
    if settings.heard is not None:
        told = (_Heard(settings.heard),)
        solver.best_bound_callback = told[0].on_bound
    status, interrupted = _interruptible(solver, model, told) if settings.so_far else (
        solver.solve(model, *told), False)
    spent = solver.response_proto.deterministic_time
    if status in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        value, bound = solver.value(objective), _bound(model, solver)
        return Ending("optimal" if value == bound else "feasible", value, bound, spent, solver,
                      interrupted)
    if status == cp_model.INFEASIBLE:
        return Ending("infeasible", None, None, spent, solver)
    if status == cp_model.UNKNOWN:
        return Ending("undecided", None, _bound(model, solver), spent, solver, interrupted)
    raise RuntimeError(f"CP-SAT ended with {solver.status_name(status)}")


class _Heard(cp_model.CpSolverSolutionCallback):
    """Tells of every better solution and bound while the solver works, as integers of the objective."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self.heard = heard
        self.best: int | None = None
        self.least: int | None = None

    def on_solution_callback(self) -> None:
        """Hear of a better solution."""
        self.best = round(self.objective_value)
        self.heard(self.best, self.least)

    def on_bound(self, bound: float) -> None:
        """Hear of a better bound."""
        self.least = floor(bound)
        self.heard(self.best, self.least)


def _interruptible(solver: cp_model.CpSolver, model: cp_model.CpModel, told: tuple[_Heard, ...]
                   ) -> tuple[cp_model.CpSolverStatus, bool]:
    """Return how a solve ended that Ctrl-C may end, and whether it did: Python hears of it in the main thread only."""
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(solver.solve, model, *told)
        try:
            return ending.result(), False
        except KeyboardInterrupt:
            solver.stop_search()
            return ending.result(), True


def _bound(model: cp_model.CpModel, solver: cp_model.CpSolver) -> int:
    """Return the exact bound: an integer before the constant term, where the printed one is a float."""
    return solver.response_proto.inner_objective_lower_bound + round(model.proto.objective.offset)
