"""Ways to do a task with pauses that pay at some prices, and the least that any such way costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop

import numpy as np
from numpy.typing import NDArray

from planner.solver.fleet.program import Ints
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


@dataclass(frozen=True, slots=True)
class Pausable:
    """A task that may pause: the periods that it may run in, its options by number, and what does not change."""

    periods: range
    options: tuple[tuple[int, Option], ...]
    counts: Ints
    """Periods that each option takes at least."""
    micro_usd: Ints
    late: Ints
    """Micro-USD for ending with each period."""


def pausable(problem: Problem, task: Task) -> Pausable | None:
    """Return how a task may pause; none where it may not."""
    if not task.may_pause:
        return None
    periods, options = problem.pausing(task)
    if not options:
        return None
    ends = (np.arange(periods.start, periods.stop, dtype=np.int64) + 1) * problem.period_seconds
    return Pausable(periods, tuple(options), np.array([problem.length(option) for _, option in options]),
                    np.array([option.micro_usd for _, option in options]), late_of(task, ends))


def best_paused(problem: Problem, task: Task, mine: Pausable | None, prices: Prices, below: float
                ) -> tuple[float, list[Placed]]:
    """Return the least that any way with pauses costs, and of each option that may cost less one close to that, the
    cheapest first.
    """
    least, found = np.inf, list[tuple[float, Placed]]()
    if mine is None:
        return least, []
    first, last = mine.periods.start, mine.periods.stop
    ending, begun = mine.late + prices.end[first:last], prices.begin[first:last]
    table, bounds = bounds_of(mine, prices)
    for (number, option), each, count, bound in zip(mine.options, table, mine.counts.tolist(), bounds.tolist(),
                                                    strict=True):
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


def bounds_of(mine: Pausable, prices: Prices) -> tuple[Floats, Floats]:
    """Return what each option costs in each period, and the least that any way with pauses in it costs, or less."""
    first, last = mine.periods.start, mine.periods.stop
    ending, begun = mine.late + prices.end[first:last], prices.begin[first:last]
    table = np.array([np.sum([prices.held[held][first:last] for held in option.held], axis=0)
                      if option.beside else prices.held[option.pool, option.nodes][first:last]
                      for _, option in mine.options])
    # of each option as many periods as it takes, the cheapest; and the cheapest ends that leave as many before
    cheapest = np.cumsum(np.sort(table, axis=1), axis=1)[np.arange(len(table)), mine.counts - 1]
    ends = np.minimum.accumulate(ending[::-1])[::-1][mine.counts - 1]
    return table, cheapest + begun.min() + ends + mine.micro_usd * prices.money


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
