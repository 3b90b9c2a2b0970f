"""What any schedule costs at least: the linear relaxation over all ways, with ways added as its prices ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.solver.fleet.linear import Floats, Linear
from planner.solver.fleet.pausing import Prices, best_paused
from planner.solver.fleet.program import FREE, Ints
from planner.solver.fleet.schedule import Placed, Problem, Task
from planner.solver.fleet.scheduling_model import Model
from planner.solver.fleet.scheduling_tasks import PURSE_UNIT, TaskVars
from planner.solver.fleet.ways import Ways, every_way, held_by, paid_of, paid_within, used_up

ROUNDS = 4
"""Of pricing, at most; a bound holds after any of them."""
SAFE = 1e-9
"""Of all that is added up, that rounding may have hidden."""
NARROW = 1e-4
"""Share of the value that is no longer worth a round."""
MOST_ADDED = 40
"""Ways of a task in one round."""
MOST_BLOCKS = 64
"""Of periods that cost alike."""
MOST_TERMS = 3_000_000
"""Periods of all ways to start with."""


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
    rounds: int


class Relaxation:
    """The relaxation of a problem, over ways that are added as they pay."""

    def __init__(self, problem: Problem) -> None:
        """Start with all ways, or where they are many with some evenly between."""
        self.problem = problem
        self.ways = tuple(every_way(problem))
        stride = -(-sum(int((mine.end - mine.start).sum()) for mine in self.ways) // MOST_TERMS)
        first = [np.flatnonzero(np.diff(mine.option, prepend=-1).astype(bool) | (mine.start % stride == 0))
                 for mine in self.ways]
        self.known = [set(mine.tolist()) for mine in first]
        self.paused: list[list[Placed]] = [[] for _ in self.ways]
        self.model = Model(problem, [mine.take(rows) for mine, rows in zip(self.ways, first, strict=True)])
        self.within = [[paid_within(problem, task, mine, purse, PURSE_UNIT) for purse in problem.purses]
                       for task, mine in zip(problem.tasks, self.ways, strict=True)]
        program = self.model.program
        own = np.ones(len(program.lower), dtype=bool)
        for mine in self.model.tasks:
            own[mine.whole.start:mine.whole.stop] = False
        self.others = np.flatnonzero(own)
        """Variables that are no ways."""
        self.entries = program.entries()
        dear = 20 * max((int(mine.micro_usd.max()) for mine in self.ways if len(mine)), default=0) + 10**9
        for mine in self.model.tasks:
            program.put(mine.choice, program.variable(price=dear), 1)
        for task, mine in zip(problem.tasks, self.model.tasks, strict=True):
            self._pause(task, mine)

    def solve(self) -> Relaxed | None:
        """Return the bound, as far as some rounds go; none where no schedule is in reach of the relaxation."""
        best, more, dropping, number = -FREE, list[Floats](), list[float](), 0
        lots: tuple[tuple[float, ...], ...] = ()
        while number < ROUNDS and (found := Linear(self.model.program, self._groups()).solve()) is not None:
            number += 1
            prices = found.prices
            costs = [self._more(at, prices) for at in range(len(self.ways))]
            paused = [best_paused(self.problem, task, self._prices(at, prices), np.inf)
                      for at, (task, mine) in enumerate(zip(self.problem.tasks, self.model.tasks, strict=True))]
            bound, choices, rejecting = self._bound(prices, costs, [least for least, _ in paused])
            if bound > best:
                lots = tuple(tuple(float(found.values[nodes]) for nodes, _ in pool) for pool in self.model.lots)
                best, dropping = bound, rejecting
                more = [mine - choice for mine, choice in zip(costs, choices, strict=True)]
            for mine, (_, several) in zip(self.paused, paused, strict=True):
                mine += [placed for placed in several if placed not in mine]
            if found.value - best <= NARROW * abs(found.value) or not self._add(prices, costs):
                break
        return Relaxed(best, self.ways, tuple(more), tuple(dropping), lots, number) if more else None

    def _groups(self) -> Ints:
        """Return rows of neighboring periods as one: what they then cost is alike, and still a bound."""
        block, model = -(-self.problem.periods // MOST_BLOCKS), self.model
        groups = np.arange(len(model.program.least))
        by_period = [*model.capacity.values(), *model.ceilings,
                     *(list(rows.values()) for mine in model.tasks for rows in (mine.begun, mine.open) if rows)]
        for rows in by_period:
            for period, row in enumerate(rows):
                groups[row] = rows[period // block * block]
        return np.unique(groups, return_inverse=True)[1].astype(np.int64)

    def _pause(self, task: Task, mine: TaskVars) -> None:
        """State that a task may run in any periods: no dearer than any way with pauses."""
        problem, program = self.problem, self.model.program
        periods, options = problem.pausing(task)
        for _, option in options:
            chosen, runs = program.variable(price=option.micro_usd), program.variables(len(periods))
            program.put(mine.choice, chosen, 1)
            program.row([*((one, 1) for one in runs), (chosen, -problem.length(option))], least=0)
            for period, one in zip(periods, runs, strict=True):
                for pool, nodes in option.held:
                    if pool in self.model.capacity:
                        program.put(self.model.capacity[pool][period], one, nodes)

    def _more(self, at: int, prices: Floats) -> Floats:
        """Return what each way of a task costs at some prices of everything but the task itself."""
        problem, task, mine, model = self.problem, self.problem.tasks[at], self.ways[at], self.model
        each = self._nodes(prices)
        more = mine.micro_usd.astype(np.float64)
        for pools, nodes in held_by(task, mine):
            more = more + nodes * (each[pools, mine.end] - each[pools, mine.start])
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

    def _prices(self, at: int, prices: Floats) -> Prices:
        """Return what periods cost a task that pauses."""
        mine, periods = self.model.tasks[at], range(self.problem.periods)
        begin, end = (np.array([max(0.0, prices[rows[period]]) if rows else 0.0 for period in periods])
                      for rows in (mine.begun, mine.open))
        money = 1.0 - (0.0 if self.model.budget is None else min(0.0, prices[self.model.budget]))
        return Prices(np.diff(self._nodes(prices), axis=1), begin, end, money)

    def _nodes(self, prices: Floats) -> Floats:
        """Return what a node of each pool costs from the first period to each."""
        problem, model = self.problem, self.model
        each = np.zeros((len(problem.pools), problem.periods + 1))
        for pool, rows in model.capacity.items():
            each[pool, 1:] -= np.minimum(0, prices[rows.start:rows.stop])
        for ceiling, rows in zip(problem.ceilings, model.ceilings, strict=True):
            for at, weight in enumerate(problem.in_use(ceiling)):
                if weight:
                    each[at, 1:] -= weight * np.minimum(0, prices[rows.start:rows.stop])
        return np.cumsum(each, axis=1)

    def _bound(self, prices: Floats, more: Sequence[Floats], paused: Sequence[float]
               ) -> tuple[int, list[float], list[float]]:
        """Return the least that anything costs at some prices, down, what of it each task takes, and what rejecting it
        costs more.
        """
        program, tasks = self.model.program, self.model.tasks
        least, most = np.array(program.least, dtype=np.float64), np.array(program.most, dtype=np.float64)
        prices = np.where(least <= -FREE, np.minimum(0, prices), prices)
        prices = np.where(most >= FREE, np.maximum(0, prices), prices)
        rows, variables, factors = self.entries
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
        upper = np.array(program.upper, dtype=np.float64)[self.others]
        parts = [np.minimum(0, rest[self.others]) * upper, np.array(chosen),
                 np.where(prices > 0, prices * np.where(least <= -FREE, 0, least), prices * np.where(
                     most >= FREE, 0, most))]
        total = sum(float(part.sum()) for part in parts)
        doubt = SAFE * (sum(float(np.abs(part).sum()) for part in parts)
                        + float((1e-6 * size[self.others] * upper).sum()))
        return int(np.floor(total - doubt)), chosen, rejecting

    def _add(self, prices: Floats, more: Sequence[Floats]) -> bool:
        """Add the ways that pay at some prices; say whether there were any."""
        added: list[tuple[int, Ways]] = []
        for at, (costs, mine) in enumerate(zip(more, self.ways, strict=True)):
            gain = costs - prices[self.model.tasks[at].choice]
            pays = np.flatnonzero(gain < -1e3)
            pays = pays[np.argsort(gain[pays], kind="stable")][:4 * MOST_ADDED]
            new = [int(one) for one in pays if int(one) not in self.known[at]][:MOST_ADDED]
            if new:
                self.known[at].update(new)
                added.append((at, mine.take(np.array(new, dtype=np.intp))))
        program = self.model.program
        self.model.add(added, [program.variables(len(mine), price=mine.micro_usd) for _, mine in added])
        return bool(added)
