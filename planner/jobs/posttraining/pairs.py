"""Trainer and rollouts on nodes of two kinds: each pair of counts is one offer, at the mean price of its nodes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product

from planner.jobs.market import Market
from planner.jobs.posttraining.options import ELSEWHERE
from planner.money.rent import RentalOffer

TRAINING = (1, 2, 4, 8)
"""Nodes that train."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Nodes of a candidate that train, and of another that draw answers."""

    trainer: int
    rollouts: int
    training: int
    drawing: int

    @property
    def nodes(self) -> int:
        """All nodes."""
        return self.training + self.drawing


def paired(market: Market, trainers: Collection[str], rollouts: Collection[str]) -> tuple[Market, dict[int, Pair]]:
    """Return the market whose offers are pairs of one provider, with the pair of each of its new candidates.

    trainers, rollouts: names of node types. A pair has the trainer's hardware as its candidate.
    """
    made, offers, candidates = dict[int, Pair](), list[RentalOffer](), list(market.candidates)
    best: dict[tuple[str, str], tuple[float, RentalOffer, RentalOffer]] = {}
    for one, other in product(market.every_offer, repeat=2):
        names = market.candidates[one.candidate].node.name, market.candidates[other.candidate].node.name
        if one.provider != other.provider or one.estate or other.estate or names[0] not in trainers \
                or names[1] not in rollouts:
            continue
        price = one.usd_per_node_hour + other.usd_per_node_hour
        if names not in best or price < best[names][0]:
            best[names] = price, one, other
    for (_, one, other), training, drawing in product(best.values(), TRAINING, ELSEWHERE):
        if (one.nodes or training) < training or (other.nodes or drawing) < drawing:
            continue
        pair = Pair(one.candidate, other.candidate, training, drawing)
        mean = (training * one.usd_per_node_hour + drawing * other.usd_per_node_hour) / pair.nodes
        offers.append(replace(
            one, candidate=len(candidates), usd_per_node_hour=mean, nodes=pair.nodes,
            instance=f"{training} x {one.instance} and {drawing} x {other.instance}",
            commitment=max(one.commitment, other.commitment), as_of=min(one.as_of, other.as_of),
            node_hours_per_reclaim=min(one.node_hours_per_reclaim, other.node_hours_per_reclaim),
            is_old=one.is_old or other.is_old))
        made[len(candidates)] = pair
        candidates.append(market.candidates[one.candidate])
    return replace(market, candidates=tuple(candidates), offers=tuple(offers), every_offer=tuple(offers)), made
