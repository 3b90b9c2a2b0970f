"""Ways to do a task with pauses that pay at some prices, and the least that any such way costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop

import numpy as np
from numpy.typing import NDArray

from planner.solver.fleet.schedule import Option, Placed, Problem, Runs, Task, late_cost, lateness
from planner.solver.fleet.ways import late_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prices:
    """What periods cost a task, in micro-USD: nodes of a pool in each, to begin with each, to end with each."""

    held: Mapping[tuple[int, int], Floats]
    begin: Floats
    end: Floats
    money: float = 1.0
    """Of each micro-USD paid, at least."""


def best_paused(problem: Problem, task: Task, prices: Prices, below: float) -> tuple[float, list[Placed]]:
    """Return the least that any way with pauses costs, and of each option that may cost less one close to that, the
    cheapest first.
    """
    size = problem.period_seconds
    periods, options = problem.pausing(task)
    least, found = np.inf, list[tuple[float, Placed]]()
    if not options:
        return least, []
    first, last = periods.start, periods.stop
    ending = late_of(task, (np.arange(first, last, dtype=np.int64) + 1) * size) + prices.end[first:last]
    begun = prices.begin[first:last]
    for number, option in options:
        count = problem.length(option)
        each = np.sum([prices.held[held][first:last] for held in option.held], axis=0)
        bound = float(np.partition(each, count - 1)[:count].sum() + begun.min() + ending[count - 1:].min())
        bound += option.micro_usd * prices.money
        if bound >= below:
            least = min(least, bound)
            continue
        costs = (_cheapest_from if begun.any() else _cheapest_by)(each, count, begun) + ending
        end = int(np.argmin(costs))
        cost = float(costs[end]) + option.micro_usd * prices.money
        least = min(least, cost)
        if cost >= below:
            continue
        start = _start(each[:end + 1], count, begun[:end + 1]) if begun.any() else 0
        order = np.argsort(each[start:end + 1], kind="stable") + first + start
        placed = _placed(problem, number, option, order.tolist(), count)
        if placed is not None:
            found.append((cost, placed))
    return least, [placed for _, placed in sorted(found, key=lambda one: one[0])]


def cost_of(problem: Problem, task: Task, placed: Placed, prices: Prices) -> float:
    """Return what a way with pauses costs at some prices."""
    cost = placed.cost(task) * prices.money + late_cost(task, lateness(problem, task, placed))
    for held in task.options[placed.option].held:
        cost += sum(float(prices.held[held][start:end].sum()) for start, end in placed.runs)
    return cost + float(prices.begin[placed.runs[0][0]] + prices.end[placed.runs[-1][1] - 1])


def _cheapest_from(each: Floats, count: int, begun: Floats) -> Floats:
    """Return by period what so many of the periods up to it cost at least, it among them, with what the first costs."""
    found, least = np.full(len(each), np.inf), np.full(count, np.inf)
    for at, (cost, first) in enumerate(zip(each.tolist(), begun.tolist(), strict=True)):
        # this period as the first, the second, ... of them
        now = np.concatenate([[first], least[:-1]]) + cost
        found[at] = now[-1]
        np.minimum(least, now, out=least)
    return found


def _start(each: Floats, count: int, begun: Floats) -> int:
    """Return the first of so many periods that cost least with what the first costs; the last period is among them."""
    back = _cheapest_by(each[::-1], count, begun)[::-1] + begun
    return int(np.argmin(back))


def _cheapest_by(each: Floats, count: int, begun: Floats) -> Floats:
    """Return by period what so many of the periods up to it cost at least; nothing is paid for the first."""
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
