"""Purchases by the date of delivery, as lots of the fleet: what owning takes from then to the end of the horizon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from planner.money.purchase import YEAR_HOURS, Estate
from planner.scenario.portfolio import Portfolio
from planner.solver.fleet.schedule import CENT, HOUR_SECONDS, Lot, Pool, Task

MOST_BOUGHT = 256
"""Nodes of one purchase."""
EACH_TASK = 2
"""Dates of a task: the latest that leave it time, in the ways that would keep nodes of its own for the least time."""


def delivered(portfolio: Portfolio) -> int:
    """Return the first period with which bought nodes may be there."""
    buy = portfolio.sourcing.buy
    return math.ceil(((buy.delivery if buy else None) or 0.0) / portfolio.horizon.period)


def purchases(portfolio: Portfolio, estate: Estate, starts: Iterable[int]) -> tuple[Lot, ...]:
    """Return a purchase by each of some periods of delivery."""
    horizon = portfolio.horizon
    most = min(MOST_BOUGHT, estate.most_nodes(MOST_BOUGHT))
    hourly = (0.0, *(sum(estate.yearly(nodes).values()) / YEAR_HOURS for nodes in range(1, most + 1)))
    lots = []
    for start in starts:
        hours = (horizon.periods - start) * horizon.period / HOUR_SECONDS
        lots.append(Lot(start, horizon.periods, tuple(math.ceil(usd * hours * 100) * CENT for usd in hourly), most))
    return tuple(lots)


def as_late_as_may_be(portfolio: Portfolio, estate: Estate, pool: Pool, at: int, tasks: Sequence[Task], most: int
                      ) -> Pool:
    """Return a pool of bought nodes with deliveries too that leave tasks just the time they need: later ones cost less.

    at: the number of the pool. most: dates that are added at most.
    """
    size, periods, first = round(portfolio.horizon.period), portfolio.horizon.periods, delivered(portfolio)
    known, wanted = {lot.start for lot in pool.lots}, dict[int, int]()
    for task in tasks:
        until = min(second for second in (periods * size, task.deadline, task.due) if second is not None)
        latest = [(option.nodes, (until - option.seconds) // size) for option in task.options if option.pool == at]
        held = sorted((nodes * (periods - start), start) for nodes, start in latest
                      if max(first, -(-task.release // size)) <= start < periods)
        for cost, start in held[:EACH_TASK]:
            wanted[start] = max(wanted.get(start, 0), cost)
    more = sorted(wanted.keys() - known, key=lambda start: (-wanted[start], start))[:most]
    lots = (*pool.lots, *purchases(portfolio, estate, sorted(more)))
    return replace(pool, lots=tuple(sorted(lots, key=lambda lot: lot.start)))
