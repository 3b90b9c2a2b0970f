"""From legal layouts to the columns that the fleet chooses from: best first, pruned only by proven bounds.

Every layout gets the key that the objective sorts by, from a bound on its step time; layouts are staged in the
order of that key until the next key is worse than the best staged one. What is never staged cannot win.
"""

from __future__ import annotations

import heapq
import time as clock
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from planner.layouts.axes import Space
from planner.layouts.offload import NOTHING, Level, allowed, level_of, levels
from planner.layouts.table import Floats, Ints, Layouts, Mask
from planner.physics.estimate import TimeTerms, offloaded, time_terms
from planner.physics.memory import MemoryTerms, memory_terms
from planner.physics.question import Question
from planner.solver import staging
from planner.solver.bounds import Bound, bound, time_bound
from planner.solver.column import Column
from planner.solver.job import Job, Key, Keys, Pricing
from planner.solver.staging_input import staging_problem

FIRST_BATCH, LARGEST_BATCH = 2048, 32_768
"""Rows bounded with memory at once: few while the incumbent is young, more where the search goes deep."""
CHUNK = 65_536
PLENTY = 2**40
"""MiB that no stage can fill."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows with their terms, kept while any of them may still be staged."""

    rows: Layouts
    time: TimeTerms
    memory: MemoryTerms
    known: Ints
    """Bit n is set where the row's variant at level n of the search is bounded already."""


@dataclass(frozen=True, slots=True, eq=False)
class StagedLayout:
    """One staged layout: where its terms are, its split, its step time, and its column."""

    batch: Batch
    row: int
    staged: staging.Staged
    step_seconds: float
    goodput: float
    column: Column

    cents: int
    """Cost at the cheapest offer."""
    key: Key
    """What the objective sorts by, ties broken as in the fleet model."""


@dataclass(slots=True)
class Frontier:
    """What the search found: staged layouts by candidate, and the account of everything else."""

    found: list[StagedLayout] = field(default_factory=list)
    removed: Counter[str] = field(default_factory=Counter)
    fit: int = 0
    staged: int = 0
    interrupted: bool = False
    open_bound: Key | None = None
    """Least key among layouts not yet staged when time ran out; none where the search ended."""
    nearest_memory: tuple[float, dict[str, float]] | None = None
    """Allocated bytes short, and the layout that misses memory by least."""
    fastest_us: int | None = None


def offers(question: Question, space: Space) -> tuple[Level, ...]:
    """Return the levels of offload to look at: where nothing trains, weights are held where they are used."""
    return (NOTHING,) if question.tuning.forward_only else levels(space, question.stack)


