"""A linear program as CP-SAT reads it, solved by the one gate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from ortools.sat.python import cp_model

from planner.solver.engine import CpModel, Ending, run
from planner.solver.fleet.program import FREE, MixedProgram
from planner.solver.settings import Settings


class Stated:
    """A program in CP-SAT, to which more may be added."""

    def __init__(self, program: MixedProgram) -> None:
        """State every variable and row."""
        self.program, self.model = program, CpModel()
        self.variables = [self.model.new_int_var(low, high, "")
                          for low, high in zip(program.lower, program.upper, strict=True)]
        rows, variables, factors = program.entries()
        ends = np.searchsorted(rows, np.arange(len(program.least) + 1))
        for at, (least, most) in enumerate(zip(program.least, program.most, strict=True)):
            part = slice(ends[at], ends[at + 1])
            terms = cp_model.LinearExpr.weighted_sum([self.variables[one] for one in variables[part]],
                                                     factors[part].tolist())
            self.model.add_linear_constraint(terms, max(least, -FREE), min(most, FREE))
        self.objective = cp_model.LinearExpr.weighted_sum(self.variables, program.price)

    def hint(self, values: Mapping[int, int]) -> None:
        """Say where a good answer lies; what is not given is 0."""
        for at, variable in enumerate(self.variables):
            self.model.add_hint(variable, values.get(at, 0))

    def solve(self, settings: Settings) -> Ending:
        """Return the least cost and how it ended."""
        return run(self.model, self.objective, settings)
