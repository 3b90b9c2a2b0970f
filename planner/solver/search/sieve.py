"""Which stems are worth growing: those that no floor, bound, lack of memory or limit excludes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from planner.layouts.axes import Space, domain
from planner.layouts.rules import Columns
from planner.layouts.table import Floats, Ints, Layouts, Mask, joined
from planner.physics.training.estimate import layer_terms
from planner.solver.search.bounding import Bounding
from planner.solver.search.candidate_run import near_leaders
from planner.solver.search.floor import Floors, floors
from planner.solver.search.keys import Key, Keys, joined_keys
from planner.solver.search.leaders import Keeping
from planner.solver.search.source import RowSource, together
from planner.solver.search.stem_bounds import stem_bound
from planner.solver.settings import Effort

CHUNK = 65_536
MANY = 1024
"""Rows without pipeline above which those with the least floors are searched first."""
FIRST = 1.25
"""How far above the least floor of a candidate the floors of the stems searched first may be."""
LIMITS = {"cost": "budget", "time": "deadline", "gpus": "states"}
"""What limits the measure of an objective."""


class Sieve:
    """Drops stems of one search, and counts what is dropped in the account of its `bounding`."""

    def __init__(self, space: Space, bounding: Bounding, kept: Mapping[int, Keeping], end: Key | None, effort: Effort,
                 known: Floors | None) -> None:
        """kept: what is known of each candidate; end: the key behind which nothing is of interest."""
        self.space, self.bounding, self.kept, self.end, self.effort = space, bounding, kept, end, effort
        self.known, self.out = known, bounding.out
        self.timed = bounding.pricing.job.timed

    @cached_property
    def floors(self) -> Floors:
        """What no layout is below, by what decides how long a layer takes."""
        return self.known or floors(self.bounding.question, self.space, self.bounding.pricing)

    @cached_property
    def _limit(self) -> float:
        """The objective above which a limit is broken, where one is on what the objective measures."""
        job = self.bounding.pricing.job
        limits = {"cost": job.budget_cents, "time": job.deadline_us}
        limit = limits.get(job.objective) if job.timed else self.space.max_gpus
        return np.inf if limit is None else limit

    @cached_property
    def _fewest(self) -> Ints:
        """GPUs that hold one copy of all states, by candidate, where nothing but their number counts."""
        return np.array([self.floors.least.get(at, (1, 0))[0] for at in range(len(self.space.candidates))], np.int64)

    @property
    def _ends(self) -> Floats:
        """The objective behind which nothing is of interest, by candidate."""
        ends = np.full(len(self.space.candidates), min(self._limit, np.inf if self.end is None else self.end[0]))
        for at, kept in self.kept.items():
            if kept.end is not None:
                ends[at] = min(ends[at], kept.end[0])
        return ends

    def hopeful(self, source: RowSource) -> RowSource:
        """Return the source less the candidates on which everything is known to lie behind what is of interest."""
        ends = self._ends
        if not np.isfinite(ends).any():
            return source
        mine, least = map(int, domain("candidate", self.space)), self.floors.least
        left, points = source.without({at for at in mine if at in least and least[at][0] > ends[at]})
        limited = (ends == self._limit).all()
        self.out.removed[LIMITS[self.bounding.pricing.job.objective] if limited else "bound"] += points
        return left

    def blocks(self, source: RowSource, most: int) -> Iterator[tuple[Layouts, bool]]:
        """Yield the stems that floors do not exclude as `together` does."""
        return together(source, most, self.effort.check, self._wanted)

    def _wanted(self, candidate: int, columns: Columns) -> Iterator[tuple[Mask, bool]]:
        """Yield which rows are. Of many the ones with the least floors come first: what they lead to excludes most of
        the others before they are made.
        """
        count = len(columns["tp"])
        if count <= MANY and self._ends[candidate] == np.inf:
            yield np.ones(count, bool), False
            return
        if not self.timed:
            ranks, stages = columns["tp"] * columns["cp"] * columns["dp"], max(domain("pp", self.space))
            yield (ranks <= self._ends[candidate]) & (ranks * stages >= self._fewest[candidate]), False
            return
        least = self.floors.of({**columns, "candidate": np.full(count, candidate)})
        if count <= MANY:
            yield least <= self._ends[candidate], False
            return
        first = least <= FIRST * self.floors.least[candidate][0]
        yield first & (least <= self._ends[candidate]), True
        yield ~first & (least <= self._ends[candidate]), False

    def within_limits(self, stems: Layouts, source: RowSource) -> tuple[Layouts, Keys]:
        """Return the stems that can meet every limit if memory were free, with their keys; in chunks, so that what is
        at work stays small.
        """
        parts, pricing, question = [], self.bounding.pricing, self.bounding.question
        for start in range(0, max(1, len(stems)), CHUNK):
            self.effort.check()
            chunk = stems.take(np.arange(start, min(start + CHUNK, len(stems)))) if len(stems) > CHUNK else stems
            chunk = chunk if self.timed else self._enough(chunk, source)
            # where time does not count, none is worked out
            steps = stem_bound(question, chunk, layer_terms(question, chunk)) if self.timed else np.zeros(len(chunk))
            keys = pricing.least(chunk, steps)
            parts.append(self._kept(chunk, keys, source))
        return joined([table for table, _ in parts]), joined_keys([keys for _, keys in parts])

    def _enough(self, stems: Layouts, source: RowSource) -> Layouts:
        """Return the stems with enough GPUs to hold one copy of all states, and no more than are of interest."""
        enough, few = stems.gpus >= self._fewest[stems.candidate], stems.gpus <= self._ends[stems.candidate]
        self.out.removed["states"] += int((~enough).sum()) * source.points
        self.out.removed["bound"] += int((enough & ~few).sum()) * source.points
        return stems.take(np.flatnonzero(enough & few))

    def held(self, stems: Layouts, source: RowSource) -> tuple[Layouts, Keys]:
        """Return the stems that their GPUs can hold and that meet every limit so, with their keys."""
        self.effort.check()
        points, pricing = source.points, self.bounding.pricing
        steps = self.bounding.least_steps(stems, source, self._near)
        fits = np.flatnonzero(np.isfinite(steps))
        self.out.removed["states"] += (len(stems) - len(fits)) * points
        stems = stems.take(fits)
        return self._kept(stems, pricing.least(stems, steps[fits]), source)

    def _kept(self, stems: Layouts, keys: Keys, source: RowSource) -> tuple[Layouts, Keys]:
        """Return the stems of interest that meet every limit with their least keys; count the others."""
        near = np.flatnonzero(self._near(stems, keys))
        self.out.removed["bound"] += (len(stems) - len(near)) * source.points
        near = near[self.bounding.within_limits(keys.take(near), points=source.points)]
        return stems.take(near), keys.take(near)

    def _near(self, stems: Layouts, keys: Keys) -> Mask:
        """Say which stems may still lead to something of interest."""
        far = np.inf if self.end is None else self.end[0]
        near: Mask = near_leaders(self.kept, stems, keys) & (keys.first <= far)
        return near
