"""The same problem by when each task starts, for tasks that wait for each other: CP-SAT's intervals, not ways.

What CP-SAT does not prove at once goes on from the best of many lists.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ortools.sat.python import cp_model

from planner.solver.engine import Model, run
from planner.solver.fleet.evolving import Evolution
from planner.solver.fleet.reading import better, value_of
from planner.solver.fleet.schedule import CENT, DAY_SECONDS, Lot, Option, Placed, Problem, Schedule, Task
from planner.solver.settings import Settings

BRIEF, EVOLVED = 0.1, 0.5
"""Shares of the time: in which CP-SAT proves what is easy, and for lists; the rest is for CP-SAT from the best of them.
"""
PLACED_A_UNIT = 300_000
"""Tasks that lists place, moved late and early again, in a unit of CP-SAT's deterministic time, about."""
Taken: TypeAlias = tuple[cp_model.IntervalVar, cp_model.LinearExprT]
"""When something is taken, and how much."""


def waits(problem: Problem) -> bool:
    """Say whether tasks wait for each other, nothing but their dates costs, and nothing asks for a choice by period."""
    by_period = bool(problem.services or problem.purses) or any(task.may_pause for task in problem.tasks)
    costs = any(pool.lots for pool in problem.pools) or any(
        option.micro_usd for task in problem.tasks for option in task.options)
    return any(task.after for task in problem.tasks) and not by_period and not costs


@dataclass(frozen=True, slots=True)
class _Choice:
    """One option of a task: whether it is taken, and when it runs, in periods."""

    taken: cp_model.IntVar
    runs: cp_model.IntervalVar


@dataclass(frozen=True, slots=True)
class _Decided:
    """One task: when it starts and ends, in periods, its options by number, and whether it is rejected."""

    start: cp_model.IntVar
    end: cp_model.IntVar
    choices: dict[int, _Choice]
    rejected: cp_model.IntVar | None


