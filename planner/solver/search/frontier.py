"""From stems to the columns that the fleet chooses from: best first, pruned only by proven bounds.

Every stem gets the key that the objective sorts by, from a bound on the step time of whatever grows from it. Stems are
grown into layouts in the order of that key, layouts are bounded with their memory and staged, until the next key is
worse than the best staged layout. What is never grown or never staged cannot win.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from planner.layouts.axes import Space, domain
from planner.layouts.offload import Offloaded, level_of
from planner.layouts.table import Ints, Layouts, Mask, joined
from planner.physics.training.estimate import TimeTerms, time_terms
from planner.physics.training.question import Question
from planner.process.stopping import told_to_stop
from planner.solver.progress import say, so_far
from planner.solver.search.bounding import Bounding, offers
from planner.solver.search.bounds import time_bound
from planner.solver.search.candidate_run import Stems, by_candidate, near_leaders
from planner.solver.search.floor import Floors
from planner.solver.search.found import Frontier, RowBatch, StagedLayout
from planner.solver.search.job import JobTerms, Pricing, identity
from planner.solver.search.keys import Key, Keys
from planner.solver.search.leaders import SORTED, Keeping, beaten_by_fewer, leading
from planner.solver.search.refine import refined_bound
from planner.solver.search.sieve import CHUNK, Sieve
from planner.solver.search.source import RowSource
from planner.solver.search.stage_row import stage_row
from planner.solver.settings import UNLIMITED, Effort, OutOfTime

GROWN = 2048
"""Stems of all candidates grown at once: their layouts, with all terms, are what memory is for."""
SIDE_BY_SIDE = 2**18
"""Stems of candidates searched together: what is computed at once costs little more than for one."""
BLOCK = 128
"""Rows whose bounds are refined at once."""


class GridSearch:
    """One workload's search.

    Candidates are searched side by side, so that what they ask for is computed for all of them at once. One with more
    stems than are held at once is searched block by block, and what is found in one block prunes the next.
    """

    def __init__(self, question: Question, space: Space, job: JobTerms, effort: Effort = UNLIMITED,
                 only: Offloaded | None = None, count: int = 1, first: bool = False,
                 leaders: Callable[[Ints], Keeping] | None = None, known: Sequence[StagedLayout] = (),
                 trades: bool = False, apart: bool = True, end: Key | None = None,
                 floors: Floors | None = None) -> None:
        """Start a search for the `count` best of each candidate; `only` is the one level of offload to look at.

        first: stop at the first layout that keeps every limit. leaders: makes what decides which layouts are of
        interest, from the GPU counts of a candidate's stems; where not given, the best are. known: what must be beaten.
        trades: each measure counts by itself, so that a layout is of interest with several numbers of spare nodes.
        apart: one candidate after the other, as it teaches what the next need not look at. end: the key behind which
        nothing is of interest. floors: those of the space, where they are known.
        """
        self.question, self.job, self.effort = question, job, effort
        self.pricing = Pricing(job, question.candidates, trades)
        self.out = Frontier()
        self.space = space
        self.first, self.leaders = first, leaders or partial(leading, count, end=end)
        self.alone = first or (leaders is not None and apart)
        self.seen: set[int] = set()
        self.levels = offers(question, space) if only is None else (only,)
        self.bounding = Bounding(question, self.pricing, self.levels, space.flash, self.out)
        self.kept: dict[int, Keeping] = {}
        for staged in known if job.timed else map(beaten_by_fewer, known):
            self.kept.setdefault(staged.column.candidate, self.leaders(np.zeros(0, np.int64))).offer(staged)
        self.sieve = Sieve(space, self.bounding, self.kept, end, effort, floors)
        self.runs: dict[int, Stems] = {}
        self.batches: list[RowBatch] = []

    def run(self, source: RowSource) -> Frontier:
        """Return the frontier of all rows: for every candidate its best layouts, proven unless time ran out."""
        try:
            self._run(source)
        except (OutOfTime, KeyboardInterrupt) as cut:
            self.out.interrupted |= isinstance(cut, KeyboardInterrupt)
            least = self.sieve.floors.lowest(domain("candidate", self.space))
            if least is not None:
                self.out.note_open(least)
        return self.out

    def _run(self, source: RowSource) -> None:
        """Take up the stems as they come, and search whenever as many are at hand as are worth a search."""
        parts: list[tuple[Layouts, Keys]] = []
        begun: set[int] = set()
        source = self.sieve.hopeful(source)
        for stems, more in self.sieve.blocks(source, 0 if self.alone else CHUNK):
            if self._enough():
                return
            candidates = set(np.unique(stems.candidate).tolist())
            if parts and begun & candidates:
                # a first block is searched before the next is bounded, which its plan thins out
                self._candidates(parts, source)
                parts, begun = [], set()
            begun |= candidates
            parts.append(self.sieve.within_limits(stems, source))
            if more or self.alone or sum(len(part) for part, _ in parts) > SIDE_BY_SIDE:
                self._candidates(parts, source)
                parts, begun = [], set()
        if parts:
            self._candidates(parts, source)

    def _candidates(self, parts: Sequence[tuple[Layouts, Keys]], source: RowSource) -> None:
        """Search the candidates of these stems; where time has run out, only note what their bounds leave open."""
        self.runs, self.batches = {}, []
        for candidate, own, least in by_candidate(parts):
            if candidate not in self.kept:
                self.kept[candidate] = self.leaders(own.gpus)
            self.runs[candidate] = Stems.start(self.kept[candidate], own, least, timed=self.job.timed)
        try:
            while not self.out.interrupted and (open_ := [run for run in self.runs.values() if not run.ended]):
                self._round(open_, source)
                say(lambda: so_far(self.job.objective, self.runs.values(), self.out.found))
        except OutOfTime:
            pass
        except KeyboardInterrupt:
            self.out.interrupted = True
        for run in self.runs.values():
            if not run.ended:
                # what was taken up but not ended is no worse than the least bound of all
                self._leave(Stems.start(run.leaders, run.stems, run.keys), source)

    def _round(self, runs: Sequence[Stems], source: RowSource) -> None:
        """Stage what is next in line of every candidate, then do for all of them at once what comes after: refine
        layouts, sharpen the bounds of stems, or grow them.
        """
        refine: dict[int, list[Ints]] = {}
        blunt: list[Layouts] = []
        grow: list[Layouts] = []
        for run in runs:
            block = self._stage(run)
            if block is not None:
                refine.setdefault(block[0], []).append(block[1])
            elif not self._ended(run, source):
                blunt.append(run.blunt())
                if not len(blunt[-1]):
                    stems, far = run.next()
                    self.out.removed["bound"] += far * source.points
                    grow.append(stems)
        for at, blocks in refine.items():
            self._refine(at, np.concatenate(blocks))
        if any(map(len, blunt)):
            self._sharpen(joined(blunt), source)
        if any(map(len, grow)):
            stems = joined(grow)
            for start in range(0, len(stems), GROWN):
                self.effort.check()
                self._take_up(source.grow(stems.take(slice(start, start + GROWN))))

    def _sharpen(self, stems: Layouts, source: RowSource) -> None:
        """Put stems back at bounds that take their memory into account."""
        for candidate, own, keys in by_candidate([self.sieve.held(stems, source)]):
            self.runs[candidate].sharpened(own, keys)

    def reaching(self, source: RowSource, most: int) -> Layouts:
        """Return every layout whose bound without memory is at most `most` in the objective's quantum."""
        tables = []
        source = self.sieve.hopeful(source)
        for stems, _ in self.sieve.blocks(source, 0):
            mine, keys = self.sieve.within_limits(stems, source)
            mine, keys = self.sieve.held(mine.take(np.flatnonzero(keys.first <= most)), source)
            rows = source.grow(mine.take(np.flatnonzero(keys.first <= most)))
            bounds = time_bound(self.question, rows, time_terms(self.question, rows))
            tables.append(rows.take(np.flatnonzero(self.pricing.least(rows, bounds).first <= most)))
        return joined(tables)

    def _ended(self, run: Stems, source: RowSource) -> bool:
        """Say whether a candidate's search has come to its end, and account for what it leaves."""
        ahead, end = run.ahead, run.leaders.end
        if ahead is None or self._enough() or (end is not None and ahead[:SORTED] > end):
            self.out.removed["bound"] += run.left * source.points
            self.out.removed["bound_with_memory"] += len(run.heap)
            run.ended = True
        elif self._out_of_time():
            self._leave(run, source)
        return run.ended

    def _leave(self, run: Stems, source: RowSource) -> None:
        """Count what is left when time ran out, and note its least key."""
        self.out.removed["time"] += run.left * source.points
        for key in (*([run.ahead] if run.ahead else []), *(entry for entry, *_ in run.heap[:1])):
            self.out.note_open(key[:2])
        run.ended = True

    def _near(self, rows: Layouts, keys: Keys) -> Mask:
        """Say which rows are still of interest to the search of their candidate."""
        if len(self.runs) == 1:
            return next(iter(self.runs.values())).leaders.near(keys)
        return near_leaders({candidate: run.leaders for candidate, run in self.runs.items()}, rows, keys)

    def _take_up(self, rows: Layouts) -> None:
        """Bound the rows without memory, and those that may still win with it."""
        if not self.job.timed:
            # what time decides nothing of is not timed
            near = np.flatnonzero(self._near(rows, self.pricing.least(rows, np.zeros(len(rows)))))
            self.out.removed["bound_without_memory"] += len(rows) - len(near)
            rows = rows.take(near)
        if not len(rows):
            return
        time = time_terms(self.question, rows)
        near = np.flatnonzero(self._near(rows, self.pricing.least(rows, time_bound(self.question, rows, time))))
        self.out.removed["bound_without_memory"] += len(rows) - len(near)
        if len(near):
            self._push(rows.take(near), time.take(near), np.zeros(len(near), np.int64))

    def _push(self, rows: Layouts, time: TimeTerms, known: Ints) -> None:
        """Put the rows on the heaps, and their variants with more offload where memory is seen to cost time."""
        for batch, keys, keep in self.bounding.batches(rows, time, known):
            near = keep & self._near(batch.rows, keys)
            self.out.removed["bound_with_memory"] += int(keep.sum()) - int(near.sum())
            rows_near = np.flatnonzero(near)
            candidate = batch.rows.candidate[rows_near]
            place = keys.take(rows_near).order(candidate)
            order, candidate = rows_near[place], candidate[place]
            self.batches.append(batch.take(order))
            for number, run in self.runs.items():
                begin, end = np.searchsorted(candidate, (number, number + 1)).tolist()
                for start in range(begin, end, BLOCK):
                    entry = (keys.entry(order[start]), len(self.batches) - 1, start, min(BLOCK, end - start))
                    heapq.heappush(run.heap, entry)

    def _enough(self) -> bool:
        return self.first and bool(self.out.found)

    def _out_of_time(self) -> bool:
        self.out.interrupted |= told_to_stop()
        return self.out.interrupted or self.effort.is_over

    def _stage(self, run: Stems) -> tuple[int, Ints] | None:
        """Stage what is on the heap while it may still be a leader and nothing ahead is better.

        Return the batch and the rows to refine before more can be staged; none where that is not needed.
        """
        leaders, heap, ahead = run.leaders, run.heap, run.ahead
        while heap and not self._enough():
            entry, at, row, block = heap[0]
            past = leaders.end is not None and entry[:SORTED] > leaders.end
            if past or (ahead is not None and entry[:SORTED] > ahead[:SORTED]):
                return None
            if self._out_of_time():
                self.out.note_open(entry[:2])
                return None
            heapq.heappop(heap)
            if block:
                return at, np.arange(row, row + block)
            size = int(self.batches[at].rows.gpus[row])
            if not leaders.passes(size, entry):
                self.out.removed["bound_with_memory"] += 1
                continue
            # a level of offload that is short after two lesser ones comes from both
            layout = identity(self.batches[at].rows, row)
            if layout in self.seen:
                continue
            self.seen.add(layout)
            found, short = stage_row(self.question, self.pricing, self.batches[at], row, self.out)
            if short:
                self._offload_more(self.batches[at], np.array([row]))
            for done in found if self.pricing.trades else found[:1]:
                self.out.found.append(done)
                leaders.offer(done)
        return None

    def _refine(self, at: int, rows: Ints) -> None:
        """Put blocks of rows of one batch back on the heaps one by one, each at its refined bound."""
        batch = self.batches[at].take(rows)
        steps = refined_bound(self.question, batch.rows, batch.time, batch.memory, batch.step)
        keys = self.pricing.least(batch.rows, steps)
        near = self._near(batch.rows, keys) & self.bounding.within_limits(keys, "_refined")
        self.out.removed["bound_refined"] += len(rows) - int(near.sum())
        for row in np.flatnonzero(near).tolist():
            run = self.runs[int(batch.rows.candidate[row])]
            heapq.heappush(run.heap, (keys.entry(row), at, int(rows[row]), 0))
        # whoever is short of memory here may be better with more of it elsewhere
        short = np.isinf(steps)
        if self.job.timed:
            short = steps > time_bound(self.question, batch.rows, batch.time) * (1 + 1e-12)
        self._offload_more(self.batches[at], rows[np.flatnonzero(short)])

    def _offload_more(self, batch: RowBatch, rows: Ints) -> None:
        """Put the variants of rows of one batch that offload more on the heaps, unless they are bounded already."""
        if not len(rows):
            return
        here, every = level_of(batch.rows, int(rows[0])), (1 << len(self.levels)) - 1
        lesser = sum(1 << number for number, level in enumerate(self.levels) if not here.precedes(level))
        known = batch.known[rows] | lesser
        batch.known[rows] = every
        more = np.flatnonzero(known < every)
        if len(more):
            self._push(batch.rows.take(rows[more]), batch.time.take(rows[more]), known[more])
