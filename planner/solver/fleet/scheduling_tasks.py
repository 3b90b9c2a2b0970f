"""Tasks in the linear program: one variable for each way, and for what may pause a choice by period."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.solver.check_schedule import spent_on
from planner.solver.fleet.program import Ints, MixedProgram
from planner.solver.fleet.schedule import CENT, Option, Placed, Problem, Task, late_cost, lateness
from planner.solver.fleet.ways import TaskWays, every_way, held_by, late_of, paid_of, paid_within, used_up

PURSE_UNIT = CENT // 100
"""Micro-USD in which money of a quarter is counted."""


@dataclass(slots=True)
class TaskVars:
    """Decisions about one task."""

    ways: TaskWays
    whole: range
    """Variables of the ways."""
    choice: int = 0
    """Row: one way, with pauses, or rejected."""
    rejected: int | None = None
    by_pauses: dict[int, int] = field(default_factory=dict)
    """By option: done by it with pauses."""
    paused: dict[int, dict[int, int]] = field(default_factory=dict)
    """By option: in which periods it runs, where it pauses."""
    resumes: dict[int, int] = field(default_factory=dict)
    """By option: how often it is resumed."""
    resumed: dict[int, dict[int, int]] = field(default_factory=dict)
    """By option: with which periods a run begins."""
    cents: dict[int, int] = field(default_factory=dict)
    """By option: price of being late, where it pauses."""
    patterns: list[tuple[Placed, int]] = field(default_factory=list)
    """Ways with pauses that are looked at, and their variables, where not all are."""
    begun: dict[int, int] = field(default_factory=dict)
    """Rows: it has begun by a period."""
    open: dict[int, int] = field(default_factory=dict)
    """Rows: it has not ended with a period."""


class TaskModel:
    """What tasks decide, use and cost."""

    def __init__(self, problem: Problem, ways: Sequence[TaskWays] | None = None,
                 paused: Sequence[Sequence[Placed]] = (), pausing: Sequence[Collection[int]] | None = None) -> None:
        """State all tasks of a problem, in all ways or in those given, and with pauses in all options or in some."""
        self.problem, self.program = problem, MixedProgram()
        self.links: dict[tuple[int, str], range] = {}
        """Variables that say by period whether a task has begun, or is not done."""
        self.orders: list[tuple[int, int, range]] = []
        """A task, one that it waits for, and the rows that say so."""
        periods = problem.periods
        self.capacity = {at: self.program.rows(periods, most=pool.capacity[0] if pool.capacity else 0)
                         for at, pool in enumerate(problem.pools) if not pool.is_endless}
        for at, rows in self.capacity.items():
            for row, nodes in zip(rows, problem.pools[at].capacity or (), strict=False):
                self.program.most[row] = nodes
        self.ceilings = [self.program.rows(periods, most=one.most) for one in problem.ceilings]
        self.budget = None if problem.budget is None else self.program.row((), most=problem.budget)
        self.purses = [self.program.row((), most=one.micro_usd // PURSE_UNIT) for one in problem.purses]
        self.stocks = [self.program.row((), most=most) for most in problem.stocks]
        every: Sequence[Collection[int]] = [range(len(task.options)) if ways is None else () for task in problem.tasks]
        self.tasks = [self._task(task, mine, some) for task, mine, some in zip(
            problem.tasks, every_way(problem) if ways is None else ways, pausing or every, strict=True)]
        for at, task in enumerate(problem.tasks):
            for other in task.after:
                self._order(at, other)
        self.add([(at, mine.ways) for at, mine in enumerate(self.tasks)], [mine.whole for mine in self.tasks])
        for at, several in enumerate(paused):
            for placed in several:
                self.add_paused(at, placed)

    def _task(self, task: Task, ways: TaskWays, pausing: Collection[int]) -> TaskVars:
        program = self.program
        mine = TaskVars(ways, program.variables(len(ways), price=ways.micro_usd))
        mine.choice = program.row((), 1, 1)
        if task.worth is not None:
            mine.rejected = program.variable(price=task.worth)
            program.put(mine.choice, mine.rejected, 1)
        if task.may_pause and pausing:
            self._pauses(task, mine, pausing)
        return mine

    def add(self, ways: Sequence[tuple[int, TaskWays]], variables: Sequence[range]) -> None:
        """Add variables of ways of tasks to all rows that they count in."""
        for (at, mine), numbers in zip(ways, variables, strict=True):
            task, columns = self.problem.tasks[at], np.arange(numbers.start, numbers.stop, dtype=np.int64)
            one, stated = np.ones(len(mine), dtype=np.int64), self.tasks[at]
            self.program.put_all(one * stated.choice, columns, one)
            length, first = mine.end - mine.start, np.full(len(self.problem.pools), -1, dtype=np.int64)
            for pool, rows in self.capacity.items():
                first[pool] = rows.start
            for pools, nodes in held_by(task, mine):
                self._over(first[pools], mine.start, length, columns, nodes)
                for ceiling, rows in zip(self.problem.ceilings, self.ceilings, strict=True):
                    weights = np.array(self.problem.in_use(ceiling), dtype=np.int64)
                    self._over(np.where(weights[pools] > 0, rows.start, -1), mine.start, length, columns,
                               nodes * weights[pools])
            for stock, row in enumerate(self.stocks):
                self.program.put_all(one * row, columns, used_up(task, mine, stock))
            if self.budget is not None:
                self.program.put_all(one * self.budget, columns, paid_of(task, mine))
            for purse, row in zip(self.problem.purses, self.purses, strict=True):
                self.program.put_all(one * row, columns, paid_within(self.problem, task, mine, purse, PURSE_UNIT))
            for linked, moment in ((stated.begun, mine.start), (stated.open, mine.end - 1)):
                if linked:
                    rows_of = np.full(self.problem.periods, -1, dtype=np.int64)
                    rows_of[list(linked)] = list(linked.values())
                    put = rows_of[moment]
                    self.program.put_all(put[put >= 0], columns[put >= 0], -one[put >= 0])

    def add_paused(self, at: int, placed: Placed) -> None:
        """Add one way to do a task with pauses."""
        task, mine, program = self.problem.tasks[at], self.tasks[at], self.program
        option, paid = task.options[placed.option], placed.cost(task)
        one = program.variable(price=paid + late_cost(task, lateness(self.problem, task, placed)))
        mine.patterns.append((placed, one))
        program.put(mine.choice, one, 1)
        for start, end in placed.runs:
            for period in range(start, end):
                self._on_nodes(option, period, one)
        for stock, row in enumerate(self.stocks):
            program.put(row, one, option.uses[stock] if option.uses else 0)
        if self.budget is not None:
            program.put(self.budget, one, paid)
        for purse, row in zip(self.problem.purses, self.purses, strict=True):
            parts = (math.ceil(usd * max(0, min(end, purse.end) - max(start, purse.start)) / (end - start) / PURSE_UNIT)
                     for usd, start, end in spent_on(self.problem, task, placed))
            program.put(row, one, sum(parts))
        if mine.begun:
            program.put(mine.begun[placed.runs[0][0]], one, -1)
        if mine.open:
            program.put(mine.open[placed.runs[-1][1] - 1], one, -1)

    def _over(self, first: Ints, start: Ints, length: Ints, columns: Ints, factors: Ints) -> None:
        """Add each variable to its rows of all periods in which it runs; a first row of -1 is none."""
        kept = first >= 0
        first, start, length, columns, factors = (one[kept] for one in (first, start, length, columns, factors))
        steps = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        self.program.put_all(np.repeat(first + start, length) + steps, np.repeat(columns, length),
                             np.repeat(factors, length))

    def _pauses(self, task: Task, mine: TaskVars, pausing: Collection[int]) -> None:
        """State a task that may pause, period by period, in some of its options."""
        problem, program, size = self.problem, self.program, self.problem.period_seconds
        periods, options = problem.pausing(task)
        late = late_of(task, (np.arange(periods.start, periods.stop, dtype=np.int64) + 1) * size)
        for at, option in ((at, option) for at, option in options if at in pausing):
            chosen = program.variable(price=option.micro_usd)
            resumes = program.variable(len(periods), option.resume_micro_usd)
            active = dict(zip(periods, program.variables(len(periods)), strict=True))
            begun = dict(zip(periods, program.variables(len(periods)), strict=True))
            cents = program.variable(int(late[-1]) // CENT, CENT) if late[-1] else None
            for period, runs in active.items():
                self._in_period(option, period, runs)
                before = [(active[period - 1], 1)] if period - 1 in active else []
                program.row([(runs, 1), (chosen, -1)], most=0)
                program.row([(begun[period], 1), (runs, -1), *before], least=0)
                if cents is not None:
                    program.row([(cents, 1), (runs, -int(late[period - periods.start]) // CENT)], least=0)
            program.row([(resumes, 1), (chosen, 1), *((one, -1) for one in begun.values())], least=0)
            program.row([*((one, size) for one in active.values()), (resumes, -option.resume_seconds),
                         (chosen, -option.seconds)], least=0)
            program.put(mine.choice, chosen, 1)
            for stock, row in enumerate(self.stocks):
                program.put(row, chosen, option.uses[stock] if option.uses else 0)
            if self.budget is not None:
                program.put(self.budget, chosen, option.micro_usd)
                program.put(self.budget, resumes, option.resume_micro_usd)
            mine.by_pauses[at], mine.paused[at], mine.resumes[at], mine.resumed[at] = chosen, active, resumes, begun
            if cents is not None:
                mine.cents[at] = cents

    def _on_nodes(self, option: Option, period: int, runs: int) -> None:
        """State that an option is on its nodes in a period where a variable is 1."""
        for pool, nodes in option.held:
            if pool in self.capacity:
                self.program.put(self.capacity[pool][period], runs, nodes)
            for ceiling, rows in zip(self.problem.ceilings, self.ceilings, strict=True):
                self.program.put(rows[period], runs, nodes * self.problem.in_use(ceiling)[pool])

    def _in_period(self, option: Option, period: int, runs: int) -> None:
        """State what a task with pauses takes in a period in which it runs."""
        problem, program, size = self.problem, self.program, self.problem.period_seconds
        self._on_nodes(option, period, runs)
        rate = -(-option.micro_usd * size // option.seconds) + option.resume_micro_usd
        for purse, row in zip(problem.purses, self.purses, strict=True):
            inside = min((period + 1) * size, purse.end) - max(period * size, purse.start)
            if inside > 0 and rate:
                program.put(row, runs, -(-rate * inside // (size * PURSE_UNIT)))

    def _order(self, at: int, other: int) -> None:
        """State that a task begins after another has ended; what waits for something rejected is rejected."""
        begun, opened = self._begun(at), self._open(other)
        rows = self.program.rows(self.problem.periods, most=1)
        for row, *both in zip(rows, begun, opened, strict=True):
            for one in both:
                self.program.put(row, one, 1)
        self.orders.append((at, other, rows))

    def _begun(self, at: int) -> range:
        """Return variables that say whether a task has begun by a period."""
        mine, program, periods = self.tasks[at], self.program, range(self.problem.periods)
        if mine.begun:
            return self.links[at, "begun"]
        by = program.variables(len(periods))
        mine.begun = {period: program.row([(by[period], 1), *([(by[period - 1], -1)] if period else [])], least=0)
                      for period in periods}
        for active in mine.paused.values():
            for period, runs in active.items():
                program.row([(by[period], 1), (runs, -1)], least=0)
        self.links[at, "begun"] = by
        return by

    def _open(self, at: int) -> range:
        """Return variables that say whether a task has not ended with a period."""
        mine, program, periods = self.tasks[at], self.program, range(self.problem.periods)
        if mine.open:
            return self.links[at, "open"]
        still = program.variables(len(periods))
        mine.open = {period: program.row([(still[period], 1), *(
            [(still[period + 1], -1)] if period + 1 in periods else [])], least=0) for period in periods}
        if mine.rejected is not None:
            program.put(mine.open[periods[-1]], mine.rejected, -1)
        for active in mine.paused.values():
            for period, runs in active.items():
                program.row([(still[period], 1), (runs, -1)], least=0)
        self.links[at, "open"] = still
        return still
