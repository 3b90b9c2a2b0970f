"""The simplest layout among those that cannot be told from the best: least to set up, then best by the objective.

How much there is to set up is known of every row and offload before it is staged, so kinds of equal complexity are
searched from the simplest on, each exactly, until one comes within the tolerance. What the bounds put outside it is
never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from sys import maxsize

import numpy as np

from planner.layouts.enumerate import Grid
from planner.layouts.rules import Facts
from planner.physics.training.question import Question
from planner.solver.search.bounding import offers
from planner.solver.search.complexity import complexities
from planner.solver.search.found import StagedLayout
from planner.solver.search.frontier import GridSearch
from planner.solver.search.job import JobTerms
from planner.solver.search.source import grid_source, table_source
from planner.solver.settings import UNLIMITED, Effort, OutOfTime


def simplest(question: Question, facts: Facts, job: JobTerms, best: StagedLayout, known: Sequence[StagedLayout],
             tolerance: float, effort: Effort = UNLIMITED) -> StagedLayout:
    """Return the least complex layout whose objective is at most `tolerance` (relative) above the best one's.

    known: the best of each candidate; where that is outside the tolerance, so is everything else there. Raises
    OutOfTime where the effort ends before that is known.
    """
    most = int(best.key[0] * (1 + tolerance))
    near = sorted({staged.column.candidate for staged in known if staged.key[0] <= most})
    space = replace(facts.space, only={**facts.space.only, "candidate": tuple(near)})
    tied = GridSearch(question, space, job, effort, end=(most, maxsize, maxsize)).reaching(
        grid_source(Grid(replace(facts, space=space))), most)
    kinds = [(level, complexities(level.on(tied))) for level in offers(question, space)]
    for value in np.unique(np.concatenate([level for _, level in kinds])):
        if value >= best.column.complexity:
            break
        within = []
        for level, complexity in kinds:
            alike = table_source(tied.take(np.flatnonzero(complexity == value)))
            account = GridSearch(question, space, job, effort, only=level).run(alike)
            if account.open_bound is not None and not account.interrupted:
                raise OutOfTime
            within += [staged for staged in account.found if staged.key[0] <= most]
        if within:
            return min(within, key=lambda staged: staged.key)
    return best
