"""Every other way to do one job, with all other jobs where they are: what it costs more, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from planner.jobs.agenda import Agenda
from planner.solver.check_schedule import spent, spent_within, total_of, used
from planner.solver.fleet.program import Ints
from planner.solver.fleet.schedule import Option, Placed, Problem, Schedule, Task, late_cost, lateness
from planner.solver.fleet.ways import TaskWays, late_of, nodes_of, paid_of, paid_within

NODES, RELEASE, DEADLINE, AFTER, BEFORE = "nodes", "release", "deadline", "after", "before"
BUDGET = "budget"
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Ways of one task with all else as it is: an option each, and the period it starts with."""

    options: tuple[Option, ...]
    ways: TaskWays
    end: Ints
    """Second at which each ends."""
    more: Ints
    """Micro-USD that each costs more than what is planned, or where the task is rejected than nothing."""
    lacks: dict[str, Ints]
    """By what stands against a way: by how much, 0 where it does not."""

    @property
    def against(self) -> Ints:
        """How many things stand against each way."""
        return np.asarray(sum((lack > 0).astype(np.int64) for lack in self.lacks.values()))

    def lacking(self, way: int) -> dict[str, int]:
        """Return what stands against one way."""
        return {name: int(lack[way]) for name, lack in self.lacks.items() if lack[way] > 0}


@dataclass(frozen=True, slots=True)
class Room:
    """What there is for some ways on one pool."""

    missing: Ints
    """Nodes."""
    usd: Ints
    """Micro-USD of more nodes of a lot."""
    within: list[Ints]
    """The same within each quarter."""
    lacks: dict[str, Ints]
    """By ceiling: how much of it is missing."""


