"""Where a search gets its rows from: stems by candidate, and how they grow into layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from planner.layouts.enumerate import Grid
from planner.layouts.table import Layouts, Mask, joined


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from: stems by candidates alike, how they grow, and the grid points that each stands for.

    Stems come in blocks; what they are given is called before each piece of work, and may end them by raising.
    """

    stems: Callable[[Callable[[], None]], Iterable[tuple[list[int], Layouts]]]
    grow: Callable[[Layouts], Layouts]
    points: int
    stages: Callable[[Layouts], Iterable[tuple[int, Mask]]]
    """The ZeRO stages that rows may grow into, each with those that may have it."""


def grid_source(grid: Grid) -> Source:
    """Return the stems of a whole grid."""
    return Source(grid.stems, grid.grow, grid.points_per_stem, grid.zero_stages)


def table_source(layouts: Layouts) -> Source:
    """Return rows that are grown already, by candidate."""
    alike = [([int(one)], layouts.take(layouts.candidate == one)) for one in np.unique(layouts.candidate)]
    return Source(lambda check: alike, lambda rows: rows, 1,
                  lambda rows: [(stage, rows.zero == stage) for stage in np.unique(rows.zero).tolist()])


def together(source: Source, most: int, check: Callable[[], None] = lambda: None) -> Iterator[Layouts]:
    """Yield the stems of all candidates, those of several in one table where these have at most `most` rows.

    `check` is called before each piece of work, and may end it by raising.
    """
    tables: list[Layouts] = []
    for alike, stems in source.stems(check):
        for candidate in alike:
            if tables and sum(map(len, tables)) + len(stems) > most:
                yield joined(tables)
                tables = []
            tables.append(stems.replace(candidate=np.full(len(stems), candidate, np.int64)))
    if tables:
        yield joined(tables)
