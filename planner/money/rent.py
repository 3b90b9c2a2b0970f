"""Which offers may be rented for a question, and the hardware they bring."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal, get_args

from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.catalog.price import Offer, PriceList, Term
from planner.errors import InputError, MissingFact
from planner.layouts.candidate import Candidate
from planner.money.fabric_bill import parts_of
from planner.money.purchase import Estate
from planner.money.rentable import is_part, rentable_of
from planner.scenario.limits import Sourcing
from planner.scenario.sites import power_of, site_of
from planner.units import YEAR

MOST_BOUGHT = 131_072
"""GPUs that are looked at when bought."""


OWNED = "owned"


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
    estate: Estate | None = None
    """Of nodes that are bought, whose price depends on their number."""
    is_old: bool = False
    """Whether the price is older than what the question asks to be told of."""
    assumed: bool = False
    """Whether it stands for nodes that the user is taken to own, as nobody offers them."""
    note: str | None = None
    """What the user should know of it."""

    @property
    def how(self) -> Literal["rent", "buy", "owned"]:
        """How the nodes are had."""
        if self.estate is not None:
            return "buy"
        return "owned" if self.provider == OWNED else "rent"

    @property
    def label(self) -> str:
        """Provider, instance and region, as plans name an offer."""
        old = f", old price of {self.as_of}" if self.is_old else ""
        if self.term:
            return f"{self.provider} {self.instance} ({self.region}, {self.term}{old})"
        return f"{self.instance.removesuffix(')')}{old})" if old and self.estate else f"{self.instance}{old}"


def offer_named(label: str) -> tuple[str, str, str, str] | None:
    """Return provider, instance, region and terms of a rented offer by its label; none where nobody rents it out."""
    name, _, where = label.removesuffix(")").rpartition(" (")
    provider, _, instance = name.partition(" ")
    region, _, term = where.partition(", ")
    term = term.partition(", ")[0]
    return (provider, instance, region, term) if instance and term in get_args(Term) else None


def candidates_with_offers(nodes: list[str], sourcing: Sourcing, catalog: Catalog,
                           ) -> tuple[list[Candidate], list[RentalOffer], list[str]]:
    """Return the candidates that are owned, bought or rented, their offers, and the nodes without any.

    Offers of one node type that bring the same host, fabric and NICs, commit for as long and are taken back as often
    share a candidate; owned nodes are one of their own, as are bought ones.
    """
    rentable = rentable_of(sourcing.rent, nodes, catalog)
    candidates: list[Candidate] = []
    offers: list[RentalOffer] = []
    without: list[str] = []
    for name in nodes:
        rented: list[tuple[int, tuple[Candidate, float, float]]] = []
        is_offered = name in sourcing.own
        if is_offered:
            candidates.append(usual_candidate(catalog.node(name), catalog))
            offers.append(_owned(catalog.node(name), sourcing, len(candidates) - 1, catalog, sourcing.own[name]))
        bought = _bought(catalog.node(name), sourcing, len(candidates), catalog)
        if bought is not None and bought.estate is not None:
            is_offered = True
            candidates.append(bought.estate.candidate)
            offers.append(bought)
        for prices, offer in rentable.get(name, ()):
            is_offered = True
            reclaims = _reclaims(offer, catalog)
            terms = _candidate(offer, catalog), offer.commitment(prices.minimum), reclaims
            at = next((i for i, known in rented if known == terms), len(candidates))
            if at == len(candidates):
                rented.append((at, terms))
                candidates.append(terms[0])
            offers.append(RentalOffer(prices.name, offer.instance, offer.region, offer.term,
                                      at, offer.price, offer.source or prices.source,
                                      offer.as_of or prices.as_of, offer.kind or prices.kind,
                                      commitment=offer.commitment(prices.minimum), node_hours_per_reclaim=reclaims,
                                      note=_of_a_part(name, catalog)))
        if not is_offered:
            without.append(name)
    return candidates, _marked(offers, sourcing.price_age), without


def _of_a_part(name: str, catalog: Catalog) -> str | None:
    """Return what the user should know of a node type that is a part of what is rented; nothing of any other."""
    node = catalog.node(name)
    return (f"nobody rents out {node.gpus} x {node.gpu} in one machine: a larger one is rented and paid for whole, and "
            f"its other GPUs stay idle; of your own: --own {node.gpus}x{node.gpu}") if is_part(name, catalog) else None


def taken_as_owned(nodes: Sequence[str], sourcing: Sourcing, catalog: Catalog, count: int | None
                   ) -> tuple[list[Candidate], list[RentalOffer]]:
    """Return nodes that nobody offers as the user's own, `count` of each, none for any number."""
    candidates = [usual_candidate(catalog.node(name), catalog) for name in nodes]
    hints: dict[str, list[str]] = {}
    for candidate in candidates:
        others = sorted({offer.term for prices in catalog.price_lists for offer in prices.offers
                         if catalog.node(offer.node).name == candidate.node.name})
        hints.setdefault(f" (offered with terms {', '.join(others)}: --terms)" if others else "", []).append(
            candidate.node.name)
    notes = {name: f"nobody offers {', '.join(names)} on-demand{hint}: taken as your own, at the price of its "
                   "electricity" for hint, names in hints.items() for name in names}
    return candidates, [replace(
        _owned(candidate.node, sourcing, at, catalog, count), assumed=True, note=notes[candidate.node.name],
        instance=f"your own {candidate.node.name}, {power_of(sourcing, catalog)}")
        for at, candidate in enumerate(candidates)]


