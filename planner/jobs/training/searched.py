"""What a search found, as the columns of a training job, and the account of what it looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from planner.answer.schema import Search
from planner.jobs.columns import Columns, Run
from planner.layouts.axes import RECOMPUTE, SCHEDULES, STAGED
from planner.layouts.enumerate import Grid
from planner.solver.search.found import Frontier, StagedLayout

MOST_COLUMNS = 900
"""Columns offered to the fleet, beside the best on each candidate; those left out are worse in the order it sorts by,
hence never its choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched(Columns):
    """Columns with the layouts behind them, and the account of their search."""

    frontier: Frontier
    grid: Grid

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended their search, or that for what comes next."""
        return self.frontier.interrupted

    def of(self, candidate: int) -> Self:
        """Return those of one candidate alone."""
        layouts = [staged for staged in self.frontier.found if staged.column.candidate == candidate]
        return replace(self, runs=tuple(run for run in self.runs if run.candidate == candidate),
                       frontier=replace(self.frontier, found=layouts))

    def layout(self, run: Run) -> StagedLayout:
        """Return the layout of a run."""
        return next(staged for staged in self.frontier.found if staged.column.key == run.column.key)


def leading(found: Sequence[StagedLayout]) -> list[StagedLayout]:
    """Return what is offered, best first: of each candidate at least its best."""
    leaders = sorted(found, key=lambda staged: staged.key)
    seen = {staged.column.candidate for staged in leaders[:MOST_COLUMNS]}
    last: dict[int, StagedLayout] = {}
    for staged in leaders[MOST_COLUMNS:]:
        if staged.column.candidate not in seen:
            last.setdefault(staged.column.candidate, staged)
    return [*leaders[:MOST_COLUMNS], *last.values()]


def searched(grid: Grid, frontier: Frontier) -> Searched:
    """Return what a search of a grid found as columns, best first."""
    return Searched(runs=tuple(leader.column for leader in leading(frontier.found)), frontier=frontier, grid=grid,
                    open_bound=None if frontier.open_bound is None else frontier.open_bound[0],
                    account=_account(grid, frontier))


def _account(grid: Grid, frontier: Frontier) -> Search:
    removed = {name: count for name, count in (grid.removed + frontier.removed).items() if count}
    space = grid.facts.space
    names = {"candidate": [c.label for c in space.candidates], "precision": list(space.precisions),
             "schedule": [SCHEDULES[order] for order in space.schedules],
             "recompute": ["none", "selective", "full", "per layer"] if STAGED in grid.domains["recompute"]
             else [RECOMPUTE[int(mode)] for mode in grid.domains["recompute"]]}
    domains = {axis: tuple(names.get(axis, values)) for axis, values in grid.domains.items()}
    return Search(layouts=grid.size, legal=grid.grown, fit=frontier.fit, removed=removed, staged=frontier.staged,
                  domains=domains)
