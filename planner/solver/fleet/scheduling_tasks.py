"""Tasks in the CP-SAT model: a start, an interval for each option, and for what may pause a choice by period."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from ortools.sat.python import cp_model

from planner.solver.fleet.schedule import DAY_SECONDS, HOUR_SECONDS, Option, Problem, Task

Expr: TypeAlias = cp_model.LinearExpr | int


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


class TaskModel:
    """What tasks decide, use and cost."""

    def __init__(self, problem: Problem) -> None:
        """State all tasks of a problem."""
        self.problem = problem
        self.model = cp_model.CpModel()
        self.uses: list[Use] = []
        self.paid: list[Expr] = []
        self.spent: list[tuple[int, Expr, int, int]] = []
        """Micro-USD, how often they are paid, and the seconds between which."""
        self.tasks = [self._task(task) for task in problem.tasks]
        self._orders()
        self._alike()

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
            model.add(start == min(first, last)).only_enforce_if(rejected)
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
            option = task.options[at]
            active: dict[int, cp_model.IntVar] = {}
            for period in range(first, last):
                runs = model.new_bool_var("")
                model.add_implication(runs, chosen)
                interval = model.new_optional_fixed_size_interval_var(period, 1, runs, "")
                self.uses.append(Use(option.pool, interval, option.nodes, option.nodes * runs))
                active[period] = runs
            mine.paused[at] = active
        begun = [model.new_bool_var("") for _ in range(first, last)]
        ends = model.new_int_var(0, problem.periods, "ends")
        any_: dict[int, Expr] = {
            period: sum(active[period] for active in mine.paused.values()) for period in range(first, last)}
        for period in range(first, last):
            model.add(begun[period - first] >= any_[period] - any_.get(period - 1, 0))
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
                self.spent += [(rate, active, period * size, (period + 1) * size)
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
            self.spent.append((rate, hours, purse.start, purse.end))

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
