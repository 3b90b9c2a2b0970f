"""Every way to do a task without a pause: an option and the period it starts with, as numpy columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.solver.fleet.program import Ints
from planner.solver.fleet.schedule import CENT, DAY_SECONDS, Problem, Purse, Task

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TaskWays:
    """Ways of one task: which option, first period and first after, and micro-USD with the price of being late."""

    option: Ints
    start: Ints
    end: Ints
    micro_usd: Ints

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.option)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> TaskWays:
        """Return some of them."""
        return TaskWays(self.option[rows], self.start[rows], self.end[rows], self.micro_usd[rows])

    def joined(self, other: TaskWays) -> TaskWays:
        """Return these and others."""
        return TaskWays(*(np.concatenate(columns) for columns in zip(
            (self.option, self.start, self.end, self.micro_usd),
            (other.option, other.start, other.end, other.micro_usd), strict=True)))

    def find(self, option: int, start: int) -> int | None:
        """Return the number of a way; none where it is not among them."""
        found = np.flatnonzero((self.option == option) & (self.start == start))
        return int(found[0]) if len(found) else None


def every_way(problem: Problem) -> list[TaskWays]:
    """Return all ways of all tasks."""
    linked = {other for task in problem.tasks for other in task.after}
    return [ways_of(problem, at, linked=at in linked or bool(task.after)) for at, task in enumerate(problem.tasks)]


def ways_of(problem: Problem, at: int, *, linked: bool) -> TaskWays:
    """Return all ways of a task that keep its dates.

    linked: whether another task waits for it, or it for another. Where when it runs makes no difference to anything
    else, it runs as early as it may.
    """
    task, size = problem.tasks[at], problem.period_seconds
    first, until = problem.earliest(task), problem.horizon if task.deadline is None else task.deadline
    parts = []
    for number, option in enumerate(task.options):
        last = (min(problem.horizon, until) - option.seconds) // size
        if last < first:
            continue
        idle = not linked and not problem.purses and all(problem.pools[pool].is_endless and not any(
            one.weights[pool] for one in problem.ceilings) for pool, _ in option.held)
        start = np.arange(first, (first if idle else last) + 1, dtype=np.int64)
        late = late_of(task, start * size + option.seconds)
        parts.append((np.full(len(start), number, dtype=np.int64), start, start + problem.length(option),
                      option.micro_usd + late))
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return TaskWays(none, none, none, none)
    return TaskWays(*(np.concatenate([part[column] for part in parts]) for column in range(4)))


def late_of(task: Task, ends: Ints) -> Ints:
    """Return the micro-USD paid for ending at some seconds, up to whole cents."""
    if task.due is None:
        return np.zeros(len(ends), dtype=np.int64)
    return -(-np.maximum(0, ends - task.due) * task.late_cents_per_day // DAY_SECONDS) * CENT


def nodes_of(task: Task, ways: TaskWays) -> Ints:
    """Return the nodes of each way on its first pool."""
    return np.array([option.nodes for option in task.options], dtype=np.int64)[ways.option]


def held_by(task: Task, ways: TaskWays) -> Iterator[tuple[Ints, Ints]]:
    """Yield pools and nodes of each way: the first that it is on, then what it holds beside; no nodes of pool 0."""
    most = max((len(option.held) for option in task.options), default=0)
    for at in range(most):
        held = [option.held[at] if at < len(option.held) else (0, 0) for option in task.options]
        pools, nodes = np.array(held, dtype=np.int64).T
        yield pools[ways.option], nodes[ways.option]


def used_up(task: Task, ways: TaskWays, stock: int) -> Ints:
    """Return what each way uses up of a stock."""
    return np.array([option.uses[stock] if option.uses else 0 for option in task.options], dtype=np.int64)[ways.option]


def paid_of(task: Task, ways: TaskWays) -> Ints:
    """Return what each way pays for its nodes, in micro-USD."""
    return np.array([option.micro_usd for option in task.options], dtype=np.int64)[ways.option]


def paid_within(problem: Problem, task: Task, ways: TaskWays, purse: Purse, unit: int) -> Ints:
    """Return what each way pays between two dates, in `unit` micro-USD, up."""
    seconds = np.array([option.seconds for option in task.options], dtype=np.int64)[ways.option]
    begin = ways.start * problem.period_seconds
    inside = np.maximum(0, np.minimum(begin + seconds, purse.end) - np.maximum(begin, purse.start))
    # of floats, up by one where rounding could have hidden a part
    share = paid_of(task, ways) / unit * (inside / seconds)
    return np.where(inside > 0, np.ceil(share * (1 + 1e-12)), 0).astype(np.int64)