class Search:
    """One workload's search. `deadline` is a monotonic clock reading at which to stop."""

    def __init__(self, question: Question, space: Space, job: Job, deadline: float | None = None,
                 only: Level | None = None) -> None:
        """Start a search; `only` is the one level of offload to look at, where not all."""
        self.question, self.space, self.job, self.deadline = question, space, job, deadline
        self.pricing = Pricing(job, question.candidates)
        self.out = Frontier()
        self.best: dict[int, Key] = {}
        self.levels = offers(question, space) if only is None else (only,)
        self.flash = space.flash

    def run(self, layouts: Layouts) -> Frontier:
        """Return the frontier of all rows: for every candidate its best layouts, proven unless time ran out."""
        keys = self.least(layouts)
        keep = self._within_limits(keys, layouts, "")
        least = np.flatnonzero(keep)[np.argsort(keys.first[keep])[:1]]
        try:
            for candidate in range(len(self.question.candidates)):
                mine = np.flatnonzero(keep & (layouts.candidate == candidate))
                order = mine[np.lexsort((layouts.gpus[mine], keys.cents[mine], keys.first[mine]))]
                self._candidate(candidate, layouts, order, keys)
        except KeyboardInterrupt:
            # nothing tighter is known of what was not staged than the least bound of all
            self.out.interrupted = True
            self._note_open((int(keys.first[least[0]]), 0))
        return self.out

    def least(self, layouts: Layouts) -> Keys:
        """Return the least keys of all rows if memory were free."""
        return self.pricing.least(layouts, self._time_bounds(layouts))

    def _time_bounds(self, layouts: Layouts) -> Floats:
        """Return least step seconds if memory were free, in chunks so that large grids stay small in memory."""
        parts = []
        for start in range(0, len(layouts), CHUNK):
            rows = layouts.take(np.arange(start, min(start + CHUNK, len(layouts))))
            parts.append(time_bound(self.question, rows, time_terms(self.question, rows)))
        return np.concatenate(parts) if parts else np.zeros(0)

    def _within_limits(self, keys: Keys, rows: Layouts, suffix: str) -> Mask:
        """Return which rows can still meet deadline and budget; count the others."""
        keep = np.ones(len(rows), bool)
        for name, limit, values in (("deadline", self.job.deadline_us, keys.uppers),
                                    ("budget", self.job.budget_cents, keys.cents),
                                    ("power", self.job.max_power_w, keys.watts), ("owned", 0, keys.surplus)):
            if limit is not None:
                late = keep & (values > limit)
                self.out.removed[name + suffix] += int(late.sum())
                keep &= ~late
        if len(rows):
            fastest = int(keys.micros.min())
            self.out.fastest_us = min(fastest, self.out.fastest_us or fastest)
        return keep

    def _candidate(self, candidate: int, layouts: Layouts, order: Ints, keys: Keys) -> None:
        """Stage the layouts of one candidate best first."""
        heap: list[tuple[Key, int, int]] = []
        batches: list[Batch] = []
        start, size = 0, FIRST_BATCH
        while True:
            rest = order[start:start + size]
            ahead = (int(keys.first[rest[0]]), int(keys.cents[rest[0]])) if len(rest) else None
            self._stage(candidate, heap, batches, ahead)
            best = self.best.get(candidate)
            if ahead is None:
                self.out.removed["bound_with_memory"] += len(heap)
                break
            if best is not None and ahead > best[:2]:
                self.out.removed["bound"] += len(order) - start
                self.out.removed["bound_with_memory"] += len(heap)
                break
            if self._out_of_time():
                self._note_open(min([ahead, *(k for k, _, _ in heap[:1])]))
                self.out.removed["time"] += len(order) - start
                break
            start, size = start + len(rest), min(2 * size, LARGEST_BATCH)
            rows = layouts.take(rest)
            self._push(heap, batches, rows, time_terms(self.question, rows), np.zeros(len(rows), np.int64))

    def _push(self, heap: list[tuple[Key, int, int]], batches: list[Batch], rows: Layouts,
              time: TimeTerms, known: Ints) -> None:
        """Put the rows on the heap, and their variants with more offload where memory is seen to cost time."""
        for batch, keys, keep in self._bounded(rows, time, known):
            batches.append(batch)
            for row in np.flatnonzero(keep):
                entry = (int(keys.first[row]), int(keys.cents[row]))
                heapq.heappush(heap, (entry, len(batches) - 1, int(row)))

    def _bounded(self, rows: Layouts, time: TimeTerms, known: Ints) -> Iterator[tuple[Batch, Keys, Mask]]:
        """Yield the rows at every level of offload not in `known` yet, each with keys and what fits.

        More offload only adds time, so a level can pay only where all lesser ones are short of memory. Where the
        bound does not show that, staging does, and asks again.
        """
        known, parts = known.copy(), []
        open_ = np.ones((len(self.levels), len(rows)), bool)
        for number, level in enumerate(self.levels):
            lesser = [n for n, other in enumerate(self.levels[:number]) if other.precedes(level)]
            at = level.on(rows)
            legal = np.ones(len(rows), bool)
            if level != NOTHING:
                legal = allowed(at.columns, self.question.stack, self.flash)
            mine = np.flatnonzero(legal & (known >> number & 1 == 0) & open_[lesser].all(axis=0))
            known[mine] |= 1 << number
            if not len(mine):
                continue
            now = at.take(mine)
            terms, memory = time.take(mine), memory_terms(self.question, now)
            if level != NOTHING:
                terms = offloaded(self.question, now, terms)
            bounds = bound(self.question, now, terms, memory)
            keys = self.pricing.least(now, bounds.step)
            keep = bounds.fits & self._within_limits(keys, now, "_with_memory")
            self.out.fit += int(bounds.fits.sum())
            self.out.removed["memory"] += int((~bounds.fits).sum())
            self._note_memory(now, bounds)
            open_[number, mine] = self._short(now, terms, bounds)
            parts.append((now, terms, memory, mine, keys, keep))
        for now, terms, memory, mine, keys, keep in parts:
            yield Batch(now, terms, memory, known[mine]), keys, keep

    def _short(self, rows: Layouts, time: TimeTerms, known: Bound) -> Mask:
        """Return where the bound already shows that memory costs time, or everything."""
        return ~known.fits | (known.step > time_bound(self.question, rows, time))

    def _note_memory(self, rows: Layouts, known: Bound) -> None:
        """Remember the layout that misses memory by least, for the explanation of an infeasible question."""
        if known.fits.all():
            return
        short = np.where(known.fits, np.inf, known.short)
        row = int(np.argmin(short))
        if self.out.nearest_memory is None or short[row] < self.out.nearest_memory[0]:
            self.out.nearest_memory = (float(short[row]), rows.row(row))

    def _note_open(self, key: Key) -> None:
        self.out.open_bound = min(key, self.out.open_bound or key)

    def _out_of_time(self) -> bool:
        return self.deadline is not None and clock.monotonic() > self.deadline

    def _stage(self, candidate: int, heap: list[tuple[Key, int, int]], batches: list[Batch],
               ahead: Key | None) -> None:
        """Stage what is on the heap while it may still be the candidate's best and nothing ahead is better."""
        while heap:
            best = self.best.get(candidate)
            if (best is not None and heap[0][0] > best[:2]) or (ahead is not None and heap[0][0] > ahead):
                return
            if self._out_of_time():
                self._note_open(heap[0][0])
                return
            _, at, row = heapq.heappop(heap)
            done, short = self._solve(batches[at], row)
            if short:
                self._offload_more(heap, batches, batches[at], row)
            if done is not None:
                self.out.found.append(done)
                if best is None or done.key < best:
                    self.best[candidate] = done.key

    def _offload_more(self, heap: list[tuple[Key, int, int]], batches: list[Batch], batch: Batch, row: int) -> None:
        """Put the variants of one staged row that offload more on the heap, unless they are bounded already."""
        here = level_of(batch.rows, row)
        lesser = sum(1 << number for number, level in enumerate(self.levels) if not here.precedes(level))
        known = batch.known[row:row + 1] | lesser
        if int(known[0]) < (1 << len(self.levels)) - 1:
            at = np.array([row])
            self._push(heap, batches, batch.rows.take(at), batch.time.take(at), known)

    def _solve(self, batch: Batch, row: int) -> tuple[StagedLayout | None, bool]:
        """Stage one row. Return it where it keeps every limit, and whether memory cost it time (or all)."""
        self.out.staged += 1
        rows, time = batch.rows, batch.time
        problem = staging_problem(self.question, rows, time, batch.memory, row)
        staged = staging.solve(problem)
        if staged is None:
            self.out.removed["staging"] += 1
            return None, True
        short = _costs_time(problem, staged)
        pipeline = staged.objective * 1e-9 / problem.bubble_parts
        step = (pipeline + float(time.step[row])) * float(time.jitter[row])
        column = self.pricing.column(rows, row, step)
        cents = self.pricing.cost(column)
        over = self._over_limit(column, cents)
        if over is not None:
            self.out.removed[over + "_staged"] += 1
            return None, short
        share = float(self.pricing.share(rows.take(np.array([row])))[0])
        return StagedLayout(batch, row, staged, step, share, column, cents, self.pricing.key(column)), short

    def _over_limit(self, column: Column, cents: int) -> str | None:
        """Return the limit that a staged layout breaks, which its bound did not show; none where it keeps all."""
        most = self.job.most_nodes[column.candidate]
        limits = (("deadline", column.upper_us, self.job.deadline_us), ("budget", cents, self.job.budget_cents),
                  ("power", column.power_w, self.job.max_power_w), ("owned", column.rented_nodes, most))
        return next((name for name, value, limit in limits if limit is not None and value > limit), None)


def _costs_time(problem: staging.StagingProblem, staged: staging.Staged) -> bool:
    """Say whether memory made the split slower than it need be."""
    fastest = min(problem.mode_ns[mode] for mix in problem.mixes for mode in mix)
    fixed = problem.min_layers == problem.max_layers
    if fixed and all(not count or ns == fastest for row in staged.counts
                     for count, ns in zip(row, problem.mode_ns, strict=True)):
        return False
    return staged.objective > _without_memory(problem, fixed=fixed)


def _without_memory(problem: staging.StagingProblem, *, fixed: bool) -> int:
    """Return the objective of the same split with memory for everything."""
    layers = problem.max_layers if fixed else (problem.layers,) * problem.stages
    free = staging.solve(replace(problem, capacity_units=PLENTY, max_layers=layers, shared=()))
    assert free is not None, "a split without memory limits always exists"
    return free.objective
