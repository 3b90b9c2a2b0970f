"""The fleet of a serving question: columns and supplies as integers, solved, and read back as picks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from planner.layouts.candidate import Candidate
from planner.money.rent import RentalOffer
from planner.scenario.limits import ServingLimits
from planner.serving.service import Service
from planner.solver.fleet.cover import LIMITED, Column, Cover, Covered, Supply, cover
from planner.solver.quantize import price
from planner.solver.replicas import ReplicaColumn
from planner.solver.settings import Settings

MICRO = 1e6
MOST_BOUGHT = 256
"""Nodes up to which prices that depend on the number are looked at."""
HOURS = 24
ALWAYS = frozenset({"buy", "owned"})
Offered: TypeAlias = tuple[tuple[int, ReplicaColumn], int]
"""A column with its service, and the number of an offer of its hardware."""


@dataclass(frozen=True, slots=True)
class Pick:
    """Replicas of one layout for one service on one offer, at the busiest hour; `nodes` hold them."""

    service: int
    column: ReplicaColumn
    offer: RentalOffer
    replicas: int
    nodes: int
    daily: tuple[int, ...]
    """Nodes in every hour of the day; one figure where every hour is alike."""

    @property
    def usd_per_node_hour(self) -> float:
        """What one of so many nodes costs."""
        estate = self.offer.estate
        return self.offer.usd_per_node_hour if estate is None else estate(self.nodes) / MICRO

    @property
    def always(self) -> bool:
        """Whether the nodes are paid for at every hour, as what is owned, bought or committed to."""
        return self.offer.how in ALWAYS or self.offer.commitment > 0

    @property
    def share(self) -> float:
        """Share of the hours of the nodes in which they run."""
        return sum(self.daily) / len(self.daily) / self.nodes


@dataclass(frozen=True)
class Fleet:
    """What a cover problem is made of: columns by service, offers, and the day in periods."""

    services: Sequence[Service]
    columns: Sequence[tuple[int, ReplicaColumn]]
    """Each with its service."""
    offers: Sequence[RentalOffer]
    candidates: Sequence[Candidate]
    limits: ServingLimits
    objective: str
    settings: Settings = LIMITED

    @property
    def factors(self) -> tuple[tuple[float, ...], ...]:
        """Factors of the rates in each hour, a row an hour; one row where every hour is alike."""
        days = [service.asked.day for service in self.services]
        if not any(days):
            return ((1.0,) * len(self.services),)
        return tuple(tuple(day[hour] if day else 1.0 for day in days) for hour in range(HOURS))

    def periods(self) -> tuple[list[tuple[float, ...]], list[int]]:
        """Return the different hours, and which of them each hour of the day is."""
        known = sorted(set(self.factors))
        return known, [known.index(row) for row in self.factors]

    def problem(self, admitted: Callable[[ReplicaColumn], bool] = lambda column: True,
                limits: ServingLimits | None = None) -> Cover:
        """Return the cover problem over the columns admitted."""
        limits = limits or self.limits
        periods, hours = self.periods()
        needs = tuple(tuple(math.ceil(service.needed * row[at] * MICRO) for row in periods)
                      for at, service in enumerate(self.services))
        made = []
        for key, ((service, column), at) in enumerate(self.pairs):
            if admitted(column):
                made.append(Column(key, service, at, column.role,
                                   max(1, math.floor(column.rate * MICRO)), column.gpus))
        used = {column.supply for column in made}
        return Cover(
            needs=needs, spares=tuple(service.asked.spare_replicas for service in self.services), columns=tuple(made),
            supplies=tuple(self._supply(at) for at in sorted(used)),
            hours=tuple(hours.count(at) * (HOURS // len(hours)) for at in range(len(periods))),
            objective=self.objective,  # type: ignore[arg-type]
            micro_budget=None if limits.budget is None else math.floor(limits.budget * MICRO),
            max_gpus=_least(limits.gpus, limits.max_gpus), max_nodes=limits.max_nodes,
            max_watts=None if limits.max_power is None else int(limits.max_power))

    @cached_property
    def pairs(self) -> list[Offered]:
        """Return every column with every offer of its hardware, by offer; simple layouts first."""
        ordered = sorted(self.columns, key=lambda pair: (pair[1].candidate, pair[1].role, pair[1].plainness))
        made = [(pair, at) for at, offer in enumerate(self.offers) for pair in ordered
                if pair[1].candidate == offer.candidate]
        return [one for one in made if not any(self._cheaper(other, one) for other in made)]

    def _cheaper(self, other: Offered, one: Offered) -> bool:
        """Say whether replicas of `other` can stand for any number of those of `one`: as strong, and cheaper."""
        ((service, mine), at), ((owner, theirs), elsewhere) = one, other
        here, there = self.offers[at], self.offers[elsewhere]
        if at == elsewhere or service != owner or mine.role != theirs.role or mine.gpus != theirs.gpus:
            return False
        if there.nodes is not None or there.estate is not None or is_always(there) != is_always(here):
            return False
        nodes = [self.candidates[offer.candidate].node for offer in (here, there)]
        prices = (there.usd_per_node_hour, elsewhere), (here.usd_per_node_hour, at)
        return (nodes[0].gpus == nodes[1].gpus and nodes[0].power.load >= nodes[1].power.load
                and theirs.rate >= mine.rate and prices[0] < prices[1])

    def _supply(self, at: int) -> Supply:
        offer = self.offers[at]
        node, estate = self.candidates[offer.candidate].node, offer.estate
        each = price(offer.usd_per_node_hour)
        always = is_always(offer)
        if estate is None:
            return Supply(at, lambda nodes: nodes * each, offer.nodes or MOST_BOUGHT**2, node.gpus,
                          round(node.power.load), always)
        return Supply(at, lambda nodes: nodes * estate(nodes), min(offer.nodes or MOST_BOUGHT, MOST_BOUGHT), node.gpus,
                      round(node.power.load), always, linear=False)

    def picks(self, found: Covered) -> list[Pick]:
        """Return what was decided, the strongest hour of each column."""
        _, hours = self.periods()
        made = []
        for key, ((service, column), at) in enumerate(self.pairs):
            replicas, nodes = found.replicas.get(key, (0,)), found.nodes.get(key, (0,))
            if max(replicas):
                made.append(Pick(service, column, self.offers[at], max(replicas), max(nodes),
                                 tuple(nodes[hour] for hour in hours)))
        return sorted(made, key=lambda pick: (pick.service, -pick.replicas * pick.column.rate))

    def solve(self, admitted: Callable[[ReplicaColumn], bool] = lambda column: True,
              limits: ServingLimits | None = None) -> Covered:
        """Return the proven cover over the columns admitted."""
        return cover(self.problem(admitted, limits), self.settings)


def is_always(offer: RentalOffer) -> bool:
    """Say whether an offer is paid for at every hour."""
    return offer.how in ALWAYS or offer.commitment > 0


def _least(*limits: int | None) -> int | None:
    given = [limit for limit in limits if limit is not None]
    return min(given) if given else None
