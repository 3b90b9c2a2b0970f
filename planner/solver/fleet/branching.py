"""Branch and bound on a linear program by HiGHS, through MathOpt: a good answer, and what none is below."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from ortools.math_opt.python import mathopt  # type: ignore[import-untyped]

from planner.solver.fleet.linear import MICRO, LinearProgram
from planner.solver.fleet.program import MixedProgram

DOUBT = 1e-6
"""Share of a bound that the tolerances of HiGHS may have hidden."""


@dataclass(frozen=True, slots=True)
class Branched:
    """Values of all variables, and the bound in micro-USD; none where there is none."""

    values: list[int] | None
    bound: int | None


def branched(program: MixedProgram, gap: float, nodes: int, seconds: float | None) -> Branched:
    """Return the best answer found until the gap is so small, or so many nodes or seconds are over."""
    linear = LinearProgram(program, np.arange(len(program.least)), whole=True)
    asked = mathopt.SolveParameters(relative_gap_tolerance=gap, node_limit=nodes, random_seed=1,
                                    time_limit=None if seconds is None else timedelta(seconds=seconds))
    pool = ThreadPoolExecutor(1)
    try:
        found = pool.submit(mathopt.solve, linear.model, mathopt.SolverType.HIGHS, params=asked).result()
    finally:
        # HiGHS cannot be told to stop, and who pressed Ctrl-C does not wait for it
        pool.shutdown(wait=False)
    bound = found.termination.objective_bounds.dual_bound * MICRO
    safe = math.floor(bound - DOUBT * abs(bound)) if math.isfinite(bound) else None
    if not found.has_primal_feasible_solution():
        return Branched(None, safe)
    return Branched([round(one) for one in found.variable_values(list(linear.model.variables()))], safe)