class ByStart:
    """Variables and constraints, in the order of the question."""

    def __init__(self, problem: Problem) -> None:
        """State the whole problem."""
        self.problem, self.model = problem, Model()
        self.price: list[tuple[cp_model.IntVar, int]] = []
        """Variables, and micro-USD of each."""
        self.paid: list[tuple[cp_model.IntVar, int]] = []
        """Those of them that a budget counts."""
        self.tasks = [self._task(task) for task in problem.tasks]
        for task, mine in zip(problem.tasks, self.tasks, strict=True):
            for other in task.after:
                self._order(mine, self.tasks[other])
        self.lots = [[self._lot(lot) for lot in pool.lots] for pool in problem.pools]
        for at, pool in enumerate(problem.pools):
            if not pool.is_endless:
                self._pool(at)
        for number in range(len(problem.ceilings)):
            self._ceiling(number)
        for stock, most in enumerate(problem.stocks):
            self._within([(choice.taken, option.uses[stock]) for _, option, choice in self._options()
                          if option.uses and option.uses[stock]], most)
        if problem.budget is not None:
            self._within(self.paid, problem.budget)

    def _task(self, task: Task) -> _Decided:
        """State a task: one of its options, or rejected."""
        model, problem, size = self.model, self.problem, self.problem.period_seconds
        first = problem.earliest(task)
        until = min(problem.horizon, problem.horizon if task.deadline is None else task.deadline)
        start = model.new_int_var(first, max(first, problem.periods), "")
        end = model.new_int_var(first, max(first, problem.periods), "")
        choices = dict[int, _Choice]()
        for at, option in enumerate(task.options):
            last = (until - option.seconds) // size
            if last < first:
                continue
            taken = model.new_bool_var("")
            choices[at] = _Choice(taken, model.new_optional_interval_var(
                start, problem.length(option), end, taken, ""))
            model.add(start <= last).only_enforce_if(taken)
            self.price.append((taken, option.micro_usd))
            self.paid.append((taken, option.micro_usd))
        rejected = None if task.worth is None else model.new_bool_var("")
        if rejected is not None and task.worth is not None:
            self.price.append((rejected, task.worth))
        model.add_exactly_one([*(one.taken for one in choices.values()), *([] if rejected is None else [rejected])])
        if task.due is not None and task.late_cents_per_day and choices:
            self._late(task, start, choices)
        return _Decided(start, end, choices, rejected)

    def _late(self, task: Task, start: cp_model.IntVar, choices: dict[int, _Choice]) -> None:
        """State the price of being late, up to whole cents."""
        assert task.due is not None
        size, rate = self.problem.period_seconds, task.late_cents_per_day
        most = -(-max(0, self.problem.horizon - task.due) * rate // DAY_SECONDS)
        cents = self.model.new_int_var(0, most, "")
        for at, choice in choices.items():
            over = start * (size * rate) + (task.options[at].seconds - task.due) * rate
            self.model.add(cents * DAY_SECONDS >= over).only_enforce_if(choice.taken)
        self.price.append((cents, CENT))

    def _order(self, mine: _Decided, other: _Decided) -> None:
        """State that a task begins after another has ended; what waits for something rejected is rejected."""
        if other.rejected is None:
            order = self.model.add(mine.start >= other.end)
            if mine.rejected is not None:
                order.only_enforce_if(~mine.rejected)
            return
        self.model.add(mine.start >= other.end).only_enforce_if(~other.rejected)
        if mine.rejected is None:
            self.model.add(other.rejected == 0)
        else:
            self.model.add_implication(other.rejected, mine.rejected)

    def _lot(self, lot: Lot) -> cp_model.IntVar:
        """Return how many nodes of a lot there are."""
        nodes = self.model.new_int_var(0, lot.most, "")
        if len(lot.micro_usd) == 1:
            priced = [(nodes, lot.micro_usd[0])]
        else:
            by_number = [self.model.new_bool_var("") for _ in range(lot.most + 1)]
            self.model.add_exactly_one(by_number)
            self.model.add(nodes == sum(count * one for count, one in enumerate(by_number)))
            priced = list(zip(by_number, lot.micro_usd, strict=False))
        self.price += priced
        self.paid += priced
        return nodes

    def _pool(self, at: int) -> None:
        """State that no more nodes of a pool are in use than there are; what is not there is in use by nobody."""
        pool, lots = self.problem.pools[at], self.lots[at]
        have = pool.capacity or (0,) * self.problem.periods
        most = max(have) + sum(lot.most for lot in pool.lots)
        taken = [(choice.runs, nodes) for _, option, choice in self._options()
                 for on, nodes in option.held if on == at and nodes]
        missing: list[Taken] = [(self._from(period, period + 1), max(have) - count)
                   for period, count in enumerate(have) if count < max(have)]
        for lot, nodes in zip(pool.lots, lots, strict=True):
            begin, end = lot.start, min(lot.end, self.problem.periods)
            missing += [(self._from(one, other), lot.most) for one, other in ((0, begin), (end, self.problem.periods))
                        if one < other]
            if begin < end:
                missing.append((self._from(begin, end), lot.most - nodes))
        both: list[Taken] = [*taken, *missing]
        self.model.add_cumulative([runs for runs, _ in both], [nodes for _, nodes in both], most)

    def _ceiling(self, number: int) -> None:
        """State what all pools together take at most in any period."""
        ceiling = self.problem.ceilings[number]
        weights = self.problem.in_use(ceiling)
        both: list[Taken] = []
        for _, option, choice in self._options():
            if total := sum(weights[pool] * nodes for pool, nodes in option.held):
                both.append((choice.runs, total))
        for pool, lots, weight in zip(self.problem.pools, self.lots, ceiling.weights, strict=True):
            both += [(self._from(lot.start, min(lot.end, self.problem.periods)), nodes * weight)
                     for lot, nodes in zip(pool.lots, lots, strict=True)
                     if ceiling.held and weight and lot.start < self.problem.periods]
        self.model.add_cumulative([runs for runs, _ in both], [much for _, much in both], ceiling.most)

    def _from(self, start: int, end: int) -> cp_model.IntervalVar:
        return self.model.new_fixed_size_interval_var(start, end - start, "")

    def _within(self, terms: list[tuple[cp_model.IntVar, int]], most: int) -> None:
        self.model.add(sum(factor * one for one, factor in terms) <= most)

    def _options(self) -> list[tuple[Task, Option, _Choice]]:
        """Return every option that may be taken, with its task."""
        return [(task, task.options[at], choice) for task, mine in zip(self.problem.tasks, self.tasks, strict=True)
                for at, choice in mine.choices.items()]

    def solve(self, settings: Settings) -> Schedule:
        """Return the cheapest schedule, as far as the time goes where there is a limit of it."""
        limit, stop = settings.deterministic_limit, None if settings.seconds is None else (
            time.monotonic() + settings.seconds)
        if limit is None:
            return self._solved(settings)
        found = self._solved(_part(settings, BRIEF, stop))
        if found.status in ("optimal", "infeasible") or found.interrupted:
            return found
        known = self._evolved(found, limit * EVOLVED, settings, stop)
        if known is None or known.interrupted or known.status == "optimal":
            return known or found
        return better(known, self._solved(_part(settings, 1 - BRIEF - EVOLVED, stop), known.tasks))

    def _evolved(self, found: Schedule, limit: float, settings: Settings, stop: float | None) -> Schedule | None:
        """Return the best of many lists, or what was found before where that costs no more."""
        until = None if stop is None else time.monotonic() + (stop - time.monotonic()) * EVOLVED / (1 - BRIEF)
        evolution, interrupted = Evolution(self.problem, settings.seed), False
        try:
            count = round(limit * PLACED_A_UNIT / len(self.problem.tasks))
            evolution.run(count, found.bound or 0, until, settings.heard)
        except KeyboardInterrupt:
            interrupted = True
        made = Schedule("feasible", evolution.placed, (), tuple((0,) * len(pool.lots) for pool in self.problem.pools),
                        bound=found.bound)
        best = better(found, replace(made, value=value_of(self.problem, made))) if evolution.placed else found
        return replace(best, interrupted=interrupted)

    def _solved(self, settings: Settings, known: Sequence[Placed | None] = ()) -> Schedule:
        """Return what CP-SAT finds from where tasks are known to have a place, where they are."""
        problem, model = self.problem, self.model
        for mine, one in zip(self.tasks, known, strict=False):
            if one is not None:
                model.add_hint(mine.start, one.runs[0][0])
                model.add_hint(mine.end, one.runs[0][1])
                for at, choice in mine.choices.items():
                    model.add_hint(choice.taken, int(at == one.option))
        cost = cp_model.LinearExpr.weighted_sum([one for one, _ in self.price], [usd for _, usd in self.price])
        ending = run(model, cost, settings)
        bound = None if ending.bound is None else -(-ending.bound // self.unit) * self.unit
        if ending.value is None:
            return Schedule(ending.status, bound=bound, interrupted=ending.interrupted)
        placed: list[Placed | None] = []
        for mine in self.tasks:
            taken = next((at for at, one in mine.choices.items() if ending.read(one.taken)), None)
            placed.append(None if taken is None else Placed(
                taken, ((ending.read(mine.start), ending.read(mine.end)),)))
        found = Schedule(ending.status, tuple(placed), (),
                         tuple(tuple(ending.read(nodes) for nodes in lots) for lots in self.lots),
                         bound=bound, interrupted=ending.interrupted)
        return replace(found, value=value_of(problem, found))

    @property
    def unit(self) -> int:
        """What every schedule costs a multiple of."""
        return max(1, math.gcd(*(usd for _, usd in self.price)))


def _part(settings: Settings, share: float, stop: float | None) -> Settings:
    """Return settings with a share of the time, or what is left of it."""
    left = None if stop is None else max(0.1, stop - time.monotonic())
    return replace(settings, deterministic_limit=(settings.deterministic_limit or 0.0) * share, seconds=left)