class Rest:
    """What there is for one task, or one service, once all others have what they have."""

    def __init__(self, agenda: Agenda, schedule: Schedule, task: int | None, service: int | None = None) -> None:
        """Take one of them out, and the nodes of lots that are then idle."""
        self.agenda, self.problem = agenda, agenda.problem
        problem = self.problem
        if service is not None:
            problem = replace(problem, services=_without(problem.services, service))
            schedule = replace(schedule, services=_without(schedule.services, service))
        self.was = None if task is None else schedule.tasks[task]
        tasks = tuple(None if at == task else placed for at, placed in enumerate(schedule.tasks))
        busy = used(problem, replace(schedule, tasks=tasks))
        lots = [self._trimmed(at, busy[at], counts) for at, counts in enumerate(schedule.lots)]
        self.schedule = replace(schedule, tasks=tasks, lots=tuple(lots))
        self.saved = sum(lot.cost(had) - lot.cost(left) for pool, before, now in zip(
            problem.pools, schedule.lots, lots, strict=True) for lot, had, left in zip(
            pool.lots, before, now, strict=True))
        """Micro-USD of nodes of lots that nothing else needs."""
        self.free = [np.array(_there(problem, at, lots[at]), dtype=np.int64) - np.array(busy[at])
                     for at in range(len(problem.pools))]
        self.left = [ceiling.most - np.array(total_of(problem, self.schedule, ceiling))
                     for ceiling in problem.ceilings]
        paid = sum(usd for usd, _, _ in spent(problem, self.schedule))
        self.budget = None if problem.budget is None else problem.budget - paid
        self.purses = [purse.micro_usd - spent_within(problem, self.schedule, purse) for purse in problem.purses]

    def _trimmed(self, at: int, busy: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
        """Return the nodes of the lots of a pool that are needed for what is left on it."""
        kept = list(counts)
        for number, lot in enumerate(self.problem.pools[at].lots):
            idle = np.array(_there(self.problem, at, kept)) - np.array(busy)
            kept[number] -= min(kept[number], int(idle[lot.start:lot.end].min()))
        return tuple(kept)

    def room(self, pool: int, start: Ints, end: Ints, nodes: Ints) -> Room:
        """Return what there is for ways on a pool that are equally long, or for just one.

        start, end, nodes: of each way; from a period to the first after.
        """
        length, none = int(end[0] - start[0]), np.zeros(len(start), dtype=np.int64)
        room = Room(none, none, [none for _ in self.problem.purses], {})
        if not self.problem.pools[pool].is_endless:
            room = self._bought(pool, start, end, np.maximum(0, nodes - _least(self.free[pool], start, length)))
        for name, ceiling, left in zip(self.agenda.ceilings, self.problem.ceilings, self.left, strict=True):
            weight = self.problem.in_use(ceiling)[pool]
            room.lacks[name] = np.maximum(0, weight * nodes - _least(left, start, length)) if weight else none
        return room

    def _bought(self, pool: int, start: Ints, end: Ints, missing: Ints) -> Room:
        """Return what is missing still, and the price, where one lot can have the nodes that are missing."""
        problem, size = self.problem, self.problem.period_seconds
        best = np.full(len(start), -1, dtype=np.int64)
        within = [np.zeros(len(start), dtype=np.int64) for _ in problem.purses]
        most = int(missing.max(initial=0))
        for lot, had in zip(problem.pools[pool].lots, self.schedule.lots[pool], strict=True):
            room = min([lot.most - had, *(int(left[lot.start:lot.end].min()) // ceiling.weights[pool]
                                          for ceiling, left in zip(problem.ceilings, self.left, strict=True)
                                          if ceiling.held and ceiling.weights[pool])])
            prices = np.array([lot.cost(had + more) - lot.cost(had) for more in range(max(0, min(most, room)) + 1)])
            usd = prices[np.minimum(missing, len(prices) - 1)]
            taken = (lot.start <= start) & (min(lot.end, problem.periods) >= end) & (missing < len(prices)) & (
                (best < 0) | (usd < best))
            best = np.where(taken, usd, best)
            for at, purse in enumerate(problem.purses):
                inside = max(0, min(lot.end * size, purse.end) - max(lot.start * size, purse.start))
                within[at] = np.where(taken, -(-usd * inside // ((lot.end - lot.start) * size)), within[at])
        return Room(np.where(best >= 0, 0, missing), np.maximum(0, best), within, {})

    def money(self, paid: Ints, within: Sequence[Ints]) -> dict[str, Ints]:
        """Return what budgets lack for ways that pay so much, and so much in each quarter, in micro-USD."""
        lacks = {} if self.budget is None else {BUDGET: np.maximum(0, paid - self.budget)}
        for name, mine, left in zip(self.agenda.purses, within, self.purses, strict=True):
            over = np.maximum(0, mine - int(left))
            lacks[name] = np.maximum(lacks[name], over) if name in lacks else over
        return lacks


def elsewhere(agenda: Agenda, schedule: Schedule, at: int, options: Sequence[Option], *, in_time: bool = False
              ) -> tuple[Rest, Elsewhere]:
    """Return every way of a task, in some options, within the horizon.

    in_time: whether being late is none.
    """
    rest, problem, task = Rest(agenda, schedule, at), agenda.problem, agenda.problem.tasks[at]
    known = replace(task, options=tuple(options))
    parts, lacks = [], list[dict[str, Ints]]()
    extra = []
    for number, option in enumerate(options):
        last = (problem.horizon - option.seconds) // problem.period_seconds
        if last < 0:
            continue
        start = np.arange(last + 1, dtype=np.int64)
        late = late_of(task, start * problem.period_seconds + option.seconds)
        ways = TaskWays(0 * start + number, start, start + problem.length(option), option.micro_usd + late)
        room = rest.room(option.pool, ways.start, ways.end, nodes_of(known, ways))
        within = [paid_within(problem, known, ways, purse, 1) + more
                  for purse, more in zip(problem.purses, room.within, strict=True)]
        parts.append(ways)
        extra.append(room.usd)
        lacks.append({NODES: room.missing, **room.lacks, **rest.money(paid_of(known, ways) + room.usd, within)})
    none = np.zeros(0, dtype=np.int64)
    every = TaskWays(*(np.concatenate([none, *(part)]) for part in (
        [ways.option for ways in parts], [ways.start for ways in parts], [ways.end for ways in parts],
        [ways.micro_usd for ways in parts])))
    end = every.start * problem.period_seconds + np.array([one.seconds for one in options], dtype=np.int64)[
        every.option] if len(every) else none
    more = every.micro_usd + np.concatenate([none, *extra]) - rest.saved - _now(problem, task, schedule.tasks[at])
    joined = {name: np.concatenate([none, *(part[name] for part in lacks)]) for name in (lacks[0] if lacks else ())}
    return rest, Elsewhere(tuple(options), every, end, more, {**joined, **_dates(
        problem, schedule, at, every, end, in_time=in_time)})


def _dates(problem: Problem, schedule: Schedule, at: int, ways: TaskWays, end: Ints, *, in_time: bool
           ) -> dict[str, Ints]:
    """Return the seconds by which ways miss a date of the task, or of one that it waits for or that waits for it."""
    task, begin = problem.tasks[at], ways.start * problem.period_seconds
    until = task.due if in_time and task.due is not None else task.deadline
    before = max((_end(problem, schedule, other) for other in task.after), default=0)
    then = min((placed.runs[0][0] * problem.period_seconds for other, placed in zip(
        problem.tasks, schedule.tasks, strict=True) if at in other.after and placed is not None),
        default=problem.horizon)
    return {RELEASE: np.maximum(0, problem.earliest(task) * problem.period_seconds - begin),
            DEADLINE: np.maximum(0, end - (problem.horizon if until is None else until)),
            AFTER: np.maximum(0, before - begin), BEFORE: np.maximum(0, end - then)}


def _end(problem: Problem, schedule: Schedule, at: int) -> int:
    placed = schedule.tasks[at]
    return problem.horizon if placed is None else placed.end(problem, problem.tasks[at])


def _now(problem: Problem, task: Task, placed: Placed | None) -> int:
    return 0 if placed is None else placed.cost(task) + late_cost(task, lateness(problem, task, placed))


def _there(problem: Problem, at: int, counts: Sequence[int]) -> list[int]:
    pool = problem.pools[at]
    nodes = np.array(pool.capacity or (0,) * problem.periods)
    for lot, count in zip(pool.lots, counts, strict=True):
        nodes[lot.start:lot.end] += count
    return [int(count) for count in nodes]


def _least(room: Ints, start: Ints, length: int) -> Ints:
    """Return the least room in the periods of each way."""
    windows = np.lib.stride_tricks.sliding_window_view(room, length)
    return np.asarray(windows.min(axis=1)[start])


def _without(values: Sequence[Value], at: int) -> tuple[Value, ...]:
    return tuple(value for number, value in enumerate(values) if number != at)
