"""Plain enumeration of both models, for tests and small instances: no bound, no pruning, no solver."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from planner.solver.check import fleet_violations, stage_violations, staging_violations
from planner.solver.fleet.problem import Choice, FleetProblem, Pick, Solution
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


def exhaustive_fleet(problem: FleetProblem) -> Solution:
    """Return the best picks by the goals and tie-breaks of the model; exponential in workloads.

    For a single workload this is linear, hence a full proof without ortools.
    """
    best: tuple[tuple[int, ...], tuple[Pick, ...]] | None = None
    for picks in product(*problem.picks()):
        if not fleet_violations(problem, choices_of(picks)):
            rank = _rank(problem, picks)
            if best is None or rank < best[0]:
                best = (rank, picks)
    if best is None:
        return Solution("infeasible", (), None, None)
    value = best[0][0]
    return Solution("optimal", choices_of(best[1]), value, value)


def choices_of(picks: tuple[Pick, ...]) -> tuple[Choice, ...]:
    """Return the picks as choices, which is how an answer spells them."""
    return tuple(Choice(pick.workload, pick.column, pick.offer) for pick in picks)


def _rank(problem: FleetProblem, picks: tuple[Pick, ...]) -> tuple[int, ...]:
    goals = {
        "time": max((pick.column.duration_us for pick in picks), default=0),
        "cost": sum(pick.cents for pick in picks),
        "gpus": sum(pick.column.gpus for pick in picks),
        "nodes": sum(pick.column.rented_nodes for pick in picks),
        "energy": sum(pick.column.energy_wh for pick in picks),
        "complexity": sum(pick.column.complexity for pick in picks),
    }
    keys = tuple(key for pick in picks for key in (pick.column.key, pick.offer.key))
    order = (problem.objective, "cost", "time", "gpus", "nodes", "complexity")
    return (*(goals[goal] for goal in order), *keys)
