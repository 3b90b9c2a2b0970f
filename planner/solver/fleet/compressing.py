"""Shorter schedules of tasks that wait for each other: what runs in a window is placed anew by CP-SAT, so that all that
starts behind the window starts a period earlier.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from planner.solver.fleet.evolving import Evolution
from planner.solver.fleet.listing import Listed, Lists, in_order
from planner.solver.fleet.schedule import Option, Placed, Pool, Problem, Schedule, Task
from planner.solver.fleet.starting import ByStart
from planner.solver.settings import Settings

LIMIT, STATED = 0.25, 0.01
"""CP-SAT's deterministic time for a window, at most, and what stating one takes of it, about."""
TASKS, LEAST_TASKS, STEP = 30.0, 8.0, 1.05
"""In a window, at first and at least; by how much there are more after one that cannot be shorter, and fewer after one
that stays open.
"""
SEEDS = 1 << 30


def compress(evolution: Evolution, settings: Settings, least: int) -> None:
    """Make schedules of a population shorter, window by window, until the time is over or one costs the least that any
    does.
    """
    lists, size, left = evolution.lists, TASKS, settings.deterministic_limit or 0.0
    stop = None if settings.seconds is None else time.monotonic() + settings.seconds
    while left > 0 and evolution.best is not None and evolution.best.rank[0] > least and not (
            stop is not None and time.monotonic() > stop):
        listed = evolution.rival().listed
        window = _window(lists, listed, evolution.random.random() * max(listed.ends), round(size))
        left -= STATED
        if window is None:
            continue
        stated = ByStart(window.question)
        found = stated.solved(Settings(LIMIT, evolution.random.randrange(SEEDS)), window.known)
        left -= stated.spent
        if found.status == "infeasible":
            size = min(size * STEP, len(lists.tasks))
        elif found.value is None:
            size = max(size / STEP, LEAST_TASKS)
        else:
            made = lists.settled(*window.whole(found))
            if made is not None and evolution.take(evolution.member(made)) and settings.heard is not None:
                settings.heard(evolution.best.rank[0], least)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Tasks of a schedule that are placed anew, as a question of their own that begins with a period of the whole."""

    tasks: tuple[int, ...]
    first: int
    question: Problem
    rest: Listed
    """The schedule with what starts behind the window a period earlier."""

    @property
    def known(self) -> tuple[Placed, ...]:
        """Where the tasks were."""
        rest, first = self.rest, self.first
        return tuple(Placed(rest.modes[at], ((rest.starts[at] - first, rest.ends[at] - first),)) for at in self.tasks)

    def whole(self, found: Schedule) -> tuple[list[int], list[int]]:
        """Return the order and the options of all tasks, with those of the window as they were found."""
        modes, starts, ends = list(self.rest.modes), list(self.rest.starts), list(self.rest.ends)
        for at, placed in zip(self.tasks, found.tasks, strict=True):
            if placed is not None:
                modes[at], ((start, end),) = placed.option, placed.runs
                starts[at], ends[at] = self.first + start, self.first + end
        return in_order(starts, ends), modes


def _window(lists: Lists, listed: Listed, middle: float, size: int) -> Excerpt | None:
    """Return what runs about a time; none where what starts behind it cannot start earlier."""
    every = range(len(listed.starts))
    near = sorted(every, key=lambda at: (max(listed.starts[at] - middle, middle - listed.ends[at], 0), at))[:size]
    begin, end = min(listed.starts[at] for at in near), max(listed.starts[at] for at in near) + 1
    behind = [at for at in every if listed.starts[at] >= end]
    inside = [at for at in every if at not in behind and listed.ends[at] > begin]
    if any(lists.first[at] == listed.starts[at] for at in behind):
        return None
    starts, ends = list(listed.starts), list(listed.ends)
    for at in behind:
        starts[at], ends[at] = starts[at] - 1, ends[at] - 1
    return _stated(lists, Listed(listed.modes, tuple(starts), tuple(ends)), inside)


def _stated(lists: Lists, rest: Listed, inside: Collection[int]) -> Excerpt | None:
    """Return the question of tasks beside all others, where those that are paid for when late end a period earlier;
    none where the others have no room.
    """
    size, among = lists.problem.period_seconds, {at: place for place, at in enumerate(inside)}
    first = {at: max([lists.first[at], *(rest.ends[other] for other in lists.before[at] if other not in among)])
             for at in inside}
    last = {at: min([rest.ends[at] - 1 if at in lists.priced else max(rest.ends),
                     *(rest.starts[other] for other in lists.behind[at] if other not in among)]) for at in inside}
    low, high = min(first.values()), max(last.values())
    if any(first[at] >= last[at] for at in inside):
        return None
    pools = [list(capacity[low:high]) for capacity, _ in lists.rows]
    for at, mode in enumerate(rest.modes):
        for period in range(max(low, rest.starts[at]), min(high, rest.ends[at])) if at not in among else ():
            for room, much in zip(pools, lists.taken[at][mode], strict=True):
                room[period - low] -= much
    if any(min(room) < 0 for room in pools):
        return None
    tasks = tuple(Task(
        tuple(_option(lists, at, mode) for mode in range(len(lists.tasks[at].options))),
        (first[at] - low) * size, min(last[at] * size, lists.tasks[at].deadline or last[at] * size) - low * size,
        after=tuple(among[other] for other in lists.before[at] if other in among)) for at in inside)
    used = [sum(lists.uses[at][mode][stock] for at, mode in enumerate(rest.modes) if at not in among)
            for stock in range(len(lists.problem.stocks))]
    question = Problem(high - low, size, (*(Pool(tuple(room)) for room in pools), Pool()), tasks, stocks=tuple(
        most - much for most, much in zip(lists.problem.stocks, used, strict=True)))
    return Excerpt(tuple(inside), low, question, rest)


def _option(lists: Lists, at: int, mode: int) -> Option:
    """Return an option on pools and ceilings alike, or on a pool without an end."""
    held = [(row, much) for row, much in enumerate(lists.taken[at][mode]) if much] or [(len(lists.rows), 0)]
    return Option(*held[0], lists.tasks[at].options[mode].seconds, beside=tuple(held[1:]), uses=tuple(
        lists.uses[at][mode]))
