"""Where a search gets its rows from: stems by candidate, and how they grow into layouts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from planner.layouts.enumerate import Grid, StemBlock, Wanted
from planner.layouts.table import Layouts, Mask, joined


@dataclass(frozen=True, slots=True)
class RowSource:
    """Where rows come from: stems by candidates alike, how they grow, and the grid points that each stands for.

    Stems come in blocks, of the rows that are wanted at least; what they are given first is called before each piece of
    work, and may end them by raising.
    """

    stems: Callable[[Callable[[], None], Wanted | None], Iterable[StemBlock]]
    grow: Callable[[Layouts], Layouts]
    points: int
    stages: Callable[[Layouts], Iterable[tuple[int, Mask]]]
    """The ZeRO stages that rows may grow into, each with those that may have it."""
    alike: Hashable
    """What decides the stages of equal stems; none where rows are told apart by more than what stems have."""
    without: Callable[[Collection[int]], tuple[RowSource, int]]
    """The source less some candidates, and the grid points that are left out."""


def grid_source(grid: Grid, dropped: Collection[int] = ()) -> RowSource:
    """Return the stems of a whole grid but for those of the `dropped` candidates."""
    return RowSource(partial(grid.stems, dropped=dropped), grid.grow, grid.points_per_stem, grid.zero_stages,
                     (tuple(grid.domains["zero"]), grid.facts.skipped),
                     lambda more: (grid_source(grid, {*dropped, *more}), grid.points_per_candidate * len(more)))


def table_source(layouts: Layouts) -> RowSource:
    """Return rows that are grown already, by candidate."""
    alike = [StemBlock([int(one)], layouts.take(layouts.candidate == one), False)
             for one in np.unique(layouts.candidate)]

    def without(dropped: Collection[int]) -> tuple[RowSource, int]:
        left = np.flatnonzero(~np.isin(layouts.candidate, list(dropped)))
        return table_source(layouts.take(left)), len(layouts) - len(left)

    return RowSource(lambda check, wanted: alike, lambda rows: rows, 1,
                     lambda rows: [(stage, rows.zero == stage) for stage in np.unique(rows.zero).tolist()], None,
                     without)


def together(source: RowSource, most: int, check: Callable[[], None] = lambda: None,
             wanted: Wanted | None = None) -> Iterator[tuple[Layouts, bool]]:
    """Yield the stems of all candidates, those of several in one table where these have at most `most` rows, and
    whether others of them follow that these may show to be of no use.

    `check` is called before each piece of work, and may end it by raising. wanted: which rows are, as far as the source
    can tell before it makes them.
    """
    tables: list[Layouts] = []
    for alike, stems, more in source.stems(check, wanted):
        for candidate in alike:
            if tables and sum(map(len, tables)) + len(stems) > most:
                yield joined(tables), False
                tables = []
            tables.append(stems.replace(candidate=np.full(len(stems), candidate, np.int64)))
        if more:
            yield joined(tables), True
            tables = []
    if tables:
        yield joined(tables), False
