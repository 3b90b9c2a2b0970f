"""What any schedule costs at least: the linear relaxation over all ways, with ways added as its prices ask for them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.solver.fleet.ascending import STEP, Ascent
from planner.solver.fleet.linear import Floats, Optimum
from planner.solver.fleet.master import Master
from planner.solver.fleet.pausing import cost_of
from planner.solver.fleet.pricing import WayPrices
from planner.solver.fleet.schedule import Placed, Problem, Schedule
from planner.solver.fleet.ways import TaskWays, every_way

NARROW = 1e-4
"""Share of the value that is no longer worth a round."""
ASCENT, STEPS, ROUNDS = 60, 20, 60
"""Steps to better prices before the first linear program and after each; and rounds of them at most."""
DEAREST = 1e21
"""Micro-USD at which a task without a place is out of reach."""
SMOOTHING = 0.7, 0.97
"""How much of the best prices is left each round, at least and at most: more where a round proves nothing better."""
WIDE = 2e-3
"""Share of the value that is taken to be open at least, when ways are dropped."""
LARGE, BLOCKS = 50_000, (14, 4)
"""Tasks times periods from which on neighboring periods are one at first: the program is solved in a fifth of the time.
"""
HUGE = 100_000
"""The same from which on the program of all periods would take minutes: the last steps are without it."""
COARSE = 0.01
"""Share of the value between bound and relaxation at which they are made smaller."""
STALLED, STALL = 6, 3e-4
"""Rounds without so much more of the value, which end a stage."""
STEADY = 5e-4
"""Share of the value by which the relaxation changes no more, so that rows may be rounded."""
ROUNDINGS = 6
"""How often rows are rounded at most."""
MOST_ADDED = 30
"""Ways of a task in one round."""
PAYS = 1e3
"""Micro-USD by which a way has to be cheaper than those that are looked at."""
KEPT = 0.5
"""Ways are kept that cost no more than the best and this share of what is open between bound and relaxation."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The least that any schedule costs, and of each way the least that a schedule with it costs more."""

    bound: int
    ways: tuple[TaskWays, ...]
    """All of each task."""
    more: tuple[Floats, ...]
    """Micro-USD, by task and way."""
    rejecting: tuple[float, ...]
    """The same for rejecting each task; endless where it must be done."""
    lots: tuple[tuple[float, ...], ...]
    """Nodes of each lot, by pool, in parts of nodes."""
    paused: tuple[tuple[Placed, ...], ...]
    """Ways with pauses that paid, by task."""
    rounds: int
    pausing: tuple[dict[int, float], ...] = ()
    """As `more`, of ways with pauses in each option that may have some: at least, or less."""


