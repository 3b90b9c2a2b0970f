"""Schedules of tasks that wait for each other from lists: an order of all tasks and an option of each.

Tasks are placed one by one as early as they fit, then moved late and early again, which closes holes (Valls et al.,
2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.solver.fleet.schedule import Placed, Problem, Task, late_cost, lateness

Order = list[int]
Modes = list[int]
"""Option of each task."""
UNFIT = -1


@dataclass(frozen=True, slots=True)
class Listed:
    """Where lists put every task: in which option, and from which period to which."""

    modes: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


class Lists:
    """What lists are placed by. What is there in a period is one number, a few bits for each pool and ceiling, under
    a bit that is lost where more is taken.
    """

    def __init__(self, problem: Problem) -> None:
        """Read a problem whose tasks cost nothing but being late."""
        self.problem, self.tasks = problem, problem.tasks
        self.rows = rows = [(pool.capacity, tuple(int(other == at) for other in range(len(problem.pools))))
                for at, pool in enumerate(problem.pools) if pool.capacity is not None]
        rows += [((ceiling.most,) * problem.periods, problem.in_use(ceiling)) for ceiling in problem.ceilings]
        """Of every pool and ceiling what there is in each period, and what a node of each pool takes of it."""
        bits = [max(capacity).bit_length() for capacity, _ in rows]
        places = [sum(bits[:at]) + at for at in range(len(rows))]
        self.guard = sum(1 << place + bit for place, bit in zip(places, bits, strict=True))
        self.room = [self.guard + sum(capacity[period] << place for (capacity, _), place in zip(
            rows, places, strict=True)) for period in range(problem.periods)]
        self.length = [[problem.length(option) for option in task.options] for task in self.tasks]
        self.taken = taken = [[[sum(weights[pool] * nodes for pool, nodes in option.held) for _, weights in rows]
                  for option in task.options] for task in self.tasks]
        """What each option takes of every row."""
        self.need = [[sum(much << place for much, place in zip(mine, places, strict=True)) for mine in each]
                     for each in taken]
        self.first = [problem.earliest(task) for task in self.tasks]
        self.last = [[self._last(task, option.seconds) for option in task.options] for task in self.tasks]
        self.modes = [[at for at in range(len(task.options)) if self.last[number][at] >= self.first[number] and all(
            much.bit_length() <= bit for much, bit in zip(taken[number][at], bits, strict=True))]
            for number, task in enumerate(self.tasks)]
        """Options that a task may be done in by itself."""
        self.uses = [[option.uses or (0,) * len(problem.stocks) for option in task.options] for task in self.tasks]
        self.before = [task.after for task in self.tasks]
        self.behind: list[list[int]] = [[] for _ in self.tasks]
        for at, task in enumerate(self.tasks):
            for other in task.after:
                self.behind[other].append(at)
        self.priced = [at for at, task in enumerate(self.tasks) if task.due is not None and task.late_cents_per_day]

    def _last(self, task: Task, seconds: int) -> int:
        until = min(self.problem.horizon, self.problem.horizon if task.deadline is None else task.deadline)
        return (until - seconds) // self.problem.period_seconds

    def cost(self, listed: Listed) -> int:
        """Return what being late costs, in micro-USD."""
        return sum(late_cost(self.tasks[at], lateness(self.problem, self.tasks[at], self.placed(listed, at)))
                   for at in self.priced)

    def placed(self, listed: Listed, at: int) -> Placed:
        """Return a task where lists put it."""
        return Placed(listed.modes[at], ((listed.starts[at], listed.ends[at]),))

    def over(self, modes: Sequence[int]) -> tuple[int, ...]:
        """Return how much more of each stock is used up than there is."""
        return tuple(max(0, sum(self.uses[at][mode][stock] for at, mode in enumerate(modes)) - most)
                     for stock, most in enumerate(self.problem.stocks))

    def early(self, order: Order, modes: Modes, choosing: Sequence[bool] = ()) -> Listed | None:
        """Return every task as early as it fits behind those before it in the order; none where one does not fit.

        choosing: tasks that take the option in which they end first, of those that stocks have room for.
        """
        room, modes = list(self.room), list(modes)
        starts, ends = [0] * len(modes), [0] * len(modes)
        left = [most - sum(self.uses[at][mode][stock] for at, mode in enumerate(modes))
                for stock, most in enumerate(self.problem.stocks)]
        for at in order:
            first = max([self.first[at], *(ends[other] for other in self.before[at])])
            mode = modes[at]
            start = self._from(room, first, self.length[at][mode], self.need[at][mode])
            if choosing and choosing[at]:
                mode, start = self._soonest(at, room, first, left, (mode, start))
                if mode != modes[at]:
                    left = [spare + had - wants for spare, had, wants in zip(
                        left, self.uses[at][modes[at]], self.uses[at][mode], strict=True)]
                    modes[at] = mode
            if start == UNFIT or start > self.last[at][mode]:
                return None
            end, need = start + self.length[at][mode], self.need[at][mode]
            for period in range(start, end):
                room[period] -= need
            starts[at], ends[at] = start, end
        return Listed(tuple(modes), tuple(starts), tuple(ends))

    def _soonest(self, at: int, room: list[int], first: int, left: list[int], now: tuple[int, int]) -> tuple[int, int]:
        """Return the option in which a task ends first, and when it then starts, of those that stocks have room for."""
        before, (mode, start) = now[0], now
        lengths, had = self.length[at], self.uses[at][before]
        end = len(room) + 1 if start == UNFIT else start + lengths[mode]
        for other in self.modes[at]:
            if other == before or first + lengths[other] >= end or any(spare + old < new for spare, old, new in zip(
                    left, had, self.uses[at][other], strict=True)):
                continue
            begin = self._from(room, first, lengths[other], self.need[at][other])
            if begin != UNFIT and begin + lengths[other] < end:
                mode, start, end = other, begin, begin + lengths[other]
        return mode, start

    def _from(self, room: list[int], first: int, length: int, need: int) -> int:
        """Return the first period from which on there is room for so long."""
        guard, most = self.guard, len(room) - length
        while first <= most:
            period = first + length - 1
            while period >= first and (room[period] - need) & guard == guard:
                period -= 1
            if period < first:
                return first
            first = period + 1
        return UNFIT

    def late(self, listed: Listed) -> Listed:
        """Return the same options with every task as late as it fits before what waits for it, last ends first."""
        room, guard = list(self.room), self.guard
        starts, ends = list(listed.starts), list(listed.ends)
        whole = max(ends, default=0)
        for at in sorted(range(len(ends)), key=lambda at: (-ends[at], -starts[at], -at)):
            until = min([whole, *(starts[other] for other in self.behind[at])])
            mode = listed.modes[at]
            length, need = self.length[at][mode], self.need[at][mode]
            start = min(until - length, self.last[at][mode])
            while start > starts[at]:
                period, end = start, start + length
                while period < end and (room[period] - need) & guard == guard:
                    period += 1
                if period == end:
                    break
                start = period - length
            start = max(start, starts[at])
            for period in range(start, start + length):
                room[period] -= need
            starts[at], ends[at] = start, start + length
        return Listed(listed.modes, tuple(starts), tuple(ends))

    def settled(self, order: Order, modes: Modes, choosing: Sequence[bool] = ()) -> Listed | None:
        """Return a schedule of lists whose tasks have been moved late and early again."""
        found = self.early(order, modes, choosing)
        if found is None:
            return None
        late = self.late(found)
        again = self.early(in_order(late.starts, late.ends), list(found.modes))
        return found if again is None or self.cost(again) > self.cost(found) else again


def in_order(starts: Sequence[int], ends: Sequence[int]) -> Order:
    """Return tasks by start; what ends first comes first."""
    return sorted(range(len(starts)), key=lambda at: (starts[at], ends[at], at))
