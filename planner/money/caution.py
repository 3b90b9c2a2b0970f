"""Offers to ask about before they are counted on: far below what others take, many nodes for a short time, spot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from statistics import median

from planner.catalog.load import Catalog
from planner.catalog.price import Offer, PriceList
from planner.money.rent import offered
from planner.units import DAY, HOUR, show_seconds, show_usd

FEWEST = 2
"""On-demand offers of a GPU from which their median says something."""


def outlying(labels: Collection[str], catalog: Catalog) -> Iterator[str]:
    """Yield of the offers named by their labels those that cost far less than the same GPU does on demand."""
    found, on_demand = [*filter(None, (_offer(label, catalog) for label in dict.fromkeys(labels)))], _on_demand(catalog)
    for prices, offer in found:
        each, gpu = _per_gpu(offer, catalog), catalog.node(offer.node).gpu
        usual = on_demand.get(gpu, [])
        if len(usual) >= FEWEST and each < catalog.recipes.outlying * median(usual):
            yield (f"{each:,.2f} USD for an hour of {gpu} ({prices.name}, {offer.term}) is "
                   f"{each / median(usual):.0%} of {median(usual):,.2f} USD, the median of {len(usual)} on-demand "
                   f"offers: one line of {offer.source or prices.source}, {offer.as_of or prices.as_of}; ask before "
                   "you count on it")


def _on_demand(catalog: Catalog) -> dict[str, list[float]]:
    """Return USD for an hour of every GPU in the offers on demand."""
    prices: dict[str, list[float]] = defaultdict(list)
    for offer in (each for prices_of in catalog.price_lists for each in prices_of.offers):
        if offer.term == "on-demand":
            prices[catalog.node(offer.node).gpu].append(_per_gpu(offer, catalog))
    return prices


def _per_gpu(offer: Offer, catalog: Catalog) -> float:
    return offer.price / catalog.node(offer.node).gpus


def taken_back(rented: Iterable[tuple[str, int]], catalog: Catalog) -> Iterator[str]:
    """Yield of services on spot nodes how often these are taken back, and what the same nodes cost on demand.

    rented: labels of offers, each with its nodes.
    """
    for label, nodes in rented:
        found = _offer(label, catalog)
        if found is None or found[1].term != "spot":
            continue
        prices, offer = found
        own, usual = offer.node_hours_per_reclaim, catalog.reliability.node_hours_per_reclaim
        often = show_seconds((own or usual) * HOUR / nodes)
        known = "by its offer" if own else f"taken from {usual:,g} node-hours each, as its offer says nothing"
        steady = min((other.price for each in catalog.price_lists for other in each.offers
                      if other.node == offer.node and other.term == "on-demand"), default=None)
        instead = "" if steady is None else f"; on demand {offer.node} costs from {steady * nodes:,.2f} USD/h"
        yield (f"{prices.name} may take spot nodes back at any time: one of {nodes} about every {often} ({known}), and "
               f"its replicas answer nobody until another starts; --spare-nodes 1 keeps the targets meanwhile{instead}"
               if nodes > 1 else
               f"{prices.name} may take a spot node back at any time, about every {often} ({known}), and nobody is "
               f"answered until another starts; --spare-nodes 1 keeps the targets meanwhile, for "
               f"{offer.price:,.2f} USD/h more{instead}")


def at_once(rented: Iterable[tuple[str, int, float]], catalog: Catalog) -> Iterator[str]:
    """Yield where many nodes are rented on demand for less time than their provider lets so many for.

    rented: labels of offers, each with its nodes and the seconds that these are in use.
    """
    for label, nodes, seconds in rented:
        found = _offer(label, catalog)
        if found is None or found[1].term != "on-demand" or nodes < catalog.recipes.at_once:
            continue
        prices, offer = found
        lets = prices.reservation
        if seconds >= (lets.least if lets else DAY):
            continue
        seldom = f"{nodes} nodes at once for {show_seconds(seconds)} are seldom to be had on demand: "
        if lets is None:
            yield f"{seldom}ask {prices.name} for how long it lets them; fewer GPUs for longer cost about the same"
            continue
        most = f", {lets.nodes} nodes each" if lets.nodes else ""
        yield (f"{seldom}{prices.name} lets them as a {lets.called} of {show_seconds(lets.least)} or more{most}, for "
               f"{show_usd(nodes * offer.price * lets.least / HOUR)} at this price; fewer GPUs for longer cost about "
               "the same")


def _offer(label: str, catalog: Catalog) -> tuple[PriceList, Offer] | None:
    found = offered(label, catalog)
    return None if found is None else (found[1], found[2])