class Relaxing:
    """The relaxation of a problem, over ways that are added as they pay."""

    def __init__(self, problem: Problem, known: Sequence[Schedule] = ()) -> None:
        """Start with the cheapest ways, and those of known schedules, so that every task has a place."""
        self.problem = problem
        self.ways = tuple(every_way(problem))
        self.master = Master(problem, self.ways)
        for at, placed in ((at, placed) for schedule in known for at, placed in enumerate(schedule.tasks) if placed):
            way = self.ways[at].find(placed.option, placed.runs[0][0]) if len(placed.runs) == 1 else None
            # stated with the first linear program
            self.master.add(at, [] if way is None else [way], [placed] if len(placed.runs) > 1 else [])
        self.pricing = WayPrices(problem, self.master)
        self.best = self.pricing.proven(self._first())
        self.smoothing = SMOOTHING[0]
        self.step = STEP
        self.rounds = 0
        self.reached = bool(known)
        """Whether the relaxation has an optimum, as far as is known."""
        self.lots: tuple[tuple[float, ...], ...] = ()

    @property
    def bound(self) -> int:
        """What any schedule costs at least, as far as is known."""
        return max(0, self.best.value)

    def _first(self) -> Floats:
        """Return prices at which no lot pays: every task alone, with its share of the cheapest lot."""
        model = self.master.model
        prices = np.zeros(len(model.program.least))
        for pool, rows in model.capacity.items():
            each = [lot.cost(nodes) / (nodes * (lot.end - lot.start)) for lot in self.problem.pools[pool].lots
                    for nodes in range(1, 1 + (lot.most if len(lot.micro_usd) > 1 else 1)) if lot.most]
            prices[rows.start:rows.stop] = -min(each, default=0.0)
        return prices

    def solve(self, seconds: float | None = None) -> Relaxed | None:
        """Return the bound, as far as some rounds go; none where no schedule is in reach of the relaxation."""
        stop = None if seconds is None else time.monotonic() + seconds
        self._ascend(ASCENT, np.inf, None if seconds is None else time.monotonic() + seconds / 3)
        size = len(self.problem.tasks) * self.problem.periods
        for block in (*(BLOCKS if size > LARGE else ()), *(() if size > HUGE else (1,))):
            if not self._stage(block, stop):
                return None
        if size > HUGE:
            self._ascend(ASCENT, self.best.value * (1 + COARSE), stop)
        best = self.best
        pausing = tuple(self.pricing.pausing(self._known(), best.least))
        return Relaxed(best.value, self.ways, tuple(best.more), tuple(best.rejecting), self.lots,
                       tuple(map(tuple, self.master.paused)), self.rounds, pausing)

    def _known(self) -> Floats:
        """Return the best prices so far, with nothing for rows that are new."""
        known = np.zeros(len(self.master.ends[0]))
        known[:len(self.best.prices)] = self.best.prices
        return known

    def _ascend(self, steps: int, target: float, stop: float | None) -> None:
        """Better the best prices, and look at ways that were best on the way."""
        # rows and variables may be new since it was priced
        ascent = Ascent(self.pricing, self.pricing.proven(self._known()), self.step)
        found = ascent.run(steps, target, stop)
        self.best = max(self.best, found, key=lambda one: one.value)
        self.step = ascent.step
        if not self.rounds:
            self.lots = ascent.lots
        for at, (ways, paused) in enumerate(zip(ascent.ways, ascent.paused, strict=True)):
            self.master.add(at, ways, list(paused))

    def _stage(self, block: int, stop: float | None) -> bool:
        """Go some rounds of pricing with so many neighboring periods as one, and add rows that whole nodes keep; return
        whether any schedule is in reach.
        """
        last, seen, roundings = None, list[int](), 0
        for _ in range(ROUNDS):
            left = None if stop is None else stop - time.monotonic()
            if left is not None and left <= 0:
                break
            self.master.state()
            found = self.master.solve(block, left)
            if found is None:
                return self.reached or (left is not None and stop is not None and time.monotonic() > stop)
            self.rounds, self.reached = self.rounds + 1, True
            self.lots = tuple(tuple(float(found.values[nodes]) for nodes, _ in pool) for pool in self.master.model.lots)
            steady = last is not None and abs(last.value - found.value) <= STEADY * abs(found.value)
            last, added = found, self._round(found)
            if self.master.is_short(found):
                if not added and max(self.master.dear) > DEAREST:
                    return False
                continue
            self._ascend(STEPS, found.value, stop)
            if block > 1 and found.value - self.best.value <= COARSE * abs(found.value):
                break
            if block == 1 and roundings < ROUNDINGS and (steady or not added):
                roundings += 1
                if self.master.round(found):
                    continue
            seen.append(self.best.value)
            stalled = len(seen) > STALLED and seen[-1] - seen[-1 - STALLED] < STALL * abs(found.value)
            if not added or found.value - self.best.value <= NARROW * abs(found.value) or stalled:
                break
        return True

    def _round(self, found: Optimum) -> int:
        """Price all ways near the best prices so far, or where that finds none at those given; return those added."""
        added, pricing = 0, self.pricing
        own, held = pricing.costs(found.prices), pricing.held(found.prices)
        chosen = [float(found.prices[mine.choice]) for mine in self.master.model.tasks]
        each = [pricing.prices_of(at, found.prices, held) for at in range(len(own))]
        known = self._known()
        for share in (self.smoothing, 0.0):
            one = pricing.proven(share * known + (1 - share) * found.prices)
            better = one.value > self.best.value
            if share:
                self.smoothing = max(SMOOTHING[0], self.smoothing * 0.95) if better else min(
                    SMOOTHING[1], 1 - (1 - self.smoothing) * 0.6)
            if better:
                self.best = one
            for at, (more, mine) in enumerate(zip(one.more, own, strict=True)):
                near = np.argsort(more, kind="stable")[:MOST_ADDED] if len(more) else np.zeros(0, dtype=np.intp)
                pays = near[mine[near] - chosen[at] < -PAYS]
                added += self.master.add(at, pays.tolist(), [placed for placed in one.paused[at] if cost_of(
                    self.problem, self.problem.tasks[at], placed, each[at]) - chosen[at] < -PAYS])
            if added:
                break
        open_ = max(found.value - self.best.value, 2 * WIDE * abs(found.value))
        for at, mine in enumerate(own):
            self.master.drop(at, mine - chosen[at], [cost_of(self.problem, self.problem.tasks[at], placed, each[at])
                                                     - chosen[at] for placed in self.master.paused[at]], KEPT * open_)
        return added