def others_of(nodes: Sequence[str], sourcing: Sourcing, catalog: Catalog) -> str:
    """Return on which other terms the nodes are offered, in words; empty where they are not."""
    asked = sourcing.rent.terms if sourcing.rent else ()
    every = [(prices.name, offer, prices.sells_in(offer, sourcing.rent.regions if sourcing.rent else ()))
             for prices in catalog.price_lists for offer in prices.offers if catalog.node(offer.node).name in nodes]
    wanted = sourcing.rent.providers if sourcing.rent else ()
    here = {offer.term for name, offer, inside in every if inside and (not wanted or name in wanted)}
    elsewhere = sorted({f"{name} ({offer.region})" for name, offer, _ in every if offer.term in asked})
    terms = sorted(here - set(asked))
    told = [f"offered with terms {', '.join(terms)}"] if terms else []
    told += [f"on these terms by {', '.join(elsewhere)}"] if elsewhere else []
    return "".join(f"; {each}" for each in told)


NAMED = 4
"""Nodes that are named of many left out."""


def notes_of(offers: Sequence[RentalOffer], without: Sequence[str], sourcing: Sourcing) -> tuple[str, ...]:
    """Return what the user should know: of single offers, and of the nodes `without` any."""
    why = f"no offer has terms {', '.join(sourcing.rent.terms)}" if sourcing.rent else "nothing is rented"
    return (*dict.fromkeys(offer.note for offer in offers if offer.note),
            *([f"{_several(without)} left out: {why}, and none is owned or bought"] if without
              else []))


def _several(names: Sequence[str]) -> str:
    """Return names with their verb, the first few of many."""
    if len(names) == 1:
        return f"{names[0]} is"
    more = len(names) - NAMED
    return f"{', '.join(names[:NAMED])} and {more} more are" if more > 1 else (
        f"{', '.join(names[:-1])} and {names[-1]} are")


def old_prices(offers: Sequence[RentalOffer], labels: Collection[str], catalog: Catalog) -> list[str]:
    """Return of the rented offers named by their labels those whose price is a year older than the catalog's newest."""
    newest = max((offer.as_of or prices.as_of for prices in catalog.price_lists for offer in prices.offers), default="")
    if not newest[:4].isdecimal():
        return []
    year = f"{int(newest[:4]) - 1}{newest[4:]}"
    # a month or a year counts from its end
    return [f"the price of {offer.label} is of {offer.as_of}, over a year older than the newest here ({newest}): ask "
            "for a quote" for offer in offers
            if offer.how == "rent" and offer.label in labels and f"{offer.as_of}-99" < year]


def _marked(offers: list[RentalOffer], age: float | None) -> list[RentalOffer]:
    """Return the offers with those marked whose price is more than `age` seconds old."""
    if age is None:
        return offers
    oldest = (date.today() - timedelta(seconds=age)).isoformat()
    # a month or a year counts from its end
    return [replace(offer, is_old=f"{offer.as_of}-99" < oldest) for offer in offers]


