"""The layout that misses memory by least, where none fits."""

from __future__ import annotations

import numpy as np

from planner.layouts.enumerate import Grid
from planner.layouts.offload import Level, allowed
from planner.layouts.table import Layouts, joined
from planner.physics.training.estimate import time_terms
from planner.physics.training.memory import memory_terms
from planner.physics.training.question import Question
from planner.solver.search.bounding import offers
from planner.solver.search.bounds import bound
from planner.solver.search.frontier import CHUNK
from planner.solver.search.holding import stems_short
from planner.solver.search.source import grid_source, together
from planner.solver.settings import UNLIMITED, Effort

MOST = 4096
"""Stems looked at: those that lack least for their states alone."""
GROWN = 64
"""Stems grown at once."""


def nearest(question: Question, grid: Grid, effort: Effort = UNLIMITED) -> dict[str, float] | None:
    """Return the layout of the grid that misses memory by least, None where there is no layout. Raises OutOfTime."""
    space, source = grid.facts.space, grid_source(grid)
    every = offers(question, space)
    tables: list[Layouts] = []
    shorts = np.zeros(0)
    for stems in together(source, CHUNK, effort.check):
        short = stems_short(question, every, space.flash, stems, source.stages(stems))
        kept = np.argsort(short, kind="stable")[:MOST]
        tables, shorts = [*tables, stems.take(kept)], np.concatenate([shorts, short[kept]])
    if not len(shorts):
        return None
    order, stems = np.argsort(shorts, kind="stable")[:MOST], joined(tables)
    best: tuple[float, dict[str, float]] | None = None
    for start in range(0, len(order), GROWN):
        effort.check()
        block = order[start:start + GROWN]
        # what lacks more for its states alone is no nearer
        if best is not None and shorts[block[0]] > best[0]:
            break
        rows = source.grow(stems.take(block))
        found = [one for level in every if (one := _shortest(question, rows, level, grid)) is not None]
        best = min([*found, *([] if best is None else [best])], key=lambda one: (one[0], one[1]["candidate"]),
                   default=None)
    return None if best is None else best[1]


def _shortest(question: Question, rows: Layouts, level: Level, grid: Grid) -> tuple[float, dict[str, float]] | None:
    """Return bytes short and the row that is short of least at a level of offload; none where no row may have it."""
    at = level.on(rows)
    at = at.take(np.flatnonzero(allowed(at.columns, question.stack, grid.facts.space.flash)))
    if not len(at):
        return None
    short = bound(question, at, time_terms(question, at), memory_terms(question, at)).short
    row = int(np.argmin(short))
    return float(short[row]), at.row(row)
