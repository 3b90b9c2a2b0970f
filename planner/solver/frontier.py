"""From stems to the columns that the fleet chooses from: best first, pruned only by proven bounds.

Every stem gets the key that the objective sorts by, from a bound on the step time of whatever grows from it. Stems are
grown into layouts in the order of that key, layouts are bounded with their memory and staged, until the next key is
worse than the best staged layout. What is never grown or never staged cannot win.
"""

from __future__ import annotations

import heapq
import time as clock
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from planner.layouts.axes import Space
from planner.layouts.enumerate import Grid
from planner.layouts.offload import NOTHING, Level, level_of, levels
from planner.layouts.table import Ints, Layouts, joined
from planner.physics.estimate import TimeTerms, time_terms
from planner.physics.question import Question
from planner.solver.bounding import Bounding
from planner.solver.bounds import stem_bound, time_bound
from planner.solver.found import Batch, Frontier
from planner.solver.job import Job, Key, Keys, Pricing, identity, joined_keys
from planner.solver.leaders import Keeping, leading
from planner.solver.refine import refined_bound
from planner.solver.stage_row import stage_row

FIRST_BATCH, LARGEST_BATCH = 256, 2048
"""Stems grown at once: few while the incumbent is young, more where the search goes deep."""
CHUNK = 65_536
BLOCK = 128
"""Rows whose bounds are refined at once."""
Heap = list[tuple[Key, int, int, int]]
"""Least key, batch, row, and how many rows from there on are not refined yet: 0 for a single one that is."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from: stems by candidates alike, how they grow, and the grid points that each stands for."""

    stems: Callable[[], Iterable[tuple[list[int], Layouts]]]
    grow: Callable[[Layouts], Layouts]
    points: int


def grid_source(grid: Grid) -> Source:
    """Return the stems of a whole grid."""
    return Source(grid.stems, grid.grow, grid.points_per_stem)


def table_source(layouts: Layouts) -> Source:
    """Return rows that are grown already, by candidate."""
    alike = [([int(one)], layouts.take(layouts.candidate == one)) for one in np.unique(layouts.candidate)]
    return Source(lambda: alike, lambda rows: rows, 1)


def offers(question: Question, space: Space) -> tuple[Level, ...]:
    """Return the levels of offload to look at: where nothing trains, weights are held where they are used."""
    return (NOTHING,) if question.tuning.forward_only else levels(space, question.stack)


