"""A first schedule of many tasks: one after the other by prices of a relaxation, what paid too much first."""

from __future__ import annotations

import math
import time
from collections.abc import Collection

import numpy as np

from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.greedy import Placing, in_order, needed_by
from planner.solver.fleet.relaxing import Relaxed
from planner.solver.fleet.schedule import Problem, Schedule

ROUNDED = (0.1, 0.5, 0.9)
"""Parts of a node up to which a lot is rounded down."""
ROUNDS = 12
"""Orders that are tried with each."""
FORGOTTEN = 0.8
"""What is left from order to order of what a task paid too much."""
SEVERAL = 5
"""Ways of a task: what the last of so many costs more than the best says how much depends on when it is placed."""


def guided(problem: Problem, must: Collection[int], relaxed: Relaxed, alone: Schedule,
           stop: float | None = None) -> Schedule | None:
    """Return the cheapest schedule of all orders tried; none where there are stocks, which it leaves out.

    must: tasks that are rejected only where they find no place. alone: the services and lots without the tasks.
    stop: a monotonic clock reading after which no further order is tried.
    """
    if problem.stocks:
        return None
    best: Schedule | None = None
    needed, waited = needed_by(problem, must), {other for task in problem.tasks for other in task.after}
    worth = [np.inf if at in needed else relaxed.rejecting[at] for at in range(len(problem.tasks))]
    dear = max((float(np.abs(mine).max()) for mine in relaxed.more if len(mine)), default=0.0)
    for down in ROUNDED:
        lots = [tuple(min(lot.most, max(least, math.ceil(nodes - down)))
                      for lot, nodes, least in zip(pool.lots, mine, there, strict=True))
                for pool, mine, there in zip(problem.pools, relaxed.lots, alone.lots, strict=True)]
        placing = Placing(problem, relaxed.ways, relaxed.more, worth, lots, alone.services)
        blamed = np.array([float(np.partition(mine, min(SEVERAL, len(mine)) - 1)[min(SEVERAL, len(mine)) - 1])
                           if len(mine) else 0.0 for mine in relaxed.more])
        for number in range(ROUNDS):
            if best is not None and stop is not None and time.monotonic() > stop:
                return best
            hurried = waited if number % 2 else set[int]()
            made = placing.made(in_order(problem, (-blamed).tolist()), hurried)
            if (best is None or (made.value or 0) < (best.value or 0)) and not check_schedule(problem, made):
                best = made
            paid = [dear if placed is None and at in needed else relaxed.rejecting[at] if placed is None else
                    float(mine[found]) if (found := ways.find(placed.option, placed.runs[0][0])) is not None else 0.0
                    for at, (placed, ways, mine) in enumerate(zip(made.tasks, relaxed.ways, relaxed.more, strict=True))]
            blamed = FORGOTTEN * blamed + np.minimum(dear, paid)
    return best