def offered(label: str, catalog: Catalog) -> tuple[Candidate, PriceList, Offer] | None:
    """Return the rented offer that a plan names, with its hardware; none where the catalog has no such offer."""
    for prices in catalog.price_lists:
        for offer in prices.offers:
            if label.startswith(f"{prices.name} {offer.instance} ({offer.region}, {offer.term}"):
                return _candidate(offer, catalog), prices, offer
    return None


def _owned(node: Node, sourcing: Sourcing, candidate: int, catalog: Catalog, count: int | None) -> RentalOffer:
    """Return owned nodes as an offer at what their electricity costs under load."""
    site = site_of(sourcing, catalog)
    usd = node.power.load / 1000 * site.pue * site.electricity
    return RentalOffer(OWNED, f"{count} owned {node.name}, {power_of(sourcing, catalog)}", "", "", candidate,
                       round(usd, 6), site.source, site.as_of, site.kind, count)


def _bought(node: Node, sourcing: Sourcing, at: int, catalog: Catalog) -> RentalOffer | None:
    """Return nodes bought for the site at what an hour of use of one costs; none where none are, or without a price.

    Raises MissingFact where the site does not say what owning takes.
    """
    price = catalog.purchase(node.name) if sourcing.buy else None
    if price is None or sourcing.buy is None:
        return None
    site, candidate, limit = site_of(sourcing, catalog), usual_candidate(node, catalog), MOST_BOUGHT // node.gpus
    if site.ownership is None:
        raise MissingFact(site.name, "ownership")
    terms, years = site.ownership, sourcing.buy.years
    if years is not None:
        terms = terms.model_copy(update={"life": years * YEAR})
    estate = Estate(candidate, price, site, terms, None, 0.0, sourcing.buy.utilization)
    estate, note = _with_network(estate, catalog, limit)
    label = f"purchase ({site.name}, kept {estate.years:g} years, {100 * estate.utilization:g}% in use)"
    return RentalOffer("bought", label, "", "", at, estate(1) / 1e6, price.source, price.as_of, price.kind,
                       estate.most_nodes(limit), estate=estate, note=note)


def with_storage(offer: RentalOffer, tokens: int, checkpoint_bytes: float) -> RentalOffer:
    """Return an offer with storage for a job's data and checkpoints, where nodes are bought."""
    if offer.estate is None:
        return offer
    held = offer.estate.terms.storage
    stored = tokens * held.bytes_per_token + held.checkpoints * checkpoint_bytes
    estate = replace(offer.estate, stored_bytes=stored)
    return replace(offer, estate=estate, usd_per_node_hour=estate(1) / 1e6)


def _with_network(estate: Estate, catalog: Catalog, limit: int) -> tuple[Estate, str | None]:
    """Return nodes with what the network between them is made of; without, and why, where it cannot be had."""
    node, candidate = estate.node, estate.candidate
    try:
        parts = parts_of(candidate.fabric, catalog, with_nics=not estate.purchase.with_nics)
        joined = replace(estate, parts=parts)
        most = joined.most_nodes(limit)
        for count in {min(2, most), most}:
            joined.capital(count)
    except (MissingFact, InputError) as error:
        return estate, f"{node.name} can be bought one at a time only: {error}"
    return joined, None


def _reclaims(offer: Offer, catalog: Catalog) -> float:
    """Return the node-hours until a node of an offer is taken back."""
    if offer.term != "spot":
        return math.inf
    return offer.node_hours_per_reclaim or catalog.reliability.node_hours_per_reclaim


def _candidate(offer: Offer, catalog: Catalog) -> Candidate:
    node = catalog.node(offer.node)
    return Candidate(node=offer.host.of(node) if offer.host else node, gpu=catalog.gpu(node.gpu),
                     nics=offer.nics or node.nics,
                     scaleup=catalog.fabric(node.scaleup) if node.scaleup else None,
                     fabric=catalog.fabric(offer.fabric or node.fabric), clustered=offer.cluster)


def usual_candidate(node: Node, catalog: Catalog) -> Candidate:
    """Return a node type with its usual NICs and fabric, as its owner would have it."""
    return Candidate(node=node, gpu=catalog.gpu(node.gpu), nics=node.nics, fabric=catalog.fabric(node.fabric),
                     scaleup=catalog.fabric(node.scaleup) if node.scaleup else None)
