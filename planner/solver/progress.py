"""How far a search is, for who waits for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from planner.solver.fleet.problem import Goal
from planner.solver.search.candidate_run import Run
from planner.solver.search.found import StagedLayout


@dataclass(frozen=True, slots=True)
class SoFar:
    """A search as it stands. Values are of the objective, in its quantum."""

    goal: Goal
    done: float
    """Share of the candidates searched now whose search has ended, 0 to 1."""
    value: int | None
    """The best so far."""
    bound: int | None
    """Nothing of these candidates is better."""


def so_far(goal: Goal, runs: Collection[Run], found: Sequence[StagedLayout]) -> SoFar:
    """Return how the search of some candidates stands; `found` is what they have."""
    value = min((staged.key[0] for staged in found), default=None)
    open_ = [run for run in runs if not run.ended]
    ahead = [key[0] for run in open_ for key in (run.ahead, *(entry[0] for entry in run.heap[:1])) if key is not None]
    bound = min([*ahead, *([] if value is None else [value])], default=None)
    return SoFar(goal, 1 - len(open_) / max(1, len(runs)), value, bound)
