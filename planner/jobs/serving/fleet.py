"""The fleet of a serving question: columns and supplies as integers, solved, and read back as picks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from planner.jobs.serving.columns import ReplicaColumn
from planner.jobs.serving.options import Admitted
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.money.rent import RentalOffer
from planner.scenario.limits import ServingLimits
from planner.solver.fleet.cover import cover
from planner.solver.fleet.covering import LIMITED, Column, Cover, Covered, Supply
from planner.solver.quantize import price
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
    """Replicas of one layout for one service on one offer, at the busiest hour, and the nodes they are on."""

    service: int
    column: ReplicaColumn
    offer: RentalOffer
    replicas: int
    nodes: int
    daily: tuple[int, ...]
    """Nodes in every hour of the day; one figure where every hour is alike."""
    part: float = 1.0
    """Of its nodes, what it pays for: others that run on them pay the rest."""
    share: float = 1.0
    """Of the hours of what it pays for, in which it runs."""
    together: int = 1
    """Nodes of the offer in all, at their busiest."""
    buys: int = 0
    """GPUs at work on them, where the offer is to buy; of several picks the first says so."""

    @property
    def usd_per_node_hour(self) -> float:
        """What it pays for each of its nodes."""
        estate = self.offer.estate
        return self.part * (self.offer.usd_per_node_hour if estate is None else estate(self.together) / MICRO)

    @property
    def always(self) -> bool:
        """Whether the nodes are paid for at every hour, as what is owned, bought or committed to."""
        return is_always(self.offer)


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
    def split(self) -> bool:
        """Whether some service may be split into classes of prompt length."""
        return any(service.prompts is not None for service in self.services)

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

    def problem(self, admitted: Admitted = lambda column: True,
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
            ranges=tuple((service.of, *service.classes) for service in self.services) if self.split else (),
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
        by_offer: dict[int, list[int]] = {}
        for key, (_, at) in enumerate(self.pairs):
            if max(found.replicas.get(key, (0,))):
                by_offer.setdefault(at, []).append(key)
        made = [pick for at, keys in by_offer.items() for pick in self._on_offer(found, at, keys)]
        return sorted(made, key=lambda pick: (pick.service, -pick.replicas * pick.column.rate))

    def _on_offer(self, found: Covered, at: int, keys: Sequence[int]) -> Iterator[Pick]:
        """Yield the picks of one offer, with the nodes that each is on, and pays for."""
        _, hours = self.periods()
        offer, nodes = self.offers[at], self.nodes_by_hour(found)[at]
        size = self.candidates[offer.candidate].node.gpus
        columns = [self.pairs[key][0] for key in keys]
        periods = [shared_out([column.gpus * found.replicas[key][period]
                               for key, (_, column) in zip(keys, columns, strict=True)], size)
                   for period in range(len(found.nodes[at]))]
        for number, (key, (service, column)) in enumerate(zip(keys, columns, strict=True)):
            mine = [periods[period][number] for period in hours]
            # what is always paid for is paid for as it stands at its busiest hour
            most = mine[nodes.index(max(nodes))] if is_always(offer) else max(mine)
            count, paid = most if most[0] else (max(mine)[0], 0.0)
            working = sum(self.pairs[one][0][1].gpus * max(found.replicas[one]) for one in keys)
            buys = working if offer.estate is not None and not number else 0
            yield Pick(service, column, offer, max(found.replicas[key]), count, tuple(on for on, _ in mine),
                       paid / count, sum(pays for _, pays in mine) / len(mine) / max(paid, 1e-9), max(nodes), buys)

    def nodes_by_hour(self, found: Covered) -> dict[int, tuple[int, ...]]:
        """Return the nodes of each offer in every hour; one figure where every hour is alike."""
        _, hours = self.periods()
        return {at: tuple(nodes[hour] for hour in hours) for at, nodes in found.nodes.items()}

    def used(self, found: Covered) -> dict[str, float]:
        """Return what a fleet takes of each limit in the hour that takes most."""
        held = {at: [max(nodes)] * len(nodes) if is_always(self.offers[at]) else list(nodes)
                for at, nodes in found.nodes.items()}
        periods = range(len(self.periods()[0]))
        gpus = max(sum(self.pairs[key][0][1].gpus * replicas[p] for key, replicas in found.replicas.items())
                   for p in periods)
        return {"gpus": gpus, "max_gpus": gpus,
                "max_nodes": max(sum(nodes[p] for nodes in found.nodes.values()) for p in periods),
                "budget": max(sum(self._supply(at).micro_usd(nodes[p]) for at, nodes in held.items() if nodes[p])
                              for p in periods) / MICRO,
                "max_power": max(sum(self._supply(at).watts * nodes[p] for at, nodes in found.nodes.items())
                                 for p in periods)}

    def solve(self, admitted: Admitted = lambda column: True,
              limits: ServingLimits | None = None) -> Covered:
        """Return the proven cover over the columns admitted."""
        return cover(self.problem(admitted, limits), self.settings)


def shared_out(gpus: Sequence[int], size: int) -> list[tuple[int, float]]:
    """Return the nodes that each of several groups of GPUs is on, and those it pays for, of nodes of `size` GPUs.

    A group fills nodes of its own; what is left of all groups shares the others, and pays for them by its GPUs.
    """
    left = [count % size for count in gpus]
    bins = -(-sum(left) // size)
    return [(count // size + bool(rest), count // size + (bins * rest / sum(left) if rest else 0.0))
            for count, rest in zip(gpus, left, strict=True)]


def is_always(offer: RentalOffer) -> bool:
    """Say whether an offer is paid for at every hour."""
    return offer.how in ALWAYS or offer.commitment > 0


def _least(*limits: int | None) -> int | None:
    given = [limit for limit in limits if limit is not None]
    return min(given) if given else None
