"""Every legal layout of a space at once: what a search must agree with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.enumerate import Grid
from planner.layouts.rules import Facts
from planner.layouts.table import Layouts, joined


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The legal layouts and the account of the rest."""

    layouts: Layouts
    grid: int
    removed: dict[str, int]
    domains: dict[str, list[float]]


def enumerate_layouts(facts: Facts) -> Enumeration:
    """Return every legal layout of `facts.space`; `grid` = legal + removed, lazy axes at their first value."""
    grid = Grid(facts)
    tables = [grid.grow(stems.replace(candidate=np.full(len(stems), row, np.int64)))
              for alike, stems, _ in grid.stems() for row in alike]
    return Enumeration(joined(tables), grid.size, dict(grid.removed), grid.domains)
