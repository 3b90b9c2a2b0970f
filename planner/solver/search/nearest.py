"""The layouts that miss memory by least, where none fits: of GPUs, and of the host where GPUs suffice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from planner.layouts.enumerate import Grid
from planner.layouts.offload import Offloaded, allowed
from planner.layouts.table import Floats, Layouts, Mask, joined
from planner.physics.training.memory import memory_terms
from planner.physics.training.question import Question
from planner.solver.search.bounding import offers
from planner.solver.search.bounds import shortage
from planner.solver.search.holding import stems_short
from planner.solver.search.sieve import CHUNK
from planner.solver.search.source import grid_source, together
from planner.solver.settings import UNLIMITED, Effort

MOST = 4096
"""Stems looked at: those that lack least for their states alone."""
GROWN = 64
"""Stems grown at once."""


Miss: TypeAlias = tuple[float, dict[str, float]]
"""By how much a layout misses, and the layout."""


@dataclass(slots=True)
class Nearest:
    """Layouts that miss by least; none where no layout misses so."""

    gpu: Miss | None = None
    """Bytes that its GPUs are short of on average."""
    host: Miss | None = None
    """By what share host memory or flash is too small for a layout that GPUs hold."""

    def take(self, other: Nearest) -> None:
        """Keep the nearer of each; of equals on several candidates, that of the first."""
        self.gpu, self.host = _nearer(self.gpu, other.gpu), _nearer(self.host, other.host)


def _nearer(*misses: Miss | None) -> Miss | None:
    return min((miss for miss in misses if miss is not None), key=lambda miss: (miss[0], miss[1]["candidate"]),
               default=None)


def nearest(question: Question, grid: Grid, effort: Effort = UNLIMITED) -> Nearest:
    """Return the layouts of the grid that miss memory by least. Raises OutOfTime."""
    space, source = grid.facts.space, grid_source(grid)
    every = offers(question, space)
    if not every:  # what is kept outside is held to values that no stack has
        return Nearest()
    tables: list[Layouts] = []
    shorts = np.zeros(0)
    for stems, _ in together(source, CHUNK, effort.check):
        short = stems_short(question, every, space.flash, stems, source.stages(stems))
        kept = np.argsort(short, kind="stable")[:MOST]
        tables, shorts = [*tables, stems.take(kept)], np.concatenate([shorts, short[kept]])
    best = Nearest()
    if not len(shorts):
        return best
    order, stems = np.argsort(shorts, kind="stable")[:MOST], joined(tables)
    for start in range(0, len(order), GROWN):
        effort.check()
        block = order[start:start + GROWN]
        # what lacks more for its states alone is no nearer
        if best.gpu is not None and shorts[block[0]] > max(best.gpu[0], 0.0):
            break
        for miss in _shortest(question, source.grow(stems.take(block)), every, grid):
            best.take(miss)
    return best


def _shortest(question: Question, rows: Layouts, levels: Sequence[Offloaded], grid: Grid) -> Iterator[Nearest]:
    """Yield the rows that miss by least at each level of offload."""
    tables = [level.on(rows) for level in levels]
    tables = [at.take(np.flatnonzero(allowed(at.columns, question.stack, grid.facts.space.flash))) for at in tables]
    every = joined(tables)
    held, short, outside = shortage(question, every, memory_terms(question, every))
    ends = np.cumsum([0, *map(len, tables)]).tolist()
    for at, (begin, end) in zip(tables, pairwise(ends), strict=True):
        mine = slice(begin, end)
        yield Nearest(_least(at, short[mine], ~held[mine]),
                      _least(at, outside[mine], held[mine] & (outside[mine] > 0)))


def _least(rows: Layouts, short: Floats, of: Mask) -> Miss | None:
    if not of.any():
        return None
    row = int(np.argmin(np.where(of, short, np.inf)))
    return float(short[row]), rows.row(row)
