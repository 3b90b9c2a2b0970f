"""The relaxation of a linear program, by GLOP: what it costs, and prices of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray
from ortools.math_opt import model_pb2  # type: ignore[import-untyped]
from ortools.math_opt.python import mathopt  # type: ignore[import-untyped]

from planner.solver.fleet.program import FREE, Ints, MixedProgram

Floats = NDArray[np.float64]
MICRO = 1e6


@dataclass(frozen=True, slots=True)
class Optimum:
    """Value and prices of rows, in micro-USD, and values of variables."""

    value: float
    prices: Floats
    values: Floats


class LinearProgram:
    """A program without its whole numbers, with rows added up by group, which then have one price; money is in USD."""

    def __init__(self, program: MixedProgram, groups: Ints, *, whole: bool = False) -> None:
        """State all of it; `groups` is the number of the group of each row. whole: with whole numbers all the same."""
        self.groups, count = groups, int(groups.max(initial=-1)) + 1
        of, variables, factors = program.entries()
        matrix = np.unique(groups[of] * len(program.lower) + variables, return_inverse=True)
        of, variables = matrix[0] // len(program.lower), matrix[0] % len(program.lower)
        factors = np.bincount(matrix[1], factors, len(of))
        of, variables, factors = (one[factors != 0] for one in (of, variables, factors))
        self.scale = np.ones(count)
        np.maximum.at(self.scale, of, np.abs(factors))
        least, most = (np.bincount(groups, np.where(np.abs(ends) >= FREE, np.copysign(np.inf, ends), ends), count)
                       for ends in (np.array(program.least, dtype=float), np.array(program.most, dtype=float)))
        stated = model_pb2.ModelProto()
        columns, rows, terms = stated.variables, stated.linear_constraints, stated.linear_constraint_matrix
        columns.ids.extend(range(len(program.lower)))
        columns.lower_bounds.extend(map(float, program.lower))
        columns.upper_bounds.extend(map(float, program.upper))
        columns.integers.extend([whole] * len(program.lower))
        stated.objective.linear_coefficients.ids.extend(range(len(program.price)))
        stated.objective.linear_coefficients.values.extend([usd / MICRO for usd in program.price])
        rows.ids.extend(range(count))
        rows.lower_bounds.extend((least / self.scale).tolist())
        rows.upper_bounds.extend((most / self.scale).tolist())
        terms.row_ids.extend(of.tolist())
        terms.column_ids.extend(variables.tolist())
        terms.coefficients.extend((factors / self.scale[of]).tolist())
        self.model = mathopt.Model.from_model_proto(stated)
        self.rows = list(self.model.linear_constraints())

    def solve(self, limit: timedelta | None = None) -> Optimum | None:
        """Return the optimum; none where it is out of reach, or not found in time."""
        # the dual simplex shifts prices that tie, of which there are many
        asked = mathopt.SolveParameters(lp_algorithm=mathopt.LPAlgorithm.DUAL_SIMPLEX, time_limit=limit)
        found = mathopt.solve(self.model, mathopt.SolverType.GLOP, params=asked)
        if not found.has_primal_feasible_solution() or not found.has_dual_feasible_solution():
            return None
        prices = np.array(found.dual_values(self.rows)) / self.scale * MICRO
        values = np.array(found.variable_values(list(self.model.variables())))
        return Optimum(found.objective_value() * MICRO, prices[self.groups], values)
