"""Good schedules of tasks that wait for each other: lists that are crossed, changed and improved, over and over.

A genetic search as for projects with several modes (Van Peteghem and Vanhoucke, 2010, doi:10.1016/j.ejor.2009.03.034).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random

from planner.solver.fleet.listing import Listed, Lists, Modes, Order, in_order
from planner.solver.fleet.schedule import Placed, Problem
from planner.solver.settings import Heard

POPULATION = 40
CHOOSING, MUTATED = 0.1, 0.015
"""Shares of tasks that take the option in which they end first, and whose place or option is changed."""
RIVALS = 3
"""Of so many lists, the best is a parent."""
STALLED = 1_500
"""Children without a better schedule after which all but the best are drawn anew."""
REPAIRS = 60
"""Options that are changed at most until stocks are enough."""


@dataclass(frozen=True, slots=True)
class Individual:
    """A schedule of the population with what it costs, and how far it is spread out, which is less than a cent."""

    rank: tuple[int, int]
    listed: Listed


class Evolution:
    """A population of schedules of one problem."""

    def __init__(self, problem: Problem, seed: int) -> None:
        """Start with none."""
        self.lists, self.random = Lists(problem), Random(seed)
        self.members: list[Individual] = []
        self.modes: list[Modes] = []
        """Options of all tasks, that lists are drawn with; at random where there are none."""
        self.best: Individual | None = None
        self.made = 0

    @property
    def placed(self) -> tuple[Placed, ...]:
        """The best schedule so far; empty where there is none."""
        best = self.best and self.best.listed
        return tuple(self.lists.placed(best, at) for at in range(len(best.modes))) if best else ()

    def run(self, count: int, least: int, stop: float | None = None, heard: Heard | None = None) -> None:
        """Go on until so many schedules have been made, or one costs the least that any does.

        stop: a monotonic clock reading. heard: is told of better ones.
        """
        calm = 0
        while self.made < count and not (self.best and self.best.rank[0] <= least) and not (
                stop is not None and self.made and time.monotonic() > stop):
            child = self._drawn() if len(self.members) < POPULATION else self._crossed()
            self.made += 1
            calm += 1
            if child is not None and self.take(child):
                calm = 0
                if heard is not None:
                    heard(child.rank[0], least)
            if calm > STALLED:
                self.members, calm = [], 0

    def take(self, child: Individual) -> bool:
        """Take a schedule in, in place of the worst; say whether it is better than all before."""
        better = self.best is None or child.rank[0] < self.best.rank[0]
        if better:
            self.best = child
        self._put(child)
        return better

    def rival(self) -> Individual:
        """Return the best of a few schedules."""
        return min(self.random.sample(self.members, min(RIVALS, len(self.members))), key=lambda one: one.rank)

    def member(self, listed: Listed) -> Individual:
        """Return a schedule with what it costs."""
        return Individual((self.lists.cost(listed), sum(listed.ends)), listed)

    def _put(self, child: Individual) -> None:
        if any(child.listed == one.listed for one in self.members):
            return
        self.members.append(child)
        if len(self.members) > POPULATION:
            self.members.remove(max(self.members, key=lambda one: one.rank))

    def _member(self, order: Order, modes: Modes) -> Individual | None:
        if not self._repaired(modes):
            return None
        random = self.random.random
        found = self.lists.settled(order, modes, [random() < CHOOSING for _ in modes])
        return None if found is None else self.member(found)

    def _drawn(self) -> Individual | None:
        """Return lists that are drawn, of those that may come next rather what much waits for."""
        random, lists = self.random, self.lists
        if not all(lists.modes):
            return None
        modes = list(random.choice(self.modes)) if self.modes else [random.choice(mine) for mine in lists.modes]
        tail = [0] * len(modes)
        for at in reversed(_waiting_order(lists)):
            tail[at] = lists.length[at][modes[at]] + max((tail[other] for other in lists.behind[at]), default=0)
        order, missing = Order(), [len(mine) for mine in lists.before]
        open_ = [at for at, count in enumerate(missing) if not count]
        while open_:
            at = max(random.sample(open_, min(RIVALS, len(open_))), key=lambda at: tail[at])
            open_.remove(at)
            order.append(at)
            for other in lists.behind[at]:
                missing[other] -= 1
                if not missing[other]:
                    open_.append(other)
        return self._member(order, modes)

    def _crossed(self) -> Individual | None:
        """Return a child of two: a stretch of one's order and options, the rest as in the other, with changes."""
        random = self.random
        one, other = (self.rival().listed for _ in range(2))
        mine, theirs = in_order(one.starts, one.ends), in_order(other.starts, other.ends)
        begin, end = sorted(random.sample(range(len(mine) + 1), 2))
        head = mine[:begin]
        known = set(head)
        middle = [at for at in theirs if at not in known][:end - begin]
        known.update(middle)
        order = head + middle + [at for at in mine if at not in known]
        modes = list(one.modes)
        for at in middle:
            modes[at] = other.modes[at]
        for at in range(len(modes)):
            if random.random() < MUTATED and self.lists.modes[at]:
                modes[at] = random.choice(self.lists.modes[at])
        for place in range(len(order) - 1):
            if random.random() < MUTATED:
                self._moved(order, place)
        return self._member(order, modes)

    def _moved(self, order: Order, place: int) -> None:
        """Move a task to any place between those that it waits for and those that wait for it."""
        at = order[place]
        low, high = place, place
        while low > 0 and order[low - 1] not in self.lists.before[at]:
            low -= 1
        while high < len(order) - 1 and order[high + 1] not in self.lists.behind[at]:
            high += 1
        order.insert(self.random.randint(low, high), order.pop(place))

    def _repaired(self, modes: Modes) -> bool:
        """Change options until stocks are enough; say whether they are."""
        lists, random = self.lists, self.random
        over = sum(lists.over(modes))
        for _ in range(REPAIRS):
            if not over:
                return True
            at = random.randrange(len(modes))
            if len(lists.modes[at]) < 2:
                continue
            before = modes[at]
            modes[at] = random.choice(lists.modes[at])
            now = sum(lists.over(modes))
            if now <= over:
                over = now
            else:
                modes[at] = before
        return not over


def _waiting_order(lists: Lists) -> Order:
    """Return tasks so that what is waited for comes first."""
    missing = [len(mine) for mine in lists.before]
    found = [at for at, count in enumerate(missing) if not count]
    for at in found:
        for other in lists.behind[at]:
            missing[other] -= 1
            if not missing[other]:
                found.append(other)
    return found
