"""Staging: how one layout splits its layers over pipeline stages, and which layers recompute; exact."""

from __future__ import annotations

from functools import lru_cache

from planner.solver.staging.exact import solve_exact
from planner.solver.staging.problem import MODES, Modes, SharedLimit, Staged, StagingProblem

__all__ = ["MODES", "Modes", "SharedLimit", "Staged", "StagingProblem", "solve"]


@lru_cache(maxsize=65536)
def solve(problem: StagingProblem) -> Staged | None:
    """Return an optimal split of `problem`, or None when there is none: a proof either way.

    Shared limits are left out first: a split that keeps them anyway is optimal, and where there is none without
    them there is none with them. Only the rest goes to CP-SAT, which costs an import of ortools. Memoized.
    """
    relaxed = solve_exact(problem)
    if relaxed is None or all(_keeps(relaxed, limit) for limit in problem.shared):
        return relaxed
    from planner.solver.staging.cpsat import solve_cpsat

    return solve_cpsat(problem, hint=relaxed).proven()


def _keeps(staged: Staged, limit: SharedLimit) -> bool:
    return limit.fixed + limit.units_per_layer * sum(staged.layers[s] for s in limit.stages) <= limit.capacity
