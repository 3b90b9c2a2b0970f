"""What any schedule costs at least: the linear relaxation over all ways, with ways added as its prices ask for them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.solver.fleet.linear import Floats, Optimum
from planner.solver.fleet.master import Master
from planner.solver.fleet.pausing import Prices, best_paused, cost_of
from planner.solver.fleet.program import FREE, Ints
from planner.solver.fleet.schedule import Placed, Problem
from planner.solver.fleet.scheduling_tasks import PURSE_UNIT
from planner.solver.fleet.ways import Ways, every_way, paid_of, paid_within, used_up

SAFE = 1e-9
"""Of all that is added up, that rounding may have hidden."""
NARROW = 1e-4
"""Share of the value that is no longer worth a round."""
STAGES = ((46, 22), (368, 40))
"""Blocks of periods that cost alike, and rounds of pricing at most."""
SMOOTHING = 0.7, 0.97
"""How much of the best prices is left each round, at least and at most: more where a round proves nothing better."""
WIDE = 2e-3
"""Share of the value between bound and relaxation at which blocks are made smaller, and rows are rounded."""
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
    ways: tuple[Ways, ...]
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


@dataclass(frozen=True, slots=True)
class _Bound:
    """What some prices prove."""

    value: int
    prices: Floats
    more: list[Floats]
    rejecting: list[float]
    paused: list[list[Placed]]


class Relaxation:
    """The relaxation of a problem, over ways that are added as they pay."""

    def __init__(self, problem: Problem) -> None:
        """Start with the cheapest ways."""
        self.problem = problem
        self.ways = tuple(every_way(problem))
        self.master = Master(problem, self.ways)
        self.within = [[paid_within(problem, task, mine, purse, PURSE_UNIT) for purse in problem.purses]
                       for task, mine in zip(problem.tasks, self.ways, strict=True)]
        number = {held: at + 1 for at, held in enumerate(self.master.held)}
        self.places = [self._places([[number[held] for held in option.held] for option in task.options], mine)
                       for task, mine in zip(problem.tasks, self.ways, strict=True)]
        self.best: _Bound | None = None
        self.smoothing = SMOOTHING[0]
        self.rounds = 0

    def _places(self, held: Sequence[Sequence[int]], ways: Ways) -> list[tuple[Ints, Ints]]:
        """Return where in the prices by held nodes and period each way begins and ends, for each pool that it is on."""
        found, width = [], self.problem.periods + 1
        for at in range(max(map(len, held), default=0)):
            rows = np.array([mine[at] if at < len(mine) else 0 for mine in held], dtype=np.int64)[ways.option] * width
            found.append((rows + ways.start, rows + ways.end))
        return found

    def solve(self, seconds: float | None = None) -> Relaxed | None:
        """Return the bound, as far as some rounds go; none where no schedule is in reach of the relaxation."""
        stop, last = None if seconds is None else time.monotonic() + seconds, None
        for number, (blocks, rounds) in enumerate(STAGES):
            block = -(-self.problem.periods // blocks)
            fine = number == len(STAGES) - 1 or block == 1
            last = self._stage(block, rounds, NARROW if fine else WIDE, stop, rounding=block == 1) or last
            if fine:
                break
        if self.best is None or last is None:
            return None
        best = self.best
        lots = tuple(tuple(float(last.values[nodes]) for nodes, _ in pool) for pool in self.master.model.lots)
        return Relaxed(best.value, self.ways, tuple(best.more), tuple(best.rejecting), lots,
                       tuple(map(tuple, self.master.paused)), self.rounds)

    def _stage(self, block: int, rounds: int, narrow: float, stop: float | None, *, rounding: bool) -> Optimum | None:
        """Go some rounds of pricing; return the last optimum. rounding: rows that whole nodes keep are added."""
        last, seen, roundings = None, list[int](), 0
        for _ in range(rounds):
            left = None if stop is None else stop - time.monotonic()
            if left is not None and left <= 0:
                break
            self.master.state()
            found = self.master.solve(block, left)
            if found is None:
                break
            self.rounds += 1
            steady = last is not None and abs(last.value - found.value) <= STEADY * abs(found.value)
            last, added = found, self._round(found)
            assert self.best is not None
            if self.master.is_short(found):
                continue
            if rounding and roundings < ROUNDINGS and (steady or not added):
                roundings += 1
                if self.master.round(found):
                    continue
            seen.append(self.best.value)
            stalled = len(seen) > STALLED and seen[-1] - seen[-1 - STALLED] < STALL * abs(found.value)
            if not added or found.value - self.best.value <= narrow * abs(found.value) or stalled:
                break
        return last

    def _round(self, found: Optimum) -> int:
        """Price all ways near the best prices so far, or where that finds none at those given; return those added."""
        added = 0
        own, held = self._costs(found.prices), self._held(found.prices)
        chosen = [float(found.prices[mine.choice]) for mine in self.master.model.tasks]
        each = [self._prices(at, found.prices, held) for at in range(len(own))]
        for share in (self.smoothing, 0.0) if self.best is not None else (0.0,):
            prices = found.prices
            if share and self.best is not None:
                known = np.zeros(len(prices))
                known[:len(self.best.prices)] = self.best.prices
                prices = share * known + (1 - share) * prices
            one = self._proven(prices, self._costs(prices) if share else own)
            better = self.best is None or one.value > self.best.value
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
        assert self.best is not None
        open_ = max(found.value - self.best.value, 2 * WIDE * abs(found.value))
        for at, mine in enumerate(own):
            self.master.drop(at, mine - chosen[at], [cost_of(self.problem, self.problem.tasks[at], placed, each[at])
                                                     - chosen[at] for placed in self.master.paused[at]], KEPT * open_)
        return added

    def _proven(self, prices: Floats, costs: Sequence[Floats]) -> _Bound:
        """Return what prices prove."""
        held = self._held(prices)
        paused = [best_paused(self.problem, task, self._prices(at, prices, held), np.inf)
                  for at, task in enumerate(self.problem.tasks)]
        bound, choices, rejecting = self._bound(prices, costs, [least for least, _ in paused])
        return _Bound(bound, prices, [mine - choice for mine, choice in zip(costs, choices, strict=True)], rejecting,
                      [several for _, several in paused])

    def _costs(self, prices: Floats) -> list[Floats]:
        """Return what each way of each task costs at some prices of everything but the task itself."""
        each = np.zeros((len(self.master.held) + 1, self.problem.periods + 1))
        for at, (_, mine) in enumerate(sorted(self._held(prices).items()), 1):
            np.cumsum(mine, out=each[at, 1:])
        return [self._more(at, prices, each.ravel()) for at in range(len(self.ways))]

    def _more(self, at: int, prices: Floats, each: Floats) -> Floats:
        problem, task, mine, model = self.problem, self.problem.tasks[at], self.ways[at], self.master.model
        more = mine.micro_usd.astype(np.float64)
        for first, last in self.places[at]:
            more = more + each[last] - each[first]
        for stock, at_row in enumerate(model.stocks):
            more = more - prices[at_row] * used_up(task, mine, stock)
        if model.budget is not None:
            more = more - prices[model.budget] * paid_of(task, mine)
        for row, within in zip(model.purses, self.within[at], strict=True):
            more = more - prices[row] * within
        for linked, moment in ((model.tasks[at].begun, mine.start), (model.tasks[at].open, mine.end - 1)):
            if linked:
                by = np.array([prices[linked[period]] for period in range(problem.periods)])
                more = more + by[moment]
        return np.asarray(more, dtype=np.float64)

    def _prices(self, at: int, prices: Floats, held: dict[tuple[int, int], Floats]) -> Prices:
        """Return what periods cost a task that pauses."""
        mine, periods = self.master.model.tasks[at], range(self.problem.periods)
        begin, end = (np.array([max(0.0, prices[rows[period]]) if rows else 0.0 for period in periods])
                      for rows in (mine.begun, mine.open))
        budget = self.master.model.budget
        return Prices(held, begin, end, 1.0 - (0.0 if budget is None else min(0.0, prices[budget])))

    def _held(self, prices: Floats) -> dict[tuple[int, int], Floats]:
        """Return what nodes of a pool cost in each period."""
        problem, master, found = self.problem, self.master, dict[tuple[int, int], Floats]()
        each = np.zeros((len(problem.pools), problem.periods))
        for pool, rows in master.model.capacity.items():
            each[pool] -= np.minimum(0, prices[rows.start:rows.stop])
        for ceiling, rows in zip(problem.ceilings, master.model.ceilings, strict=True):
            for at, weight in enumerate(problem.in_use(ceiling)):
                each[at] -= weight * np.minimum(0, prices[rows.start:rows.stop])
        for pool, nodes in master.held:
            found[pool, nodes] = nodes * each[pool] + master.rounded.prices(
                pool, nodes, master.cuts, prices, problem.periods)
        return found

    def _bound(self, prices: Floats, more: Sequence[Floats], paused: Sequence[float]
               ) -> tuple[int, list[float], list[float]]:
        """Return the least that anything costs at some prices, down, what of it each task takes, and what rejecting it
        costs more.
        """
        program, tasks = self.master.model.program, self.master.model.tasks
        least, most = np.array(program.least, dtype=np.float64), np.array(program.most, dtype=np.float64)
        prices = np.where(least <= -FREE, np.minimum(0, prices), prices)
        prices = np.where(most >= FREE, np.maximum(0, prices), prices)
        rows, variables, factors = self.master.entries
        choice = np.zeros(len(prices), dtype=bool)
        choice[[mine.choice for mine in tasks]] = True
        prices = np.where(choice, 0.0, prices)
        rest = np.array(program.price, dtype=np.float64)
        size = np.abs(rest)
        np.add.at(rest, variables, -prices[rows] * factors)
        np.add.at(size, variables, np.abs(prices[rows] * factors))
        chosen, rejecting = [], []
        for mine, costs, least_paused in zip(tasks, more, paused, strict=True):
            own = min([least_paused, *([float(rest[mine.rejected])] if mine.rejected is not None else []),
                       *([float(costs.min())] if len(costs) else [])])
            chosen.append(0.0 if own == np.inf else own)
            rejecting.append(np.inf if mine.rejected is None else float(rest[mine.rejected]) - own)
            if mine.rejected is not None:
                rest[mine.rejected] -= own
        others = self.master.others
        upper = np.array(program.upper, dtype=np.float64)[others]
        parts = [np.minimum(0, rest[others]) * upper, np.array(chosen),
                 np.where(prices > 0, prices * np.where(least <= -FREE, 0, least), prices * np.where(
                     most >= FREE, 0, most))]
        total = sum(float(part.sum()) for part in parts)
        doubt = SAFE * (sum(float(np.abs(part).sum()) for part in parts)
                        + float((1e-6 * size[others] * upper).sum()))
        return int(np.floor(total - doubt)), chosen, rejecting
