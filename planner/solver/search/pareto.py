"""The exact frontier of trade-offs: every layout that no other one beats or equals in all measures at once.

The search is that for the best layout, with one difference: a row is of no interest where a layout found already is as
good as the row's bound in every measure, because then it is as good as whatever the row turns out to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.layouts.axes import Space
from planner.layouts.candidate import Candidate
from planner.layouts.table import Ints, Mask
from planner.physics.training.question import Question
from planner.solver.check import check_staging
from planner.solver.fleet.problem import Goal
from planner.solver.search.found import Frontier, StagedLayout
from planner.solver.search.frontier import GridSearch
from planner.solver.search.job import JobTerms, Pricing
from planner.solver.search.keys import Key, Keys
from planner.solver.search.source import RowSource
from planner.solver.search.stage_row import priced
from planner.solver.search.staging_input import staging_problem
from planner.solver.settings import UNLIMITED, Effort

_PLACES: dict[Goal, int] = {"cost": 1, "time": 2, "gpus": 3, "energy": 4}
"""Where `Keys.entry` has each measure."""


@dataclass(slots=True)
class Staircase:
    """The layouts found so far that no other dominates; keys are compared by `measures` alone."""

    measures: tuple[Goal, ...]
    points: dict[Key, StagedLayout] = field(default_factory=dict)
    least_us: int = 0
    """Microseconds below which it is of no use to be faster."""
    _table: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    @property
    def end(self) -> Key | None:
        """No key ends the search: a dearer row may always be better in another measure."""
        return None

    def offer(self, staged: StagedLayout) -> None:
        """Take a staged layout into account."""
        point = self._point(entry_of(staged))
        if self._beats(point):
            return
        kept = {old: layout for old, layout in self.points.items()
                if not all(a <= b for a, b in zip(point, old, strict=True))}
        self.points = kept | {point: staged}
        self._table = np.array(sorted(self.points), np.int64)

    def passes(self, size: int, entry: Key) -> bool:
        """Say whether a layout whose least measures are in `entry` may be on the frontier."""
        return not self._beats(self._point(entry))

    def near(self, keys: Keys) -> Mask:
        """Say which rows may be on the frontier."""
        return ~self._beaten([keys.measures[_PLACES[name]] if name != "time"
                              else np.maximum(keys.micros, self.least_us) for name in self.measures])

    def _point(self, entry: Key) -> Key:
        return tuple(max(entry[_PLACES[name]], self.least_us if name == "time" else 0) for name in self.measures)

    def _beats(self, bound: Key) -> bool:
        return any(all(a <= b for a, b in zip(point, bound, strict=True)) for point in self.points)

    def _beaten(self, bounds: Sequence[Ints]) -> Mask:
        """Say of the rows of all columns, one a measure, which some point is as good as in all measures."""
        if len(bounds) == 2 and self.points:
            # along the frontier one measure rises and the other falls: the last that is no worse in one decides
            last = np.searchsorted(self._table[:, 0], bounds[0], side="right") - 1
            beats: Mask = (last >= 0) & (self._table[last, 1] <= bounds[1])
            return beats
        beaten = np.zeros(len(bounds[0]), bool)
        for point in self._table.tolist():
            beaten |= np.logical_and.reduce([value <= column for value, column in zip(point, bounds, strict=True)])
        return beaten


def entry_of(staged: StagedLayout) -> Key:
    """Return the measures of a staged layout in the places of `Keys.entry`."""
    column = staged.column
    return (staged.key[0], staged.cents, column.duration_us, column.gpus, column.energy_wh)


def pareto(question: Question, space: Space, job: JobTerms, source: RowSource, measures: Sequence[Goal],
           effort: Effort = UNLIMITED, known: Sequence[StagedLayout] = ()) -> tuple[list[StagedLayout], Frontier]:
    """Return the frontier of `measures`, best first by them in turn, and the account of its search.

    known: what another search found, which is on the frontier where nothing here is as good.
    The job's objective is the first measure. It is exact unless the account has an open bound.
    Raises RuntimeError where an independent check contradicts a layout, which is a defect and no answer.
    """
    stairs = Staircase(tuple(measures))
    frontier = GridSearch(question, space, job, effort, leaders=lambda sizes: stairs, known=known, trades=True
                          ).run(source)
    for staged in stairs.points.values():
        if any(staged is layout for layout in known):
            continue
        batch = staged.batch
        problem = staging_problem(question, batch.rows, batch.time, batch.memory, staged.row)
        if wrong := check_staging(problem, staged.staged):
            raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
    return [stairs.points[point] for point in sorted(stairs.points)], frontier


SHARED: tuple[Goal, ...] = ("gpus", "time", "cost")
"""What counts of a layout where jobs share nodes."""


def shared(question: Question, space: Space, job: JobTerms, source: RowSource, least_us: int,
           effort: Effort = UNLIMITED, known: Sequence[StagedLayout] = ()) -> Frontier:
    """Return of every candidate the layouts that no other one beats in GPUs, time and cost at once, and none `known`.

    Nodes, spares and power grow with the GPUs, and energy is power for that time, so that none of the layouts left out
    is better in any of these. Times below `least_us` count as that. It is exact unless the account has an open bound.
    """
    stairs: list[Staircase] = []

    def one_more(sizes: Ints) -> Staircase:
        stairs.append(Staircase(SHARED, least_us=least_us))
        return stairs[-1]

    frontier = GridSearch(question, space, job, effort, leaders=one_more, known=known, trades=True, apart=False
                          ).run(source)
    theirs = {id(point) for point in known}
    frontier.found = [point for stair in stairs for _, point in sorted(stair.points.items()) if id(point) not in theirs]
    return frontier


def repriced(found: Sequence[StagedLayout], candidates: tuple[Candidate, ...], job: JobTerms, least_us: int
             ) -> list[StagedLayout]:
    """Return what `shared` finds for a job that differs in tokens and deadline alone, by what it found for another.

    That one has no fewer tokens, and no less time for each. Of as many GPUs and spares what is faster stays so, and
    what is faster than `least_us` too, so that what it left out is of no use here either.
    """
    pricing, stairs = Pricing(job, candidates, trades=True), dict[int, Staircase]()
    for one in {(id(one.batch), one.row): one for one in found}.values():
        for layout in priced(pricing, one.batch, one.row, one.staged, one.step_seconds)[0]:
            stairs.setdefault(layout.column.candidate, Staircase(SHARED, least_us=least_us)).offer(layout)
    return [point for _, stair in sorted(stairs.items()) for _, point in sorted(stair.points.items())]


def parse_measures(names: Iterable[str]) -> tuple[Goal, ...]:
    """Return the measures meant by `cost, days, gpus, energy`. Raises ValueError."""
    known: dict[str, Goal] = {"cost": "cost", "days": "time", "time": "time", "gpus": "gpus", "energy": "energy"}
    measures = [name.strip().lower() for name in names]
    if (len(measures) < 2 or any(name not in known for name in measures)
            or len({known.get(name) for name in measures}) < len(measures)):
        raise ValueError(f"{','.join(measures)}: expected two or more of cost, days, gpus, energy, each once")
    return tuple(known[name] for name in measures)
