"""Which offers may be rented for a question, and the hardware they bring."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.catalog.price import Offer
from planner.layouts.candidate import Candidate
from planner.scenario.limits import Rent


@dataclass(frozen=True, slots=True)
class RentalOffer:
    """One offer of a candidate: what a whole node costs per hour, and where the price comes from."""

    provider: str
    instance: str
    region: str
    term: str
    candidate: int
    usd_per_node_hour: float
    source: str
    as_of: str
    kind: str

    @property
    def label(self) -> str:
        """Provider, instance and region, as plans name an offer."""
        return f"{self.provider} {self.instance} ({self.region}, {self.term})"


def candidates_with_offers(nodes: list[str], rent: Rent, catalog: Catalog) -> tuple[list[Candidate], list[RentalOffer],
                                                                                    list[str]]:
    """Return the candidates that can be rented, their offers, and the nodes that nobody offers.

    Offers of one node type that bring the same fabric and NICs share a candidate.
    """
    candidates: list[Candidate] = []
    offers: list[RentalOffer] = []
    without: list[str] = []
    for name in nodes:
        found = False
        for prices in catalog.price_lists:
            if rent.providers and prices.name not in rent.providers:
                continue
            for offer in prices.offers:
                if not _admits(rent, offer) or catalog.node(offer.node).name != name:
                    continue
                found = True
                candidate = _candidate(offer, catalog)
                if candidate not in candidates:
                    candidates.append(candidate)
                offers.append(RentalOffer(prices.name, offer.instance, offer.region, offer.term,
                                          candidates.index(candidate), offer.price, offer.source or prices.source,
                                          offer.as_of or prices.as_of, offer.kind or prices.kind))
        if not found:
            without.append(name)
    return candidates, offers, without


def _admits(rent: Rent, offer: Offer) -> bool:
    return offer.term in rent.terms and (not rent.regions or offer.region in rent.regions)


def _candidate(offer: Offer, catalog: Catalog) -> Candidate:
    node = catalog.node(offer.node)
    return Candidate(node=node, gpu=catalog.gpu(node.gpu), nics=offer.nics or node.nics,
                     scaleup=catalog.fabric(node.scaleup) if node.scaleup else None,
                     fabric=catalog.fabric(offer.fabric or node.fabric), clustered=offer.cluster)


def usual_candidate(node: Node, catalog: Catalog) -> Candidate:
    """Return a node type with its usual NICs and fabric, as its owner would have it."""
    return Candidate(node=node, gpu=catalog.gpu(node.gpu), nics=node.nics, fabric=catalog.fabric(node.fabric),
                     scaleup=catalog.fabric(node.scaleup) if node.scaleup else None)


def cheapest_per_candidate(offers: list[RentalOffer]) -> list[RentalOffer]:
    """Return the cheapest offer of each candidate: a dearer one of the same hardware can never win."""
    best: dict[int, RentalOffer] = {}
    for offer in offers:
        kept = best.get(offer.candidate)
        if kept is None or (offer.usd_per_node_hour, offer.label) < (kept.usd_per_node_hour, kept.label):
            best[offer.candidate] = offer
    return [best[key] for key in sorted(best)]
