"""The CP-SAT model of many jobs on one fleet: intervals for tasks, counts for services and lots.

A task has one start, and one interval for each of its options; one that may pause also has a period-by-period choice on
nodes that are there anyway. A pool's nodes are a cumulative: what lots do not give is taken up by intervals in which
they are absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from ortools.sat.python import cp_model

from planner.solver.fleet.schedule import CENT, DAY_SECONDS, HOUR_SECONDS, Option, Problem, Task

Expr: TypeAlias = cp_model.LinearExprT
MOST_NODES = 10**7
"""That any service is on; no fleet comes near."""


@dataclass(slots=True)
class TaskVars:
    """Decisions about one task."""

    start: cp_model.IntVar
    rejected: Expr
    whole: list[cp_model.IntVar]
    """By option: done by it without a pause."""
    paused: dict[int, dict[int, cp_model.IntVar]] = field(default_factory=dict)
    """By option: in which periods it runs, where it may pause."""
    by_pauses: dict[int, cp_model.IntVar] = field(default_factory=dict)
    """By option: done by it with pauses."""
    resumes: Expr = 0
    ends: Expr = 0
    """First period after the last, where it pauses."""
    end: Expr = 0
    """Second at which it ends."""
    late: Expr = 0
    """Cents."""


@dataclass(frozen=True, slots=True)
class Use:
    """So many nodes of a pool in an interval of periods."""

    pool: int
    interval: cp_model.IntervalVar
    nodes: Expr
    periods: Expr
    """Node-periods in all."""


class Model:
    """Variables and constraints, in the order of the question."""

    def __init__(self, problem: Problem) -> None:
        """State the whole problem."""
        self.problem = problem
        self.model = cp_model.CpModel()
        self.uses: list[Use] = []
        self.busy: list[tuple[int, int, int, Expr]] = []
        """Pool, first period and first after, and nodes that a service is on."""
        self.paid: list[Expr] = []
        self.spent: list[tuple[Expr, Expr, Expr]] = []
        self.tasks = [self._task(task) for task in problem.tasks]
        self._orders()
        self._alike()
        self.counts = [[[[self.model.new_int_var(0, self._most(at, block, need), "")
                          for block in range(len(service.blocks))] for need, _ in load.needs]
                        for load in service.loads] for at, service in enumerate(problem.services)]
        self._services()
        self.lots = [[self.model.new_int_var(0, lot.most, "") for lot in pool.lots] for pool in problem.pools]
        self._lots()
        self._pools()
        self._ceilings()
        self._money()

    def _task(self, task: Task) -> TaskVars:
        model, problem = self.model, self.problem
        first = problem.earliest(task)
        last = problem.periods - 1
        start = model.new_int_var(min(first, last), last, "start")
        rejected: Expr = model.new_bool_var("rejected") if task.worth is not None else 0
        whole = [model.new_bool_var("option") for _ in task.options]
        mine = TaskVars(start, rejected, whole)
        for at, option in enumerate(task.options):
            if task.may_pause and not problem.pools[option.pool].is_endless:
                mine.by_pauses[at] = model.new_bool_var("pauses")
        model.add(sum(whole) + sum(mine.by_pauses.values()) + rejected == 1)
        if first > last:
            model.add(sum(whole) + sum(mine.by_pauses.values()) == 0)
        if task.worth is not None:
            model.add(start == min(first, last)).only_enforce_if(rejected)  # type: ignore[arg-type]
        size, until = problem.period_seconds, problem.horizon if task.deadline is None else task.deadline
        for at, option in enumerate(task.options):
            length = problem.length(option)
            latest = (min(problem.horizon, until) - option.seconds) // size
            if latest < first:
                model.add(whole[at] == 0)
                continue
            model.add(start <= latest).only_enforce_if(whole[at])
            interval = model.new_optional_fixed_size_interval_var(start, length, whole[at], "run")
            self.uses.append(Use(option.pool, interval, option.nodes, length * option.nodes * whole[at]))
            self._spend(mine, at, option, start)
        self._pauses(task, mine, until)
        done = sum(option.seconds * one for option, one in zip(task.options, whole, strict=True))
        mine.end = start * size + done
        if mine.by_pauses:
            end = model.new_int_var(0, problem.horizon, "end")
            paused = sum(mine.by_pauses.values())
            model.add(end == start * size + done).only_enforce_if(~self._flag(paused))
            model.add(end == mine.ends * size).only_enforce_if(self._flag(paused))
            mine.end = end
        if task.due is not None:
            price = task.late_cents_per_day
            late = model.new_int_var(0, -(-problem.horizon * price // DAY_SECONDS), "late")
            limit = model.add(late * DAY_SECONDS >= (mine.end - task.due) * price)
            if task.worth is not None:
                limit.only_enforce_if(~rejected)  # type: ignore[operator]
            mine.late = late
        return mine

    def _flag(self, expression: Expr) -> cp_model.IntVar:
        """Return a literal that is an expression of value 0 or 1."""
        flag = self.model.new_bool_var("")
        self.model.add(expression == flag)
        return flag

    def _pauses(self, task: Task, mine: TaskVars, until: int) -> None:
        """State a task that may pause, period by period."""
        if not mine.by_pauses:
            return
        model, problem, size = self.model, self.problem, self.problem.period_seconds
        first, last = problem.earliest(task), min(problem.horizon, until) // size
        for at, chosen in mine.by_pauses.items():
            option, active = task.options[at], {}
            for period in range(first, last):
                runs = model.new_bool_var("")
                model.add_implication(runs, chosen)
                interval = model.new_optional_fixed_size_interval_var(period, 1, runs, "")
                self.uses.append(Use(option.pool, interval, option.nodes, option.nodes * runs))
                active[period] = runs
            mine.paused[at] = active
        begun = [model.new_bool_var("") for _ in range(first, last)]
        ends = model.new_int_var(0, problem.periods, "ends")
        any_ = {period: sum(active[period] for active in mine.paused.values()) for period in range(first, last)}
        for period, runs in any_.items():
            model.add(begun[period - first] >= runs - any_.get(period - 1, 0))
            for active in mine.paused.values():
                model.add(ends >= period + 1).only_enforce_if(active[period])
                model.add(mine.start <= period).only_enforce_if(active[period])
        mine.ends = ends
        mine.resumes = sum(begun) - sum(mine.by_pauses.values())
        model.add(mine.resumes >= 0)
        for at, chosen in mine.by_pauses.items():
            option = task.options[at]
            limit = sum(mine.paused[at].values()) * size >= option.seconds + mine.resumes * option.resume_seconds
            model.add(limit).only_enforce_if(chosen)
            extra = model.new_int_var(0, problem.periods * option.resume_micro_usd, "")
            model.add(extra >= mine.resumes * option.resume_micro_usd).only_enforce_if(chosen)
            self.paid += [option.micro_usd * chosen, extra]
            if problem.purses:
                rate = -(-option.micro_usd * size // option.seconds) + option.resume_micro_usd
                self.spent += [(rate * active, period * size, (period + 1) * size)
                               for period, active in mine.paused[at].items()]

    def _spend(self, mine: TaskVars, at: int, option: Option, start: cp_model.IntVar) -> None:
        """State what an option without a pause costs, and in which purse."""
        self.paid.append(option.micro_usd * mine.whole[at])
        rate = -(-option.micro_usd * HOUR_SECONDS // option.seconds)
        for purse in self.problem.purses if rate else ():
            # hours of it that lie in the purse, up
            begin, end = start * self.problem.period_seconds, start * self.problem.period_seconds + option.seconds
            low, high = self._second(), self._second()
            self.model.add_max_equality(low, [begin, purse.start])
            self.model.add_min_equality(high, [end, purse.end])
            hours = self.model.new_int_var(0, -(-option.seconds // HOUR_SECONDS), "")
            self.model.add(hours * HOUR_SECONDS >= high - low).only_enforce_if(mine.whole[at])
            self.spent.append((rate * hours, purse.start, purse.end))

    def _second(self) -> cp_model.IntVar:
        return self.model.new_int_var(0, 2 * self.problem.horizon, "")

    def _orders(self) -> None:
        """State what waits for what; what waits for something rejected is rejected."""
        for task, mine in zip(self.problem.tasks, self.tasks, strict=True):
            for other in task.after:
                before = self.tasks[other]
                self.model.add(mine.rejected >= before.rejected)
                limit = self.model.add(mine.start * self.problem.period_seconds >= before.end)
                if task.worth is not None:
                    limit.only_enforce_if(~mine.rejected)  # type: ignore[operator]

    def _alike(self) -> None:
        """Put tasks that cannot be told apart in order."""
        waiting = [{other for other, task in enumerate(self.problem.tasks) if at in task.after}
                   for at in range(len(self.tasks))]
        known = zip(self.problem.tasks, self.tasks, waiting, strict=True)
        for (one, mine, before), (other, theirs, then) in pairwise(known):
            if one == other and before == then:
                self.model.add(mine.rejected <= theirs.rejected)
                if one.worth is None:
                    self.model.add(mine.start <= theirs.start)

    def _most(self, at: int, block: int, need: int) -> int:
        return -(-need // max(1, self.problem.services[at].blocks[block].micro_rate))

    def _services(self) -> None:
        for service, counts in zip(self.problem.services, self.counts, strict=True):
            pools = sorted({block.pool for block in service.blocks})
            for load, rows in zip(service.loads, counts, strict=True):
                cost: Expr = 0
                for (need, hours), row in zip(load.needs, rows, strict=True):
                    self.model.add(sum(block.micro_rate * count for block, count in zip(service.blocks, row, strict=True))
                                   >= need)
                    cost += sum(hours * block.nodes * self.problem.pools[block.pool].micro_usd_per_node_hour * count
                                for block, count in zip(service.blocks, row, strict=True))
                self.paid.append(len(load.periods) * cost)
                size = self.problem.period_seconds
                self.spent += [(cost, period * size, (period + 1) * size) for period in load.periods]
                for pool in pools:
                    self._busy(pool, load.periods, [sum(
                        block.nodes * count for block, count in zip(service.blocks, row, strict=True)
                        if block.pool == pool) for row in rows])

    def _busy(self, pool: int, periods: tuple[int, ...], nodes: list[Expr]) -> None:
        """State that a service is on nodes of a pool, as many as in its busiest hour."""
        if self.problem.pools[pool].is_endless and not any(one.weights[pool] for one in self.problem.ceilings):
            return
        most = self.model.new_int_var(0, MOST_NODES, "busiest")
        for one in nodes:
            self.model.add(most >= one)
        self.busy += [(pool, start, end, most) for start, end in runs_of(periods)]

    def _lots(self) -> None:
        size = self.problem.period_seconds
        for pool, counts in zip(self.problem.pools, self.lots, strict=True):
            for lot, count in zip(pool.lots, counts, strict=True):
                cost: Expr = lot.micro_usd[0] * count
                if len(lot.micro_usd) > 1:
                    cost = self.model.new_int_var(0, max(lot.micro_usd), "")
                    self.model.add_element(count, list(lot.micro_usd), cost)
                self.paid.append(cost)
                self.spent.append((cost, lot.start * size, lot.end * size))

    def _pools(self) -> None:
        """State that no pool has more in use than there is."""
        for at, (pool, counts) in enumerate(zip(self.problem.pools, self.lots, strict=True)):
            if pool.is_endless:
                continue
            there = pool.capacity or (0,) * self.problem.periods
            steps = [(start, end, max(there) - nodes) for start, end, nodes in steps_of(there) if nodes < max(there)]
            taken: list[tuple[int, int, Expr, int]] = [(start, end, less, 0) for start, end, less in steps]
            served = [(start, end, nodes) for of, start, end, nodes in self.busy if of == at]
            taken += [(start, end, nodes, 1) for start, end, nodes in served]
            for lot, count in zip(pool.lots, counts, strict=True):
                end = min(lot.end, self.problem.periods)
                # what is not taken is absent while it could be there, and all of it before and after
                taken += [(lot.start, end, lot.most - count, 1), (0, lot.start, lot.most, 0),
                          (end, self.problem.periods, lot.most, 0)]
            mine = [use for use in self.uses if use.pool == at]
            self._cumulative([(use.interval, use.nodes) for use in mine], taken,
                             max(there) + sum(lot.most for lot in pool.lots))
            held = sum(there) + sum((min(lot.end, self.problem.periods) - lot.start) * count
                                    for lot, count in zip(pool.lots, counts, strict=True))
            self.model.add(sum(use.periods for use in mine)
                           + sum((end - start) * nodes for start, end, nodes in served) <= held)

    def _cumulative(self, uses: list[tuple[cp_model.IntervalVar, Expr]],
                    taken: list[tuple[int, int, Expr, int]], most: int) -> None:
        """State that uses and what is taken from period to period are at most so much together.

        What is taken is a number where its last part is 0, else it varies: CP-SAT 9.15 is wrong now and then where a
        varying demand may be zero, so that it has one more, and so has all the time besides.
        """
        intervals, demands = [interval for interval, _ in uses], [demand for _, demand in uses]
        for start, end, amount, varies in taken:
            if start < end:
                intervals.append(self.model.new_fixed_size_interval_var(start, end - start, ""))
                demands.append(amount + varies)
            for first, then in ((0, start), (end, self.problem.periods)) if varies else ():
                if first < then:
                    intervals.append(self.model.new_fixed_size_interval_var(first, then - first, ""))
                    demands.append(1)
            most += varies
        self.model.add_cumulative(intervals, demands, most)

    def _ceilings(self) -> None:
        for ceiling in self.problem.ceilings:
            mine = [(use.interval, ceiling.weights[use.pool] * use.nodes) for use in self.uses
                    if ceiling.weights[use.pool] and not (ceiling.held and self.problem.pools[use.pool].lots)]
            taken: list[tuple[int, int, Expr, int]] = [
                (lot.start, min(lot.end, self.problem.periods), weight * count, 1)
                for pool, weight, counts in zip(self.problem.pools, ceiling.weights, self.lots, strict=True)
                if ceiling.held and weight for lot, count in zip(pool.lots, counts, strict=True)]
            taken += [(start, end, ceiling.weights[pool] * nodes, 1) for pool, start, end, nodes in self.busy
                      if ceiling.weights[pool] and not (ceiling.held and self.problem.pools[pool].lots)]
            self._cumulative(mine, taken, ceiling.most)

    def _money(self) -> None:
        if self.problem.budget is not None:
            self.model.add(sum(self.paid) <= self.problem.budget)
        for purse in self.problem.purses:
            spent: list[Expr] = []
            for amount, start, end in self.spent:
                inside = min(end, purse.end) - max(start, purse.start)
                if inside > 0:
                    # a tenth of a percent of a period is lost to rounding at most, on the safe side
                    spent.append(-(-1000 * inside // (end - start)) * amount)
            self.model.add(sum(spent) <= 1000 * purse.micro_usd)

    def objective(self) -> Expr:
        """Return micro-USD, with what is forgone and paid for being late."""
        forgone = sum((task.worth or 0) * mine.rejected
                      for task, mine in zip(self.problem.tasks, self.tasks, strict=True))
        return sum(self.paid) + forgone + CENT * sum(mine.late for mine in self.tasks)


def runs_of(periods: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return periods as stretches: first, and first after."""
    runs: list[tuple[int, int]] = []
    for period in periods:
        if runs and runs[-1][1] == period:
            runs[-1] = runs[-1][0], period + 1
        else:
            runs.append((period, period + 1))
    return runs


def steps_of(values: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Return stretches of equal values: first, first after, and the value."""
    steps: list[tuple[int, int, int]] = []
    for at, value in enumerate(values):
        if steps and steps[-1][2] == value:
            steps[-1] = steps[-1][0], at + 1, value
        else:
            steps.append((at, at + 1, value))
    return steps
