"""The same problem by when each task starts, for tasks that wait for each other: CP-SAT's intervals, not ways."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ortools.sat.python import cp_model

from planner.solver.engine import CpModel, run
from planner.solver.fleet.reading import value_of
from planner.solver.fleet.schedule import CENT, DAY_SECONDS, Lot, Option, Placed, Problem, Schedule, Task
from planner.solver.settings import Settings

Taken: TypeAlias = tuple[cp_model.IntervalVar, cp_model.LinearExprT]
"""When something is taken, and how much."""


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

    def __init__(self, problem: Problem, *, by_period: bool = True) -> None:
        """State the whole problem; not by period: what is done must fit into all periods together alone."""
        self.problem, self.model = problem, CpModel()
        self.spent = 0.0
        """CP-SAT's deterministic time of all solves."""
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
            if by_period and not pool.is_endless:
                self._pool(at)
        for number in range(len(problem.ceilings) if by_period else 0):
            self._ceiling(number)
        self._work()
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
        model.add(end == start + sum(problem.length(task.options[at]) * one.taken for at, one in choices.items()))
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

    def _work(self) -> None:
        """State that what is done fits into all periods together, and before a task starts what that waits for: of
        intervals alone CP-SAT finds weak bounds.
        """
        last = [at for at, task in enumerate(self.problem.tasks) if task.due is not None or task.deadline is not None]
        behind = [(at, _waited_for(self.problem.tasks, at)) for at in last]
        for most, whole, weights in self._rows():
            done = list[list[cp_model.LinearExprT]]()
            for task, mine in zip(self.problem.tasks, self.tasks, strict=True):
                terms = list[cp_model.LinearExprT]()
                for at, choice in mine.choices.items():
                    option = task.options[at]
                    if much := sum(weights[pool] * nodes for pool, nodes in option.held):
                        terms.append(choice.taken * (much * self.problem.length(option)))
                    if much > most:
                        self.model.add(choice.taken == 0)
                done.append(terms)
            self.model.add(sum(term for terms in done for term in terms) <= whole)
            for at, before in behind:
                self.model.add(sum(term for other in before for term in done[other]) <= self.tasks[at].start * most)

    def _rows(self) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yield of every pool and ceiling what there is at most in a period and in all, and what a node takes of it."""
        problem = self.problem
        for at, pool in enumerate(problem.pools):
            if not pool.is_endless:
                have = pool.capacity or (0,) * problem.periods
                lots = sum(lot.most for lot in pool.lots)
                yield max(have) + lots, sum(have) + lots * problem.periods, tuple(
                    int(other == at) for other in range(len(problem.pools)))
        for ceiling in problem.ceilings:
            yield ceiling.most, ceiling.most * problem.periods, problem.in_use(ceiling)

    def _from(self, start: int, end: int) -> cp_model.IntervalVar:
        return self.model.new_fixed_size_interval_var(start, end - start, "")

    def _within(self, terms: list[tuple[cp_model.IntVar, int]], most: int) -> None:
        self.model.add(sum(factor * one for one, factor in terms) <= most)

    def _options(self) -> list[tuple[Task, Option, _Choice]]:
        """Return every option that may be taken, with its task."""
        return [(task, task.options[at], choice) for task, mine in zip(self.problem.tasks, self.tasks, strict=True)
                for at, choice in mine.choices.items()]

    @property
    def cost(self) -> cp_model.LinearExpr:
        """What is minimized, in micro-USD."""
        return cp_model.LinearExpr.weighted_sum([one for one, _ in self.price], [usd for _, usd in self.price])

    def solved(self, settings: Settings, known: Sequence[Placed | None] = ()) -> Schedule:
        """Return what CP-SAT finds from where tasks are known to have a place, where they are."""
        problem, model = self.problem, self.model
        for mine, one in zip(self.tasks, known, strict=False):
            if one is not None:
                model.add_hint(mine.start, one.runs[0][0])
                model.add_hint(mine.end, one.runs[0][1])
                for at, choice in mine.choices.items():
                    model.add_hint(choice.taken, int(at == one.option))
        ending = run(model, self.cost, settings)
        self.spent += ending.deterministic_time
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


def _waited_for(tasks: Sequence[Task], at: int) -> set[int]:
    """Return all tasks that must have ended before one starts."""
    found, open_ = set[int](), [*tasks[at].after]
    while open_:
        if (other := open_.pop()) not in found:
            found.add(other)
            open_ += tasks[other].after
    return found
