"""Plain enumeration of the splits of one layout: no bound, no pruning, no solver."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from planner.solver.check import stage_violations, staging_violations
from planner.solver.staging.problem import MODES, Modes, Staged, StagingProblem, staged


def exhaustive_staging(problem: StagingProblem) -> Staged | None:
    """Return the best of all splits, by objective and then evenness; exponential in the number of stages."""
    best: tuple[int, int, Staged] | None = None
    for mix in problem.mixes:
        stages = [_stage_counts(problem, stage, mix) for stage in range(problem.stages)]
        for counts in _splits(stages, problem.layers):
            found = staged(problem, counts)
            rank = (found.objective, sum(count**2 for count in found.layers))
            if (best is None or rank < best[:2]) and not staging_violations(problem, found):
                best = (*rank, found)
    return None if best is None else best[2]


def _splits(stages: list[list[Modes]], layers: int) -> Iterator[tuple[Modes, ...]]:
    """Yield every way to take one entry of each stage that places `layers` in all."""
    if not stages:
        if layers == 0:
            yield ()
        return
    for counts in stages[0]:
        if sum(counts) <= layers:
            for rest in _splits(stages[1:], layers - sum(counts)):
                yield (counts, *rest)


def _stage_counts(problem: StagingProblem, stage: int, mix: tuple[int, ...]) -> list[Modes]:
    """Return every way to fill one stage that the stage itself allows."""
    high = min(problem.max_layers[stage], problem.layers)
    ranges = [range(high + 1) if mode in mix else range(1) for mode in range(MODES)]
    return [(none, selective, full) for none, selective, full in product(*ranges)
            if not stage_violations(problem, stage, (none, selective, full))]
