"""Rows to bounded batches: every level of offload that could pay, with keys, what fits, and what breaks a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from planner.layouts.axes import Space
from planner.layouts.memo import Memos
from planner.layouts.offload import NOTHING, Offloaded, allowed, levels
from planner.layouts.table import Floats, Ints, Layouts, Mask
from planner.physics.training.estimate import TimeTerms, offloaded
from planner.physics.training.memory import memory_terms
from planner.physics.training.question import Question
from planner.solver.search.bounds import Bound, bound, time_bound
from planner.solver.search.found import Batch, Frontier
from planner.solver.search.holding import backward_short, least_short, stems_steps
from planner.solver.search.job import Pricing
from planner.solver.search.keys import Keys
from planner.solver.search.source import Source

STEM = ("precision", "tp", "cp", "dp", "micro_batch", "pp", "ep", "expert_tp", "sp", "micro_batches")
"""What tells the stems on one kind of hardware apart."""
_STEPS = Memos()


def offers(question: Question, space: Space) -> tuple[Offloaded, ...]:
    """Return the levels of offload to look at: where nothing trains, weights are held where they are used."""
    return (NOTHING,) if question.tuning.forward_only else levels(space, question.stack)


class Bounding:
    """Bounds rows of one question, and counts in `out` what cannot be staged."""

    def __init__(self, question: Question, pricing: Pricing, levels: tuple[Offloaded, ...], flash: Mask,
                 out: Frontier) -> None:
        self.question, self.pricing, self.levels, self.flash, self.out = question, pricing, levels, flash, out

    def within_limits(self, keys: Keys, suffix: str = "", points: int = 1) -> Mask:
        """Return which rows can still meet every limit; count the others, each for `points`."""
        job = self.pricing.job
        keep = np.ones(len(keys.first), bool)
        for name, limit, values in (("deadline", job.deadline_us, keys.uppers),
                                    ("budget", job.budget_cents, keys.cents),
                                    ("power", job.max_power_w, keys.watts), ("owned", 0, keys.surplus)):
            if limit is not None:
                late = keep & (values > limit)
                if late.any():
                    self.out.removed[name + suffix] += int(late.sum()) * points
                    keep &= ~late
        return keep

    def least_steps(self, stems: Layouts, source: Source, near: Callable[[Layouts, Keys], Mask]) -> Floats:
        """Return the least step seconds of whatever grows from each stem with its memory; inf where it has too little.

        near: which stems are of interest at given keys. Stems on the same hardware of several offers are worked out
        once, as are those of several searches.
        """
        steps, unknown = np.full(len(stems), np.inf), np.arange(len(stems))
        if source.alike is None or not self.pricing.job.timed:
            return self._worked_out(stems, source, near)[0]
        memo = _STEPS.of(self.question, (self.levels, source.alike), 2)
        codes = memo.codes(self.question.alike[stems.candidate], *(getattr(stems, name) for name in STEM))
        places = memo.places(codes)
        known = np.flatnonzero(places >= 0)
        if len(known):
            steps[known], cut = memo.at(places[known]).T
            # less was worked out of what was of no interest elsewhere
            again, some = known[cut > 0], stems.take(known[cut > 0])
            again = again[near(some, self.pricing.least(some, steps[again]))]
            unknown = np.union1d(np.flatnonzero(places < 0), again)
        while len(unknown):
            # of equal ones the first, and another where that is of no interest
            first = {codes[at]: at for at in reversed(unknown.tolist())}
            mine = np.sort(np.fromiter(first.values(), np.int64, len(first)))
            found, far = self._worked_out(stems.take(mine), source, near)
            memo.add([codes[at] for at in mine.tolist()], np.stack([found, far], axis=1))
            steps[mine] = found
            rest = np.setdiff1d(unknown, mine)
            at = np.searchsorted(mine, [first[codes[one]] for one in rest.tolist()])
            steps[rest], cut = found[at], far[at]
            some = stems.take(rest[cut])
            unknown = rest[cut][near(some, self.pricing.least(some, steps[rest[cut]]))]
        return steps

    def _worked_out(self, stems: Layouts, source: Source, near: Callable[[Layouts, Keys], Mask]
                    ) -> tuple[Floats, Mask]:
        """Return the least step seconds of stems, and of which less was worked out, as they are of no interest."""
        return stems_steps(self.question, self.levels, self.flash, stems, source.stages(stems),
                           lambda some, steps: near(some, self.pricing.least(some, steps)))

    def batches(self, rows: Layouts, time: TimeTerms, known: Ints) -> Iterator[tuple[Batch, Keys, Mask]]:
        """Yield the rows at every level of offload not in `known` yet, each with keys and what may be staged.

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
            memory = memory_terms(self.question, now)
            holds = ((least_short(self.question, now, memory) <= 0)
                     & (backward_short(self.question, now, memory) <= 0))
            open_[number, mine] = True
            if not holds.all():
                self.out.removed["memory"] += int((~holds).sum())
                mine, now, memory = mine[holds], now.take(holds), memory.take(np.flatnonzero(holds))
            terms = time.take(mine)
            if level != NOTHING:
                terms = offloaded(self.question, now, terms)
            bounds = bound(self.question, now, terms, memory)
            keys = self.pricing.least(now, bounds.step)
            keep = bounds.fits & self.within_limits(keys, "_with_memory")
            self.out.fit += int(bounds.fits.sum())
            self.out.removed["memory"] += int((~bounds.fits).sum())
            open_[number, mine] = self._short(now, terms, bounds)
            parts.append((now, terms, memory, bounds.step, mine, keys, keep))
        for now, terms, memory, step, mine, keys, keep in parts:
            yield Batch(now, terms, memory, step, known[mine]), keys, keep

    def _short(self, rows: Layouts, time: TimeTerms, known: Bound) -> Mask:
        """Return where the bound already shows that memory costs time, where that counts, or everything."""
        if not self.pricing.job.timed:
            return ~known.fits
        return ~known.fits | (known.step > time_bound(self.question, rows, time))
