"""What any schedule costs at least at some prices of what is scarce: every task by itself, in its cheapest way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.solver.fleet.linear import Floats
from planner.solver.fleet.master import Master
from planner.solver.fleet.pausing import Prices, best_paused, bounds_of, pausable
from planner.solver.fleet.program import FREE, Ints
from planner.solver.fleet.schedule import Placed, Problem
from planner.solver.fleet.scheduling_tasks import PURSE_UNIT
from planner.solver.fleet.ways import TaskWays, paid_of, paid_within, used_up

SAFE = 1e-9
"""Of all that is added up, that rounding may have hidden."""


@dataclass(frozen=True, slots=True)
class Priced:
    """What some prices prove, and what everything costs by them."""

    value: int
    prices: Floats
    more: list[Floats]
    """Micro-USD by which each way of each task costs more than its best."""
    rejecting: list[float]
    paused: list[list[Placed]]
    """Ways with pauses of each task that cost less than all others, the best first."""
    pauses: list[bool]
    """Whether pauses are the best of each task."""
    least: list[float]
    """What the best of each task costs; nothing where it has none."""
    rest: Floats
    """What each variable that is no way costs."""


class WayPrices:
    """Every way of every task, and where in the prices each is looked up."""

    def __init__(self, problem: Problem, master: Master) -> None:
        """Look up what does not change with the prices."""
        self.problem, self.master, self.ways = problem, master, master.ways
        self.within = [[paid_within(problem, task, mine, purse, PURSE_UNIT) for purse in problem.purses]
                       for task, mine in zip(problem.tasks, self.ways, strict=True)]
        self.pausable = [pausable(problem, task) for task in problem.tasks]
        number = {held: at + 1 for at, held in enumerate(master.held)}
        self.places = [self._places([[number[held] for held in option.held] for option in task.options], mine)
                       for task, mine in zip(problem.tasks, self.ways, strict=True)]

    def _places(self, held: Sequence[Sequence[int]], ways: TaskWays) -> list[tuple[Ints, Ints]]:
        """Return where in the prices by held nodes and period each way begins and ends, for each pool that it is on."""
        found, width = [], self.problem.periods + 1
        for at in range(max(map(len, held), default=0)):
            rows = np.array([mine[at] if at < len(mine) else 0 for mine in held], dtype=np.int64)[ways.option] * width
            found.append((rows + ways.start, rows + ways.end))
        return found

    def proven(self, prices: Floats) -> Priced:
        """Return what prices prove, whatever the rows of lots, and those that link tasks, are priced at."""
        master, held = self.master, self.held(prices)
        rest, prices = self._rest(prices)
        costs = self.costs(prices)
        least = [float(mine.min(initial=np.inf)) for mine in costs]
        rejected = [np.inf if mine.rejected is None else float(rest[mine.rejected]) for mine in master.model.tasks]
        paused = [best_paused(self.problem, task, mine, self.prices_of(at, prices, held), min(least[at], rejected[at]))
                  for at, (task, mine) in enumerate(zip(self.problem.tasks, self.pausable, strict=True))]
        own = [min(three) for three in zip(least, rejected, (cost for cost, _ in paused), strict=True)]
        chosen = [0.0 if one == np.inf else one for one in own]
        rejecting = [np.inf if usd == np.inf else usd - one for usd, one in zip(rejected, own, strict=True)]
        for mine, one in zip(master.model.tasks, own, strict=True):
            if mine.rejected is not None:
                rest[mine.rejected] -= one
        return Priced(self._bound(prices, rest, chosen), prices,
                      [mine - one for mine, one in zip(costs, chosen, strict=True)], rejecting,
                      [several for _, several in paused],
                      [bool(several) and cost == one for (cost, several), one in zip(paused, own, strict=True)],
                      chosen, rest)

    def pausing(self, prices: Floats, best: Sequence[float]) -> list[dict[int, float]]:
        """Return by how much, or less, a way with pauses in each option of each task costs more than its best."""
        held = self.held(prices)
        return [{} if mine is None else {number: float(bound) - least for (number, _), bound in zip(
            mine.options, bounds_of(mine, self.prices_of(at, prices, held))[1], strict=True)}
            for at, (mine, least) in enumerate(zip(self.pausable, best, strict=True))]

    def costs(self, prices: Floats) -> list[Floats]:
        """Return what each way of each task costs at some prices of everything but the task itself."""
        each = np.zeros((len(self.master.held) + 1, self.problem.periods + 1))
        for at, (_, mine) in enumerate(sorted(self.held(prices).items()), 1):
            np.cumsum(mine, out=each[at, 1:])
        return [self._more(at, prices, each.ravel()) for at in range(len(self.ways))]

    def _more(self, at: int, prices: Floats, each: Floats) -> Floats:
        problem, task, mine, model = self.problem, self.problem.tasks[at], self.ways[at], self.master.model
        more = mine.micro_usd.astype(np.float64)
        for first, last in self.places[at]:
            more += each.take(last)
            more -= each.take(first)
        for stock, at_row in enumerate(model.stocks):
            more -= prices[at_row] * used_up(task, mine, stock)
        if model.budget is not None:
            more -= prices[model.budget] * paid_of(task, mine)
        for row, within in zip(model.purses, self.within[at], strict=True):
            more -= prices[row] * within
        for linked, moment in ((model.tasks[at].begun, mine.start), (model.tasks[at].open, mine.end - 1)):
            if linked:
                more += prices[linked[0]:linked[0] + problem.periods].take(moment)
        return more

    def prices_of(self, at: int, prices: Floats, held: dict[tuple[int, int], Floats]) -> Prices:
        """Return what periods cost a task that pauses."""
        mine, periods = self.master.model.tasks[at], self.problem.periods
        begin, end = (np.maximum(0.0, prices[rows[0]:rows[0] + periods]) if rows else np.zeros(periods)
                      for rows in (mine.begun, mine.open))
        budget = self.master.model.budget
        return Prices(held, begin, end, 1.0 - (0.0 if budget is None else min(0.0, prices[budget])))

    def held(self, prices: Floats) -> dict[tuple[int, int], Floats]:
        """Return what nodes of a pool cost in each period."""
        problem, master, found = self.problem, self.master, dict[tuple[int, int], Floats]()
        each = np.zeros((len(problem.pools), problem.periods))
        for pool, rows in master.model.capacity.items():
            each[pool] -= np.minimum(0, prices[rows.start:rows.stop])
        for ceiling, rows in zip(problem.ceilings, master.model.ceilings, strict=True):
            for at, weight in enumerate(problem.in_use(ceiling)):
                each[at] -= weight * np.minimum(0, prices[rows.start:rows.stop])
        stated = master.rounded.prices(master.cuts, prices)
        for pool, nodes in master.held:
            found[pool, nodes] = nodes * each[pool]
            for divisor, by_period in stated.get(pool, {}).items():
                found[pool, nodes] += by_period * master.rounded.weights(pool, divisor, nodes)
        return found

    def _rest(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return what variables that are no ways cost, and the prices with those of lots and of links set to the best:
        what a lot earns by its nodes it pays by their number, and what links tasks costs where they begin and end.
        """
        master, model = self.master, self.master.model
        least, most = master.ends
        prices = np.where(least <= -FREE, np.minimum(0, prices), prices)
        prices = np.where(most >= FREE, np.maximum(0, prices), prices)
        prices[master.choices] = 0.0
        for linked, back, asking in master.links:
            owed = -np.sum([prices[one.start:one.stop] for one in asking], axis=0)
            prices[linked.start:linked.stop] = np.cumsum(owed[::-1])[::-1] if back else np.cumsum(owed)
        prices[master.lot_rows] = 0.0
        rows, variables, factors = master.other_entries
        rest = master.price - np.bincount(variables, prices[rows] * factors, len(master.price))
        for nodes, numbers, (one, to) in model.numbered:
            paid = rest[numbers.start:numbers.stop] + np.arange(len(numbers)) * rest[nodes]
            prices[one], prices[to] = paid.min(), -rest[nodes]
            rest[numbers.start:numbers.stop], rest[nodes] = paid - paid.min(), 0.0
        return rest, prices

    def _bound(self, prices: Floats, rest: Floats, chosen: Sequence[float]) -> int:
        """Return the least that anything costs at some prices, down."""
        master = self.master
        rows, variables, factors = master.other_entries
        size = np.abs(master.price) + np.bincount(variables, np.abs(prices[rows] * factors), len(master.price))
        (least, most), others, upper = master.ends, master.others, master.upper
        parts = [np.minimum(0, rest[others]) * upper, np.array(chosen),
                 np.where(prices > 0, prices * np.where(least <= -FREE, 0, least), prices * np.where(
                     most >= FREE, 0, most))]
        total = sum(float(part.sum()) for part in parts)
        doubt = SAFE * (sum(float(np.abs(part).sum()) for part in parts)
                        + float((1e-6 * size[others] * upper).sum()))
        return int(np.floor(total - doubt))
