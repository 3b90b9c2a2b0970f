"""Ways to do a task with pauses that pay at some prices, and the least that any such way costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop

import numpy as np
from numpy.typing import NDArray

from planner.solver.fleet.schedule import Option, Placed, Problem, Runs, Task
from planner.solver.fleet.ways import late_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prices:
    """What periods cost a task, in micro-USD: a node of each pool in each, to begin with each, to end with each."""

    nodes: Floats
    begin: Floats
    end: Floats
    money: float = 1.0
    """Of each micro-USD paid, at least."""


def best_paused(problem: Problem, task: Task, prices: Prices, below: float) -> tuple[float, list[Placed]]:
    """Return the least that any way with pauses costs, and of each option that may cost less one close to that."""
    size = problem.period_seconds
    periods, options = problem.pausing(task)
    least, found = np.inf, list[Placed]()
    if not options:
        return least, found
    first, last = periods.start, periods.stop
    ending = late_of(task, (np.arange(first, last, dtype=np.int64) + 1) * size) + prices.end[first:last]
    begun = float(prices.begin[first:last].min())
    for number, option in options:
        count = problem.length(option)
        each = np.sum([nodes * prices.nodes[pool, first:last] for pool, nodes in option.held], axis=0)
        costs = _cheapest_by(each, count) + ending
        end = int(np.argmin(costs))
        cost = float(costs[end]) + begun + option.micro_usd * prices.money
        least = min(least, cost)
        if cost >= below:
            continue
        order = np.argsort(each[:end + 1], kind="stable") + first
        placed = _placed(problem, number, option, order.tolist(), count)
        if placed is not None:
            found.append(placed)
    return least, found


def _cheapest_by(each: Floats, count: int) -> Floats:
    """Return by period what so many of the periods up to it cost at least."""
    total, kept, found = 0.0, list[float](), np.full(len(each), np.inf)
    for at, cost in enumerate(each.tolist()):
        if len(kept) < count:
            heappush(kept, -cost)
            total += cost
        else:
            total += cost + heappushpop(kept, -cost)
        if len(kept) == count:
            found[at] = total
    return found


def _placed(problem: Problem, number: int, option: Option, order: list[int], count: int) -> Placed | None:
    """Return the first of some periods that are enough, with what their pauses add; none without a pause."""
    for most in range(count, len(order) + 1):
        runs = runs_of(sorted(order[:most]))
        work = option.seconds + (len(runs) - 1) * option.resume_seconds
        if most * problem.period_seconds >= work:
            tight = (most - 1) * problem.period_seconds < work
            return Placed(number, runs) if len(runs) > 1 and tight else None
    return None


def runs_of(periods: Sequence[int]) -> Runs:
    """Return periods as stretches: first, and first after."""
    runs: list[tuple[int, int]] = []
    for period in periods:
        if runs and runs[-1][1] == period:
            runs[-1] = runs[-1][0], period + 1
        else:
            runs.append((period, period + 1))
    return tuple(runs)
