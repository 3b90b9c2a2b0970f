"""What to hold all day beside what is rented by the hour, for one service: by trying every way that could be best.

On whole nodes of a supply one service answers as much as their best filling does. So money a day against rate is a
staircase for what is held, and another for what is rented in an hour; each way to hold is priced with what its hours
lack. That is exact, and takes milliseconds where one model of all hours takes minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Ints
from planner.solver.fleet.covering import Cover, Covered, NodeSupply, Supplied

MOST, MOST_NODES = 2_000_000, 20_000
"""Ways looked at at once, and nodes of a supply: beyond, one model of all hours is asked instead."""


@dataclass(frozen=True, slots=True)
class _Stairs:
    """Ways to have nodes, each dearer than the one before and with more rate: money, rate, nodes by supply."""

    money: Ints
    rate: Ints
    nodes: Ints


def held(problem: Cover) -> Covered | None:
    """Return the nodes to hold all day with the least money of the day; none where the question is not of this kind."""
    limits = (problem.micro_budget, problem.max_gpus, problem.max_nodes, problem.max_watts)
    alike = len(problem.needs) == 1 and not any(problem.spares) and not problem.ranges and not problem.changing
    if not alike or problem.objective != "cost" or any(limit is not None for limit in limits):
        return None
    if any(c.role != "whole" for c in problem.columns) or not all(supply.linear for supply in problem.supplies):
        return None
    peak = max(problem.needs[0])
    always = [supply for supply in problem.supplies if supply.always]
    hourly = [supply for supply in problem.supplies if not supply.always]
    by_hour, all_day = (_stairs(some, problem.columns, peak) for some in (hourly, always))
    if by_hour is None or all_day is None:
        return None
    need, hours = np.array(problem.needs[0]), np.array(problem.hours)
    lacking = np.maximum(need[None, :] - all_day.rate[:, None], 0)
    step = np.searchsorted(by_hour.rate, lacking)
    enough = (step < len(by_hour.rate)).all(axis=1)
    if not enough.any():
        return None
    money = by_hour.money[np.minimum(step, len(by_hour.rate) - 1)] @ hours + all_day.money * int(hours.sum())
    at = int(np.flatnonzero(enough)[np.argmin(money[enough])])
    nodes = {offer.key: (int(count),) * len(hours) for offer, count in zip(always, all_day.nodes[at], strict=True)}
    return Covered("optimal", {}, nodes, int(money[at]), int(money[at]))


def _stairs(supplies: Sequence[NodeSupply], columns: Sequence[Supplied], peak: int) -> _Stairs | None:
    """Return the staircase of any numbers of nodes of these supplies, up to the peak; none where there are too many."""
    filled = {source.key: _filled(source, [c for c in columns if c.supply == source.key], peak) for source in supplies}
    # what costs more than to answer the peak from one supply is of no use
    most = min((source.micro_usd(len(filled[source.key]) - 1) for source in supplies if filled[source.key][-1] >= peak),
               default=None)
    stairs = _Stairs(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((1, 0), np.int64))
    for supply in supplies:
        rates, price = filled[supply.key], max(1, supply.micro_usd(1))
        rates = rates if most is None else rates[:most // price + 1]
        counts = np.arange(len(rates))
        if len(rates) > MOST_NODES or len(stairs.money) * len(counts) > MOST:
            return None
        money = (stairs.money[:, None] + counts * supply.micro_usd(1)).ravel()
        rate = np.minimum(stairs.rate[:, None] + rates, peak).ravel()
        nodes = np.column_stack([np.repeat(stairs.nodes, len(counts), axis=0),
                                 np.tile(counts, len(stairs.money))])
        order = np.lexsort((-rate, money))
        best = np.maximum.accumulate(rate[order])
        up = order[np.concatenate(([True], best[1:] > best[:-1]))]
        stairs = _Stairs(money[up], rate[up], nodes[up])
    return stairs


def _filled(supply: NodeSupply, columns: Sequence[Supplied], peak: int) -> Ints:
    """Return the most that 0, 1, 2, ... nodes of a supply answer, up to the peak."""
    best, by_nodes = [0], [0]
    while by_nodes[-1] < peak and len(by_nodes) <= min(supply.most, MOST_NODES) and columns:
        for _ in range(supply.node_gpus):
            gpus = len(best)
            best.append(max(best[-1], *(best[gpus - c.gpus] + c.micro_rate for c in columns if c.gpus <= gpus), 0))
        by_nodes.append(best[-1])
    return np.array(by_nodes, np.int64)
