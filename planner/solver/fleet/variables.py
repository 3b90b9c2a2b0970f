"""The variables of the fleet model: one boolean a pick, and sums over them as expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from planner.solver.fleet.problem import FleetProblem, Pick


@dataclass(slots=True)
class Variables:
    """`picks` and `taken` run in parallel, one row a workload; `latest` is made when a goal asks for it."""

    model: cp_model.CpModel
    picks: tuple[tuple[Pick, ...], ...]
    taken: list[list[cp_model.IntVar]]
    latest: cp_model.IntVar | None = None

    def total(self, amount: Callable[[Pick], int]) -> cp_model.LinearExpr:
        """Return the sum of `amount` over the picks taken."""
        variables = [variable for taken in self.taken for variable in taken]
        return cp_model.LinearExpr.weighted_sum(variables, [amount(pick) for row in self.picks for pick in row])

    def of(self, workload: int, amounts: Sequence[int]) -> cp_model.LinearExpr:
        """Return the entry of `amounts` at the pick taken for one workload."""
        return cp_model.LinearExpr.weighted_sum(self.taken[workload], amounts)

    def slowest(self) -> cp_model.IntVar:
        """Return the variable that is at least the expected duration of every workload, in us."""
        if self.latest is None:
            durations = [[pick.column.duration_us for pick in row] for row in self.picks]
            longest = max((duration for row in durations for duration in row), default=0)
            self.latest = self.model.new_int_var(0, longest, "latest_us")
            for workload, row in enumerate(durations):
                self.model.add(self.latest >= self.of(workload, row))
        return self.latest


def make(problem: FleetProblem, model: cp_model.CpModel) -> Variables:
    """Return the variables of `problem`, added to `model` and named after the keys."""
    picks = problem.picks()
    taken = [[model.new_bool_var(f"take[{pick.workload},{pick.column.key},{pick.offer.key}]") for pick in row]
             for row in picks]
    return Variables(model, picks, taken)
