"""A better schedule of many tasks: some are taken out and placed again one after the other, over and over."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.greedy import needed_by
from planner.solver.fleet.pausing import runs_of
from planner.solver.fleet.program import Ints
from planner.solver.fleet.reading import value_of
from planner.solver.fleet.relaxing import Relaxed
from planner.solver.fleet.rooms import Rooms
from planner.solver.fleet.schedule import Placed, Problem, Schedule, late_cost, lateness
from planner.solver.fleet.ways import TaskWays

MOST_OUT = 14
"""Tasks that are taken out at a time."""
SKIPPED = 0.03
"""Chance that the best way there is room for is passed over."""
WARM = 0.003
"""Of what a task costs on average times the tasks taken out: by so much worse is still taken at first."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The ways of a task from the best on, and where each is looked up."""

    ways: TaskWays
    places: Sequence[tuple[Ints, Ints]]


class Board:
    """A schedule whose tasks are moved; services and lots stay."""

    def __init__(self, problem: Problem, must: Collection[int], relaxed: Relaxed, start: Schedule, seed: int) -> None:
        """Start from a schedule."""
        self.problem, self.random, self.start = problem, Random(seed), start
        self.needed = needed_by(problem, must)
        self.placed = list(start.tasks)
        self.rooms = Rooms(problem, start)
        self.later = [[other for other, task in enumerate(problem.tasks) if at in task.after]
                      for at in range(len(problem.tasks))]
        self.paid = [self.cost(at, placed) for at, placed in enumerate(self.placed)]
        self.ranked = [[self._ranked(at, ways, order) for order in (
            np.lexsort((ways.end, more)), np.lexsort((more, ways.micro_usd)), np.lexsort((ways.end, ways.micro_usd)))]
            for at, (ways, more) in enumerate(zip(relaxed.ways, relaxed.more, strict=True))]
        pausing = [problem.pausing(task) for task in problem.tasks]
        self.periods = [periods for periods, _ in pausing]
        """In which a task may run where it pauses."""
        self.pauses = [sorted((option.micro_usd, number) for number, option in options) for _, options in pausing]
        self.rooms.take(enumerate(self.placed))

    def _ranked(self, at: int, ways: TaskWays, order: Ints) -> _Ranked:
        best = ways.take(order)
        return _Ranked(best, self.rooms.places(at, best))

    def cost(self, at: int, placed: Placed | None) -> int:
        """Return what a task costs where it is."""
        task = self.problem.tasks[at]
        if placed is None:
            return task.worth or 0
        late = late_cost(task, lateness(self.problem, task, placed)) if task.late_cents_per_day else 0
        return placed.cost(task) + late

    def tried(self, warmth: float) -> int | None:
        """Take some tasks out and place them again; return what that costs more, and none where it was undone."""
        out = self._chosen()
        before, paid = [(at, self.placed[at]) for at in out], [self.paid[at] for at in out]
        self.rooms.take((), before)
        for at in out:
            self._put(at, None, 0)
        was = sum(paid)
        total = self._again(out, was + warmth * -math.log(1 - self.random.random()))
        if total is not None:
            return total - was
        self.rooms.take(before, [(at, self.placed[at]) for at in out])
        for (at, placed), usd in zip(before, paid, strict=True):
            self._put(at, placed, usd)
        return None

    def _again(self, out: Sequence[int], most: float) -> int | None:
        """Place tasks again; return what they cost, and none where that is too much or something is left without."""
        how, waiting, total = self.random.randrange(3), set(out), 0
        for at in self._order(out):
            placed = self._best(at, how, waiting)
            waiting.remove(at)
            self._put(at, placed, self.cost(at, placed))
            if placed is not None:
                self.rooms.take([(at, placed)])
            total += self.paid[at]
            if total > most:
                return None
        return total if self._whole(out) else None

    def _whole(self, out: Sequence[int]) -> bool:
        """Return whether nothing waits for a task that is now rejected."""
        return not any(self.placed[at] is None and any(self.placed[other] is not None for other in self.later[at])
                       for at in out)

    def _put(self, at: int, placed: Placed | None, paid: int) -> None:
        self.placed[at], self.paid[at] = placed, paid

    def _chosen(self) -> list[int]:
        """Return tasks to take out: one, and those that run at its time, on its pool or on any."""
        tasks, random = self.problem.tasks, self.random
        first, count = random.randrange(len(tasks)), min(len(tasks), random.randint(2, MOST_OUT))
        mine = self.placed[first]
        if mine is None:
            middle, pool = random.randrange(self.problem.periods), None
        else:
            middle = random.randrange(mine.runs[0][0], mine.runs[-1][1])
            pool = tasks[first].options[mine.option].pool if random.random() < 0.7 else None

        def far(at: int) -> float:
            placed = self.placed[at]
            if placed is None:
                return random.random() * self.problem.periods
            away = max(0, placed.runs[0][0] - middle, middle - placed.runs[-1][1] + 1)
            other = pool is not None and tasks[at].options[placed.option].pool != pool
            return (away + 3 + other * self.problem.periods / 4) * random.random()
        return [first, *sorted((at for at in range(len(tasks)) if at != first), key=far)[:count - 1]]

    def _order(self, out: Sequence[int]) -> list[int]:
        """Return tasks in an order to place them again: what is waited for first."""
        random, how = self.random, self.random.randrange(4)
        ranks = {at: random.random() if how == 0 else -self._size(at) * random.uniform(0.8, 1.25) if how == 1 else
                 (self.problem.tasks[at].deadline or self.problem.horizon) * random.uniform(0.9, 1.1) if how == 2
                 else -(self.problem.tasks[at].worth or 0) * random.uniform(0.7, 1.4) for at in out}
        if not any(self.problem.tasks[at].after for at in out):
            return sorted(out, key=lambda at: (ranks[at], at))
        waiting, found = set(out), list[int]()
        while waiting:
            at = min((at for at in waiting if not waiting & set(self.problem.tasks[at].after)),
                     key=lambda at: (ranks[at], at))
            waiting.remove(at)
            found.append(at)
        return found

    def _size(self, at: int) -> int:
        ways = self.ranked[at][0].ways
        return int(ways.end[0] - ways.start[0]) if len(ways) else 0

    def _best(self, at: int, how: int, waiting: set[int]) -> Placed | None:
        """Return where a task goes; none where it is rejected, or where there is no room."""
        problem, task = self.problem, self.problem.tasks[at]
        first, last = 0, problem.periods
        for other in task.after:
            if (before := self.placed[other]) is None:
                return None
            first = max(first, before.runs[-1][1])
        for other in self.later[at]:
            if other not in waiting and (behind := self.placed[other]) is not None:
                last = min(last, behind.runs[0][0])
        ranked = self.ranked[at][how]
        ways, found, best = ranked.ways, None, math.inf if at in self.needed or task.worth is None else task.worth
        if len(ways):
            has = self.rooms.fitting(ranked.places, len(ways))
            if first or last < problem.periods:
                has &= (ways.start >= first) & (ways.end <= last)
            row = int(has.argmax())
            if has[row] and self.random.random() < SKIPPED:
                has[row] = False
                row = int(has.argmax())
            if has[row] and ways.micro_usd[row] < best:
                found, best = Placed(int(ways.option[row]), ((int(ways.start[row]), int(ways.end[row])),)), int(
                    ways.micro_usd[row])
        if task.may_pause:
            found = self._paused(at, first, last, best) or found
        return found

    def _paused(self, at: int, first: int, last: int, below: float) -> Placed | None:
        """Return a way with pauses that costs less than others, on the first periods that there is room in."""
        problem, task, periods, found = self.problem, self.problem.tasks[at], self.periods[at], None
        for usd, number in self.pauses[at]:
            if usd >= below:
                break
            option = task.options[number]
            count = problem.length(option)
            free = self.rooms.periods(at, number, max(first, periods.start), min(last, periods.stop))
            for most in range(count, min(len(free), count + 2) + 1):
                runs = runs_of(free[:most].tolist())
                work = option.seconds + (len(runs) - 1) * option.resume_seconds
                if most * problem.period_seconds >= work:
                    placed = Placed(number, runs)
                    cost = self.cost(at, placed)
                    if len(runs) > 1 and (most - 1) * problem.period_seconds < work and cost < below:
                        found, below = placed, cost
                    break
        return found


