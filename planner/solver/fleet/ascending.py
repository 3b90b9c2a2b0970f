"""Better prices without a linear program: rows that the best ways break become dearer, step by step.

The volume algorithm of Barahona and Anbil (2000): a step goes along the mean of what the rows were broken by, as far as
what is still open between bound and target says, from the prices that proved most so far.
"""

from __future__ import annotations

import time
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.solver.fleet.linear import Floats
from planner.solver.fleet.master import Master
from planner.solver.fleet.pricing import Priced, WayPrices
from planner.solver.fleet.program import FREE
from planner.solver.fleet.schedule import CENT, Placed

T = TypeVar("T")
LEAST_STEP, STEP, MOST_STEP = 0.005, 0.5, 2.0
"""Share of what is open that a step goes, at first the second."""
FRESH = 0.1
"""Of the last step in the mean direction."""
PATIENCE = 5
"""Steps without a better bound after which they become shorter."""
SHORTER, LONGER = 0.7, 1.1
AHEAD = 0.1
"""Share of the bound by which the target is above it where no other is known."""
MOST_COLLECTED = 40
"""Ways of a task, the last ones."""


class Ascent:
    """Steps from some prices on, and the ways that were best of each task on the way."""

    def __init__(self, pricing: WayPrices, start: Priced, step: float = STEP) -> None:
        """Start from prices with what they prove."""
        self.pricing, self.best, self.step = pricing, start, step
        self.lots: tuple[tuple[float, ...], ...] = ()
        """Nodes of each lot, by pool, in the mean of all steps."""
        self.ways: list[dict[int, None]] = [{} for _ in pricing.ways]
        self.paused: list[dict[Placed, None]] = [{} for _ in pricing.ways]

    def run(self, steps: int, target: float, stop: float | None) -> Priced:
        """Go so many steps; return what the best prices prove. stop: a monotonic clock reading."""
        master, missed = self.pricing.master, 0
        direction: Floats | None = None
        taken = np.zeros(len(master.price))
        scale, now = _scale(master), self.best
        for _ in range(steps):
            if stop is not None and time.monotonic() > stop:
                break
            broken, chosen = self._broken(now)
            broken, taken = broken / scale, FRESH * chosen + (1 - FRESH) * taken if direction is not None else chosen
            direction = broken if direction is None else FRESH * broken + (1 - FRESH) * direction
            kept = np.where((self.best.prices == 0) & self._outward(direction), 0.0, direction)
            size = float((kept * kept).sum())
            aim = self.best.value + max(AHEAD * abs(self.best.value), CENT) if target == np.inf else target
            if size < 1e-12 or aim <= self.best.value:
                break
            prices = self.best.prices + self.step * (aim - self.best.value) / size * kept / scale
            now = self.pricing.proven(prices)
            self._collect(now)
            if now.value > self.best.value:
                self.best, missed = now, 0
                self.step = min(MOST_STEP, self.step * LONGER)
            else:
                missed += 1
                if missed >= PATIENCE:
                    self.step, missed = max(LEAST_STEP, self.step * SHORTER), 0
        self.lots = tuple(tuple(float(taken[nodes]) for nodes, _ in pool) for pool in master.model.lots)
        return self.best

    def _outward(self, direction: Floats) -> NDArray[np.bool_]:
        least, most = self.pricing.master.ends
        return ((least <= -FREE) & (direction > 0)) | ((most >= FREE) & (direction < 0))

    def _collect(self, priced: Priced) -> None:
        for at, (more, paused, pauses) in enumerate(zip(priced.more, priced.paused, priced.pauses, strict=True)):
            if len(more):
                _last(self.ways[at], int(more.argmin()))
            if pauses:
                _last(self.paused[at], paused[0])

    def _broken(self, priced: Priced) -> tuple[Floats, Floats]:
        """Return by how much the best of everything by itself breaks each row: what is negative makes a limit dearer.

        And values of the variables that are no ways.
        """
        master, problem = self.pricing.master, self.pricing.problem
        model, (least, most), rest = master.model, master.ends, priced.rest
        found = np.where(least <= -FREE, most, least)
        taken = np.zeros(len(rest))
        taken[master.others] = np.where(rest[master.others] < 0, master.upper, 0)
        for nodes, numbers, _ in model.numbered:
            best = int(rest[numbers.start:numbers.stop].argmin())
            taken[nodes], taken[numbers.start + best] = best, 1
        rows, variables, factors = master.other_entries
        found = found - np.bincount(rows, factors * taken[variables], len(found))
        used = {held: np.zeros(problem.periods + 1) for held in master.held}
        ends = np.full((len(problem.tasks), 2), problem.periods, dtype=np.int64)
        for at, task in enumerate(problem.tasks):
            placed = self._placed(priced, at, found)
            if placed is None:
                continue
            option = task.options[placed.option]
            ends[at] = placed.runs[0][0], placed.runs[-1][1]
            for held, (start, end) in product(option.held, placed.runs):
                used[held][start] += 1
                used[held][end] -= 1
            for stock, row in enumerate(model.stocks):
                found[row] -= option.uses[stock] if option.uses else 0
            if model.budget is not None:
                found[model.budget] -= placed.cost(task)
        self._on_nodes(found, {held: np.cumsum(mine)[:-1] for held, mine in used.items()})
        periods = np.arange(problem.periods)
        for at, other, rows_of in model.orders:
            found[rows_of.start:rows_of.stop] = 1 - (periods >= ends[at, 0]) - (periods < ends[other, 1])
        found[master.choices] = found[master.lot_rows] = 0
        for linked, *_ in master.links:
            found[linked.start:linked.stop] = 0
        return found, taken

    def _placed(self, priced: Priced, at: int, found: Floats) -> Placed | None:
        """Return the best way of a task, and take what it spends of each quarter without pauses; none is rejected."""
        if priced.pauses[at]:
            return priced.paused[at][0]
        if priced.rejecting[at] <= 0 or not len(priced.more[at]):
            return None
        way, mine = int(priced.more[at].argmin()), self.pricing.ways[at]
        for purse, within in zip(self.pricing.master.model.purses, self.pricing.within[at], strict=True):
            found[purse] -= within[way]
        return Placed(int(mine.option[way]), ((int(mine.start[way]), int(mine.end[way])),))

    def _on_nodes(self, found: Floats, used: dict[tuple[int, int], Floats]) -> None:
        """Take what tasks use from the rows of pools, of ceilings, and of whole nodes."""
        master, problem = self.pricing.master, self.pricing.problem
        for (pool, nodes), count in used.items():
            if pool in master.model.capacity:
                rows = master.model.capacity[pool]
                found[rows.start:rows.stop] -= nodes * count
            for ceiling, rows in zip(problem.ceilings, master.model.ceilings, strict=True):
                found[rows.start:rows.stop] -= nodes * problem.in_use(ceiling)[pool] * count
        for row, (pool, divisor, period) in zip(master.cuts, master.rounded.stated, strict=True):
            for size in master.rounded.sizes[pool]:
                if count := used[pool, size][period]:
                    found[row] -= count * master.rounded.weights(pool, divisor, size)[period]


def _scale(master: Master) -> Floats:
    """Return the largest factor of each row, so that rows count alike."""
    program = master.model.program
    rows, _, factors = program.entries()
    scale = np.ones(len(program.least))
    np.maximum.at(scale, rows, np.abs(factors).astype(np.float64))
    return scale


def _last(known: dict[T, None], one: T) -> None:
    """Put one last, and forget the first of too many."""
    known.pop(one, None)
    known[one] = None
    if len(known) > MOST_COLLECTED:
        del known[next(iter(known))]
