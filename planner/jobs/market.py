"""The market of a question: hardware that is owned, bought or offered, and what an hour of it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.layouts.candidate import Candidate
from planner.money.rent import (
    RentalOffer,
    candidates_with_offers,
    notes_of,
    others_of,
    taken_as_owned,
    usual_candidate,
)
from planner.scenario.default import Default
from planner.scenario.limits import Rent, Sourcing
from planner.units import DAY

ALWAYS = frozenset({"buy", "owned"})


@dataclass(frozen=True, slots=True)
class Market:
    """Hardware candidates, and the offers of them; an offer names its candidate by number."""

    candidates: tuple[Candidate, ...]
    offers: tuple[RentalOffer, ...] = ()
    """What may win: the cheapest of each candidate, of each way to pay where the load changes over the day."""
    every_offer: tuple[RentalOffer, ...] = ()
    """All that the question admits."""
    dropped: tuple[str, ...] = ()
    """Node types that nobody offers on these terms, and that are neither owned nor bought."""
    notes: tuple[str, ...] = ()
    """What the user should know of the offers."""
    of_use: tuple[int, ...] = ()
    """Candidates that are looked at where offers are not asked about; empty for all."""

    def only(self, offer: RentalOffer) -> Market:
        """Return the market in which nothing but one offer is to be had."""
        return replace(self, offers=(offer,))

    def below(self, usd_per_hour: float) -> Market | None:
        """Return the market of what one node of costs less, or may cost less where many are bought; none of nothing."""
        offers = tuple(offer for offer in self.offers
                       if offer.estate is not None or offer.usd_per_node_hour < usd_per_hour)
        return replace(self, offers=offers, of_use=tuple(sorted({offer.candidate for offer in offers}))
                       ) if offers else None

    def up_to_each_size(self) -> Iterator[Market]:
        """Yield, where one machine of several sizes is taken as the user's own, the markets of all but the largest."""
        sizes = {offer: self.candidates[offer.candidate].node.gpus for offer in self.offers
                 if offer.assumed and offer.nodes == 1}
        for size in sorted(set(sizes.values()))[:-1]:
            yield replace(self, offers=tuple(offer for offer, gpus in sizes.items() if gpus <= size))

    @property
    def at_hand(self) -> tuple[int, ...]:
        """Numbers of the candidates that some offer has; all of use where offers are not asked about."""
        every = self.of_use or tuple(range(len(self.candidates)))
        return tuple(sorted({offer.candidate for offer in self.offers})) or every

    @property
    def offered(self) -> tuple[Candidate, ...]:
        """The candidates that some offer has."""
        return tuple(self.candidates[at] for at in self.at_hand)


def market_of(nodes: Iterable[str], sourcing: Sourcing, catalog: Catalog, *, daily: bool = False,
              by_provider: bool = False, machines: int | None = None) -> Market:
    """Return the candidates of these node types with their offers.

    daily: the load changes over the day, so that nodes paid by the hour compete with those always paid for.
    by_provider: a fleet has one provider, so that the offers of each compete. Nodes that nobody offers at all are left
    out; where there are no others, they are taken as the user's own, `machines` of each.
    Raises InputError where no candidate has an offer of those that are asked for.
    """
    # sorted, so that the order in which candidates are listed decides nothing
    candidates, offers, dropped = candidates_with_offers(sorted(set(nodes)), sourcing, catalog)
    terms = ", ".join(sourcing.rent.terms) if sourcing.rent else "none"
    if not candidates and sourcing.rent is None:
        raise InputError(f"no candidate is at hand: none of {', '.join(dropped)} is under sourcing.own, or bought at a "
                         "price of the catalog, and nothing is rented where sourcing.rent is not given")
    if not candidates and sourcing.rent == Rent():
        candidates, offers = taken_as_owned(dropped, sourcing, catalog, machines)
        dropped = []
    if not candidates:
        raise InputError(f"no candidate has a usable offer: {', '.join(dropped)} with terms {terms}"
                         f"{others_of(dropped, sourcing, catalog)}")
    competing = cheapest(offers, daily=daily, by_provider=by_provider)
    notes = notes_of(offers, dropped, sourcing)
    return Market(tuple(candidates), tuple(competing), tuple(offers), tuple(dropped), notes)


def of_nobody(market: Market, sourcing: Sourcing, catalog: Catalog) -> Sequence[Market]:
    """Return the market of the GPUs that are left out of one as nobody rents them out on any terms, which a plan of
    them alone takes as the user's own; no market where there are none.
    """
    offered = {catalog.node(offer.node).gpu for prices in catalog.price_lists for offer in prices.offers}
    nobodys = [name for name in market.dropped if catalog.node(name).gpu not in offered]
    return [market_of(nobodys, sourcing, catalog)] if nobodys and sourcing.rent == Rent() else []


def sold(nodes: Iterable[str], sourcing: Sourcing, catalog: Catalog) -> list[str]:
    """Return of node types those that the named providers and regions sell; all where any may be.

    Raises InputError where they sell none of them.
    """
    rent = sourcing.rent
    if rent is None or not (rent.providers or rent.regions) or sourcing.own or sourcing.buy:
        return list(nodes)
    return [candidate.node.name for candidate in market_of(nodes, sourcing, catalog).candidates]


def unpriced(nodes: Iterable[str], catalog: Catalog) -> Market:
    """Return the market of a question without money: of every GPU the node type with most of them.

    A model that fewer GPUs hold uses a part of the node.
    """
    largest: dict[str, Node] = {}
    for node in map(catalog.node, sorted(set(nodes))):
        kept = largest.get(node.gpu)
        if kept is None or (node.gpus, kept.name) > (kept.gpus, node.name):
            largest[node.gpu] = node
    return Market(tuple(usual_candidate(node, catalog) for node in sorted(largest.values(),
                                                                          key=lambda each: each.name)))


def is_always(offer: RentalOffer) -> bool:
    """Say whether an offer is paid for at every hour."""
    return offer.how in ALWAYS or offer.commitment >= DAY


def cheapest(offers: Sequence[RentalOffer], *, daily: bool = False, by_provider: bool = False) -> list[RentalOffer]:
    """Return the cheapest offer of each candidate: a dearer one that pays the same way can never win."""
    best: dict[tuple[int, bool, str], RentalOffer] = {}
    for offer in sorted(offers, key=lambda quote: (quote.usd_per_node_hour, quote.label)):
        best.setdefault((offer.candidate, daily and is_always(offer), offer.provider if by_provider else ""), offer)
    return [best[key] for key in sorted(best)]


def price_dates(dates: Iterable[str]) -> Default:
    """Return how old prices are, to the month: `2026-05 to 2026-11`. `dates` are years, months or days."""
    months = sorted({date[:7] for date in dates})
    return Default(name="prices", value=" to ".join(dict.fromkeys((months[0], months[-1]))) if months else "none",
                   why="as of these months")
