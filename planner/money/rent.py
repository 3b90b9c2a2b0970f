"""Which offers may be rented for a question, and the hardware they bring."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.catalog.price import Offer
from planner.layouts.candidate import Candidate
from planner.scenario.limits import Rent, Sourcing


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
    nodes: int | None = None
    """How many there are; none where the offer has no end."""
    commitment: float = 0.0
    """Seconds paid for at least."""
    node_hours_per_reclaim: float = math.inf
    """Until the provider takes a node back."""

    @property
    def label(self) -> str:
        """Provider, instance and region, as plans name an offer."""
        return f"{self.provider} {self.instance} ({self.region}, {self.term})" if self.term else self.instance


def candidates_with_offers(nodes: list[str], sourcing: Sourcing,
                           catalog: Catalog) -> tuple[list[Candidate], list[RentalOffer], list[str]]:
    """Return the candidates that are owned or can be rented, their offers, and the nodes without either.

    Offers of one node type that bring the same fabric and NICs, commit for as long and are taken back as often share a
    candidate; owned nodes are one of their own.
    """
    rent = sourcing.rent
    candidates: list[Candidate] = []
    offers: list[RentalOffer] = []
    without: list[str] = []
    rented: list[tuple[int, tuple[Candidate, float, float]]] = []
    for name in nodes:
        found = name in sourcing.own
        if found:
            candidates.append(usual_candidate(catalog.node(name), catalog))
            offers.append(_owned(catalog.node(name), sourcing, len(candidates) - 1, catalog))
        for prices in catalog.price_lists if rent else ():
            assert rent is not None
            if rent.providers and prices.name not in rent.providers:
                continue
            for offer in prices.offers:
                if not _admits(rent, offer) or catalog.node(offer.node).name != name:
                    continue
                found = True
                reclaims = _reclaims(offer, catalog)
                terms = _candidate(offer, catalog), offer.commitment, reclaims
                at = next((i for i, known in rented if known == terms), len(candidates))
                if at == len(candidates):
                    rented.append((at, terms))
                    candidates.append(terms[0])
                offers.append(RentalOffer(prices.name, offer.instance, offer.region, offer.term,
                                          at, offer.price, offer.source or prices.source,
                                          offer.as_of or prices.as_of, offer.kind or prices.kind,
                                          commitment=offer.commitment, node_hours_per_reclaim=reclaims))
        if not found:
            without.append(name)
    return candidates, offers, without


def _owned(node: Node, sourcing: Sourcing, candidate: int, catalog: Catalog) -> RentalOffer:
    """Return owned nodes as an offer at what their electricity costs under load."""
    site = catalog.site(sourcing.site)
    usd = node.power.load / 1000 * site.pue * site.electricity
    count = sourcing.own[node.name]
    return RentalOffer("owned", f"{count} owned {node.name}, electricity of {site.name}", "", "", candidate,
                       round(usd, 6), site.source, site.as_of, site.kind, count)


def _reclaims(offer: Offer, catalog: Catalog) -> float:
    """Return the node-hours until a node of an offer is taken back."""
    if offer.term != "spot":
        return math.inf
    return offer.node_hours_per_reclaim or catalog.reliability.node_hours_per_reclaim


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