def recreated(problem: Problem, must: Collection[int], relaxed: Relaxed, start: Schedule, rounds: int, seed: int,
              stop: float | None = None) -> Schedule:
    """Return a schedule that costs no more than `start`, after so many rounds; services and lots are its own.

    must: tasks that are rejected only where they find no place. stop: a monotonic clock reading.
    """
    if not problem.tasks:
        return start
    board = Board(problem, must, relaxed, start, seed)
    now = sum(board.paid)
    best, kept, interrupted = now, list(board.placed), False
    limited = problem.budget is not None or problem.purses
    warm = WARM * max(relaxed.bound, 0) / len(problem.tasks) * MOST_OUT
    try:
        for number in range(rounds):
            if stop is not None and time.monotonic() > stop:
                break
            more = board.tried(warm * (1 - number / rounds) ** 2)
            if more is None:
                continue
            now += more
            if now < best and not (limited and check_schedule(problem, _valued(problem, start, board.placed))):
                best, kept = now, list(board.placed)
    except KeyboardInterrupt:
        interrupted = True
    made = _valued(problem, start, kept)
    better = (made.value or 0) < (start.value or 0) and not check_schedule(problem, made)
    return replace(made if better else start, interrupted=interrupted)


def _valued(problem: Problem, start: Schedule, placed: Sequence[Placed | None]) -> Schedule:
    """Return a schedule of the same services and lots."""
    made = replace(start, tasks=tuple(placed))
    return replace(made, value=value_of(problem, made))
