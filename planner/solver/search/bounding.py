"""Rows to bounded batches: every level of offload that could pay, with keys, what fits, and what breaks a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner.layouts.axes import Space
from planner.layouts.memo import Memos
from planner.layouts.offload import NOTHING, Offloaded, allowed, levels
from planner.layouts.table import Floats, Ints, Layouts, Mask, joined
from planner.physics.training.estimate import TimeTerms, offloaded
from planner.physics.training.memory import memory_terms
from planner.physics.training.question import Question
from planner.solver.search.bounds import Bound, bound, time_bound
from planner.solver.search.found import Frontier, RowBatch
from planner.solver.search.holding import backward_short, least_short, stems_steps
from planner.solver.search.job import Pricing
from planner.solver.search.keys import Keys
from planner.solver.search.source import RowSource

STEM = ("precision", "tp", "cp", "dp", "micro_batch", "pp", "ep", "expert_tp", "sp", "micro_batches")
"""What tells the stems on one kind of hardware apart."""
AT_ONCE = 1024
"""Rows of all levels of offload that are bounded in one piece."""
_STEPS = Memos()


@dataclass(frozen=True, slots=True)
class _Bounded:
    """Rows whose states fit, with what bounds them; of all that were looked at, their place among these or -1."""

    place: Ints
    batch: RowBatch
    bounds: Bound
    keys: Keys
    short: Mask
    """Where memory is seen to cost time, or all."""


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

    def least_steps(self, stems: Layouts, source: RowSource, near: Callable[[Layouts, Keys], Mask]) -> Floats:
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

    def _worked_out(self, stems: Layouts, source: RowSource, near: Callable[[Layouts, Keys], Mask]
                    ) -> tuple[Floats, Mask]:
        """Return the least step seconds of stems, and of which less was worked out, as they are of no interest."""
        return stems_steps(self.question, self.levels, self.flash, stems, source.stages(stems),
                           lambda some, steps: near(some, self.pricing.least(some, steps)))

    def batches(self, rows: Layouts, time: TimeTerms, known: Ints) -> Iterator[tuple[RowBatch, Keys, Mask]]:
        """Yield the rows at every level of offload not in `known` yet, each with keys and what may be staged.

        More offload only adds time, so a level can pay only where all lesser ones are short of memory. Where the
        bound does not show that, staging does, and asks again.
        """
        known, parts = known.copy(), []
        open_ = np.ones((len(self.levels), len(rows)), bool)
        # of few rows all levels at once: what a few more cost is less than asking again
        together = len(self.levels) if len(rows) * len(self.levels) <= AT_ONCE else 1
        for begin in range(0, len(self.levels), together):
            group = range(begin, min(begin + together, len(self.levels)))
            wanted = [self._to_bound(number, rows, known, open_) for number in group]
            now = joined([self.levels[number].on(rows.take(mine)) for number, mine in zip(group, wanted, strict=True)])
            if not len(now):
                continue
            found = self._bounded(now, time.take(np.concatenate(wanted)))
            ends = np.cumsum([*map(len, wanted)])[:-1]
            for number, mine, there in zip(group, wanted, np.split(found.place, ends), strict=True):
                lesser = self._short_of_lesser(number, open_)[mine]
                known[mine[lesser]] |= 1 << number
                holds = there >= 0
                self.out.removed["memory"] += int((lesser & ~holds).sum())
                at, place = mine[lesser & holds], there[lesser & holds]
                if not len(at):
                    continue
                batch, keys, fits = found.batch.take(place), found.keys.take(place), found.bounds.fits[place]
                keep = fits & self.within_limits(keys, "_with_memory")
                self.out.fit += int(fits.sum())
                self.out.removed["memory"] += int((~fits).sum())
                open_[number, at] = found.short[place]
                parts.append((batch, at, keys, keep))
        for batch, at, keys, keep in parts:
            yield replace(batch, known=known[at]), keys, keep

    def _short_of_lesser(self, number: int, open_: Mask) -> Mask:
        """Return where all lesser levels may be short of memory, as they have to be before one can pay."""
        lesser = [n for n, other in enumerate(self.levels[:number]) if other.precedes(self.levels[number])]
        short: Mask = np.logical_and.reduce(open_[lesser])
        return short

    def _to_bound(self, number: int, rows: Layouts, known: Ints, open_: Mask) -> Ints:
        """Return the rows whose variant at a level may pay and is not bounded yet."""
        level = self.levels[number]
        wanted = (known >> number & 1 == 0) & self._short_of_lesser(number, open_)
        if level != NOTHING:
            wanted &= allowed(level.on(rows).columns, self.question.stack, self.flash)
        return np.flatnonzero(wanted)

    def _bounded(self, now: Layouts, time: TimeTerms) -> _Bounded:
        """Return rows, which their offload has not been timed of yet, with all that bounds those whose states fit."""
        memory, place = memory_terms(self.question, now), np.full(len(now), -1)
        holds = np.flatnonzero((least_short(self.question, now, memory) <= 0)
                               & (backward_short(self.question, now, memory) <= 0))
        place[holds] = np.arange(len(holds))
        if len(holds) < len(now):
            now, time, memory = now.take(holds), time.take(holds), memory.take(holds)
        terms = offloaded(self.question, now, time)
        bounds = bound(self.question, now, terms, memory)
        return _Bounded(place, RowBatch(now, terms, memory, bounds.step, np.zeros(len(now), np.int64)), bounds,
                        self.pricing.least(now, bounds.step), self._short(now, terms, bounds))

    def _short(self, rows: Layouts, time: TimeTerms, known: Bound) -> Mask:
        """Return where the bound already shows that memory costs time, where that counts, or everything."""
        if not self.pricing.job.timed:
            return ~known.fits
        return ~known.fits | (known.step > time_bound(self.question, rows, time))
