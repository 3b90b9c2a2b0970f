"""The pools of a portfolio: where nodes come from, from when on, and at what price, as integers for the fleet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.market import Market, market_of
from planner.jobs.purchases import MOST_BOUGHT, delivered, purchases
from planner.layouts.candidate import Candidate
from planner.money.rent import RentalOffer
from planner.scenario.horizon import Horizon
from planner.scenario.portfolio import Portfolio
from planner.scenario.portfolio_supply import Owned
from planner.solver.fleet.schedule import HOUR_SECONDS, Lot, Pool
from planner.solver.quantize import price
from planner.units import DAY

Sourced: TypeAlias = Literal["own", "buy", "reserve", "rent", "spot"]
MOST_STARTS = 13
"""Dates at which nodes may be delivered or reserved, evenly over the horizon: about one a month of a year; and as many
with which jobs are released or services begin.
"""


@dataclass(frozen=True, slots=True)
class Supplier:
    """One pool: an offer, how nodes of it are had, and what it is to the solver."""

    how: Sourced
    offer: RentalOffer
    """Its candidate is a number of the market of distinct hardware."""
    candidate: Candidate
    pool: Pool
    name: str

    @property
    def node(self) -> str:
        """The node type."""
        return self.candidate.node.name

    @property
    def is_rented(self) -> bool:
        """Whether a quota of the node type counts it."""
        return self.how in ("reserve", "rent", "spot")

    @property
    def most(self) -> int | None:
        """The most nodes it ever has; none where they are taken as needed."""
        if self.pool.is_endless:
            return None
        return max(self.pool.capacity or (0,)) + sum(lot.most for lot in self.pool.lots)


def suppliers_of(portfolio: Portfolio, catalog: Catalog) -> tuple[Market, list[Supplier]]:
    """Return the distinct hardware that is at hand, and all pools of it. Raises InputError where there is none."""
    market = _in_time(market_of(portfolio.hardware.candidates, portfolio.sourcing.undated, catalog), portfolio)
    kinds: list[tuple[Candidate, float]] = []
    numbered: list[RentalOffer] = []
    for offer in market.every_offer:
        kind = market.candidates[offer.candidate], offer.node_hours_per_reclaim
        if kind not in kinds:
            kinds.append(kind)
        numbered.append(replace(offer, candidate=kinds.index(kind)))
    candidates = tuple(candidate for candidate, _ in kinds)
    suppliers = [_supplier(offer, candidates[offer.candidate], portfolio)
                 for offer in _cheapest(numbered)]
    # columns are searched once for each kind of hardware, whoever offers it
    most = {at: _most([supplier for supplier in suppliers if supplier.offer.candidate == at], portfolio)
            for at in range(len(kinds))}
    offers = tuple(replace(next(supplier.offer for supplier in suppliers if supplier.offer.candidate == at),
                           nodes=most[at],
                           commitment=0.0, estate=None) for at in range(len(kinds)))
    return replace(market, candidates=candidates, offers=offers, every_offer=tuple(numbered)), suppliers


def _in_time(market: Market, portfolio: Portfolio) -> Market:
    """Return the market without purchases where none is delivered within the horizon. Raises InputError where nothing
    else is there.
    """
    if delivered(portfolio) < portfolio.horizon.periods or not any(offer.estate for offer in market.every_offer):
        return market
    offers, buy = tuple(offer for offer in market.every_offer if offer.estate is None), portfolio.sourcing.buy
    assert buy is not None
    said = (f"what is bought is there after {(buy.delivery or 0) / DAY:g} d (sourcing.buy.delivery), and the horizon "
            f"ends after {portfolio.horizon.length / DAY:g} d")
    if not offers:
        raise InputError(f"{said}, so that there is nothing to run on; rent too, or plan longer")
    return replace(market, every_offer=offers, notes=(*market.notes, f"{said}, so that nothing is bought"))


def _cheapest(offers: Iterable[RentalOffer]) -> list[RentalOffer]:
    """Return of each hardware and way to pay the cheapest: a dearer one can never win."""
    best: dict[tuple[int, str, float], RentalOffer] = {}
    for offer in sorted(offers, key=lambda quote: (quote.usd_per_node_hour, quote.label)):
        best.setdefault((offer.candidate, offer.how, offer.commitment), offer)
    return [best[key] for key in sorted(best)]


def _most(suppliers: Sequence[Supplier], portfolio: Portfolio) -> int | None:
    """Return the most nodes that one job may have of some of the pools of one kind of hardware."""
    quota = portfolio.sourcing.rent.quota if portfolio.sourcing.rent else {}
    counts = [min([count for count in (supplier.most, quota.get(supplier.node) if supplier.is_rented else None)
                   if count is not None], default=None) for supplier in suppliers]
    return None if None in counts else max(count for count in counts if count is not None)


def _supplier(offer: RentalOffer, candidate: Candidate, portfolio: Portfolio) -> Supplier:
    horizon, sourcing = portfolio.horizon, portfolio.sourcing
    watts, gpus = math.ceil(candidate.node.power.load), candidate.node.gpus
    node, each = candidate.node.name, price(offer.usd_per_node_hour)
    if offer.how == "owned":
        pool = Pool(_owned(horizon, [owned for owned in sourcing.own if owned.node == node]), each, (), watts, gpus)
        return Supplier("own", offer, candidate, pool, f"own {node}")
    if offer.estate is not None:
        pool = Pool(None, 0, purchases(portfolio, offer.estate, starts(portfolio, delivered(portfolio))), watts,
                    gpus)
        return Supplier("buy", offer, candidate, pool, f"buy {node}")
    if offer.commitment > horizon.period:
        pool = Pool(None, 0, tuple(_reservations(portfolio, offer, node, each)), watts, gpus)
        return Supplier("reserve", offer, candidate, pool, f"reserve {node} {offer.provider} {offer.term}")
    how: Sourced = "spot" if offer.term == "spot" else "rent"
    return Supplier(how, offer, candidate, Pool(None, each, (), watts, gpus),
                    f"{how} {node} {offer.provider} {offer.instance}")


def starts(portfolio: Portfolio, first: int) -> list[int]:
    """Return the periods, from `first` on, with which something that lasts may begin: evenly, and with jobs."""
    horizon = portfolio.horizon
    even = range(first, horizon.periods, max(1, -(-horizon.periods // MOST_STARTS)))
    begin = [(moment - horizon.start).total_seconds() / horizon.period for job in portfolio.jobs
             for moment in (job.release, job.from_) if moment is not None]
    # a run starts with a period, a service within one
    asked = sorted({period for at in begin for period in (math.floor(at), math.ceil(at))
                    if first <= period < horizon.periods})
    return sorted({*even, *asked[::max(1, -(-len(asked) // MOST_STARTS))]})


def _owned(horizon: Horizon, owned: Sequence[Owned]) -> tuple[int, ...]:
    """Return the nodes that work in each period, all of it."""
    nodes = []
    for period in range(horizon.periods):
        begin = horizon.start + timedelta(seconds=period * horizon.period)
        nodes.append(sum(stock.nodes for stock in owned
                         if _works(stock, begin, begin + timedelta(seconds=horizon.period))))
    return tuple(nodes)


def _works(owned: Owned, begin: datetime, end: datetime) -> bool:
    if (owned.from_ is not None and begin < owned.from_) or (owned.until is not None and end > owned.until):
        return False
    return all(end <= first or begin >= last + timedelta(days=1) for first, last in owned.maintenance or ())


def _reservations(portfolio: Portfolio, offer: RentalOffer, node: str, each: int) -> list[Lot]:
    """Return reservations by the period of their start; all of the term is paid, also beyond the horizon."""
    horizon, rent = portfolio.horizon, portfolio.sourcing.rent
    length = math.ceil(offer.commitment / horizon.period)
    hours = round(length * horizon.period / HOUR_SECONDS)
    quota = rent.quota.get(node) if rent else None
    return [Lot(start, start + length, (each * hours,), quota or MOST_BOUGHT**2) for start in starts(portfolio, 0)]