class Search:
    """One workload's search. `deadline` is a monotonic clock reading at which to stop."""

    def __init__(self, question: Question, space: Space, job: Job, deadline: float | None = None,
                 only: Level | None = None, count: int = 1, first: bool = False,
                 leaders: Callable[[Ints], Keeping] | None = None) -> None:
        """Start a search for the `count` best of each candidate; `only` is the one level of offload to look at.

        first: stop at the first layout that keeps every limit. leaders: makes what decides which layouts are of
        interest, from the GPU counts of a candidate's stems; where not given, the best are.
        """
        self.question, self.job, self.deadline = question, job, deadline
        self.pricing = Pricing(job, question.candidates)
        self.out = Frontier()
        self.first, self.leaders = first, leaders or partial(leading, count)
        self.seen: set[int] = set()
        self.levels = offers(question, space) if only is None else (only,)
        self.bounding = Bounding(question, self.pricing, self.levels, space.flash, self.out)

    def run(self, source: Source) -> Frontier:
        """Return the frontier of all rows: for every candidate its best layouts, proven unless time ran out."""
        try:
            for alike, stems in source.stems():
                for candidate in alike:
                    if self._enough():
                        return self.out
                    rows = stems.replace(candidate=np.full(len(stems), candidate, np.int64))
                    self._candidate(rows, source)
        except KeyboardInterrupt:
            # not even bounds are known of what was not reached
            self.out.interrupted = True
            self.out.note_open((0, 0))
        return self.out

    def _candidate(self, stems: Layouts, source: Source) -> None:
        """Search one candidate; where time has run out, only note what its bounds leave open."""
        stems, keys = self._within_limits(stems, source.points)
        order = np.lexsort((stems.gpus, keys.cents, keys.first))
        if not len(order):
            return
        if self.out.interrupted:
            self._leave(keys, order, [], source)
            return
        try:
            self._best_first(self.leaders(stems.gpus), stems, keys, order, source)
        except KeyboardInterrupt:
            # what was taken up but not ended is no worse than the least bound of all
            self.out.interrupted = True
            self._leave(keys, order, [], source)

    def reaching(self, source: Source, most: int) -> Layouts:
        """Return every layout whose bound without memory is at most `most` in the objective's quantum."""
        tables = []
        for alike, stems in source.stems():
            for candidate in alike:
                mine = stems.replace(candidate=np.full(len(stems), candidate, np.int64))
                mine, keys = self._within_limits(mine, source.points)
                rows = source.grow(mine.take(np.flatnonzero(keys.first <= most)))
                bounds = time_bound(self.question, rows, time_terms(self.question, rows))
                tables.append(rows.take(np.flatnonzero(self.pricing.least(rows, bounds).first <= most)))
        return joined(tables)

    def _within_limits(self, stems: Layouts, points: int) -> tuple[Layouts, Keys]:
        """Return the stems that can meet every limit, with their keys; in chunks, so that memory stays small."""
        parts = []
        for start in range(0, max(1, len(stems)), CHUNK):
            chunk = stems.take(np.arange(start, min(start + CHUNK, len(stems))))
            keys = self.pricing.least(chunk, stem_bound(self.question, chunk))
            keep = np.flatnonzero(self.bounding.within_limits(keys, points=points))
            parts.append((chunk.take(keep), keys.take(keep)))
        return joined([table for table, _ in parts]), joined_keys([keys for _, keys in parts])

    def _best_first(self, leaders: Keeping, stems: Layouts, keys: Keys, order: Ints, source: Source) -> None:
        """Grow the stems of one candidate in `order`, and stage what grows best first."""
        heap: Heap = []
        batches: list[Batch] = []
        size = FIRST_BATCH
        while True:
            ahead = keys.entry(order[0]) if len(order) else None
            self._stage(leaders, heap, batches, ahead)
            if ahead is None or self._enough() or (leaders.end is not None and ahead[:2] > leaders.end):
                self.out.removed["bound"] += len(order) * source.points
                self.out.removed["bound_with_memory"] += len(heap)
                break
            if self._out_of_time():
                self._leave(keys, order, heap, source)
                break
            rest, order = order[:size], order[size:]
            # what the leaders exclude by now is not grown with the rest of its batch
            near = rest[leaders.near(keys.take(rest))]
            self.out.removed["bound"] += (len(rest) - len(near)) * source.points
            size = min(2 * size, LARGEST_BATCH)
            if len(near):
                self._take_up(leaders, heap, batches, source.grow(stems.take(near)))

    def _leave(self, keys: Keys, order: Ints, heap: Heap, source: Source) -> None:
        """Count what is left when time ran out, and note its least key."""
        self.out.removed["time"] += len(order) * source.points
        for key in (*(keys.entry(one) for one in order[:1]), *(entry for entry, *_ in heap[:1])):
            self.out.note_open(key[:2])

    def _take_up(self, leaders: Keeping, heap: Heap, batches: list[Batch],
                 rows: Layouts) -> None:
        """Bound the rows without memory, and those that may still win with it."""
        if not len(rows):
            return
        time = time_terms(self.question, rows)
        near = np.flatnonzero(leaders.near(self.pricing.least(rows, time_bound(self.question, rows, time))))
        self.out.removed["bound_without_memory"] += len(rows) - len(near)
        if len(near):
            self._push(leaders, heap, batches, rows.take(near), time.take(near), np.zeros(len(near), np.int64))

    def _push(self, leaders: Keeping, heap: Heap, batches: list[Batch], rows: Layouts,
              time: TimeTerms, known: Ints) -> None:
        """Put the rows on the heap, and their variants with more offload where memory is seen to cost time."""
        for batch, keys, keep in self.bounding.batches(rows, time, known):
            near = keep & leaders.near(keys)
            self.out.removed["bound_with_memory"] += int(keep.sum()) - int(near.sum())
            rows_near = np.flatnonzero(near)
            order = rows_near[np.lexsort((keys.cents[rows_near], keys.first[rows_near]))]
            batches.append(batch.take(order))
            for start in range(0, len(order), BLOCK):
                block = min(BLOCK, len(order) - start)
                heapq.heappush(heap, (keys.entry(order[start]), len(batches) - 1, start, block))

    def _enough(self) -> bool:
        return self.first and bool(self.out.found)

    def _out_of_time(self) -> bool:
        return self.deadline is not None and clock.monotonic() > self.deadline

    def _stage(self, leaders: Keeping, heap: Heap, batches: list[Batch],
               ahead: Key | None) -> None:
        """Stage what is on the heap while it may still be a leader and nothing ahead is better."""
        while heap and not self._enough():
            entry, at, row, block = heap[0]
            if (leaders.end is not None and entry[:2] > leaders.end) or (ahead is not None and entry[:2] > ahead[:2]):
                return
            if self._out_of_time():
                self.out.note_open(entry[:2])
                return
            heapq.heappop(heap)
            if block:
                self._refine(leaders, heap, batches, at, np.arange(row, row + block))
                continue
            size = int(batches[at].rows.gpus[row])
            if not leaders.passes(size, entry):
                self.out.removed["bound_with_memory"] += 1
                continue
            # a level of offload that is short after two lesser ones comes from both
            layout = identity(batches[at].rows, row)
            if layout in self.seen:
                continue
            self.seen.add(layout)
            done, short = stage_row(self.question, self.pricing, batches[at], row, self.out)
            if short:
                self._offload_more(leaders, heap, batches, batches[at], np.array([row]))
            if done is not None:
                self.out.found.append(done)
                leaders.offer(done)

    def _refine(self, leaders: Keeping, heap: Heap, batches: list[Batch], at: int, rows: Ints) -> None:
        """Put a block of rows back on the heap one by one, each at its refined bound."""
        batch = batches[at].take(rows)
        steps = refined_bound(self.question, batch.rows, batch.time, batch.memory)
        keys = self.pricing.least(batch.rows, steps)
        near = leaders.near(keys) & self.bounding.within_limits(keys, "_refined")
        self.out.removed["bound_refined"] += len(rows) - int(near.sum())
        for row in np.flatnonzero(near).tolist():
            heapq.heappush(heap, (keys.entry(row), at, int(rows[row]), 0))
        # whoever is short of memory here may be better with more of it elsewhere
        short = np.flatnonzero(steps > time_bound(self.question, batch.rows, batch.time) * (1 + 1e-12))
        self._offload_more(leaders, heap, batches, batches[at], rows[short])

    def _offload_more(self, leaders: Keeping, heap: Heap, batches: list[Batch], batch: Batch, rows: Ints) -> None:
        """Put the variants of rows of one batch that offload more on the heap, unless they are bounded already."""
        if not len(rows):
            return
        here, every = level_of(batch.rows, int(rows[0])), (1 << len(self.levels)) - 1
        lesser = sum(1 << number for number, level in enumerate(self.levels) if not here.precedes(level))
        known = batch.known[rows] | lesser
        batch.known[rows] = every
        more = np.flatnonzero(known < every)
        if len(more):
            self._push(leaders, heap, batches, batch.rows.take(rows[more]), batch.time.take(rows[more]), known[more])
