"""Rent or buy: hardware for some years without a word of its work, what it costs each way and where these cross."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from planner.answer.comparison import Comparison, Row
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.layouts.candidate import Candidate
from planner.money.purchase import YEAR_HOURS
from planner.money.rent import RentalOffer, candidates_with_offers
from planner.scenario.hardware_alone import HardwareQuestion
from planner.scenario.sites import site_of
from planner.units import DAY, YEAR

SLACK = 1e-9
"""Of a year, below which a commitment is not begun anew."""


@dataclass(frozen=True, slots=True)
class Having:
    """One way to have the nodes: its row, and the offer behind it."""

    row: Row
    offer: RentalOffer
    nodes: int


@dataclass(frozen=True, slots=True)
class Havings:
    """All ways, the cheapest first."""

    ways: tuple[Having, ...]
    years: float
    use: float
    """Share of time in use."""
    unsold: tuple[str, ...]
    """Node types that nobody states a price to buy of."""

    @property
    def comparison(self) -> Comparison:
        """The rows as `planner compare --json` has them."""
        return Comparison(rows=tuple(way.row for way in self.ways))

    def cheapest(self, kind: str, gpu: str) -> Having | None:
        """Return the cheapest way of a kind to have a GPU."""
        return next((way for way in self.ways if (way.row.kind, way.row.gpu) == (kind, gpu)
                     and way.row.cost_usd is not None), None)


def rent_or_buy(question: HardwareQuestion, catalog: Catalog) -> Havings:
    """Return what each way to have the hardware costs. Raises PlannerError where there is none."""
    buy, site = question.sourcing.buy, site_of(question.sourcing, catalog)
    assert buy is not None
    names = list(question.hardware.candidates)
    candidates, offers, without = candidates_with_offers(names, question.sourcing, catalog)
    years = buy.years or (site.ownership.life / YEAR if site.ownership else 1.0)
    most = max((candidate.node.gpus for candidate in candidates), default=1)
    ways = [_way(offer, candidates[offer.candidate], nodes, years, buy.utilization) for offer in offers
            if (nodes := _count(question, candidates[offer.candidate], most)) is not None]
    if not ways:
        raise InputError(f"nothing to rent or buy: no offer of {', '.join(without or names)} has these terms, "
                         "providers and regions and makes up so many GPUs, and no price to buy is known")
    found = Havings(tuple(sorted(ways, key=lambda way: way.row.rank("cost"))), years, buy.utilization, tuple(
        name for name in names if catalog.purchase(name) is None))
    return replace(found, ways=tuple(_crossing(way, found) for way in found.ways))


def _count(question: HardwareQuestion, candidate: Candidate, most: int) -> int | None:
    """Return the nodes that have the GPUs asked for, else those of the largest node; none where these fill no nodes."""
    limits, each = question.limits, candidate.node.gpus
    gpus = limits.gpus or limits.max_gpus or most
    return limits.max_nodes or (gpus // each if gpus % each == 0 else None)


def _way(offer: RentalOffer, candidate: Candidate, nodes: int, years: float, use: float) -> Having:
    node, estate = candidate.node, offer.estate
    row = Row(node=node.name, gpu=candidate.gpu.name, offer=offer.label, kind=offer.how, status="infeasible",
              note=offer.note)
    if why := _why_not(offer, candidate, nodes):
        return Having(row.model_copy(update={"why_not": why}), offer, nodes)
    gpus, hours = nodes * node.gpus, years * YEAR_HOURS
    load, idle = nodes * node.power.load, nodes * node.power.idle
    if estate is None:
        parts = {"electricity" if offer.how == "owned" else "rent": _rent(offer, nodes, years, use)}
    else:
        parts = {name: usd * years for name, usd in estate.yearly(nodes).items() if usd}
        load, idle = estate.watts(nodes, estate.capital(nodes).network)
    rests = 0.0 if offer.how == "rent" and not _lasts(offer) else 1 - use
    cost = sum(parts.values())
    return Having(row.model_copy(update={
        "status": "optimal", "gpus": gpus, "duration_days": years * YEAR / DAY, "cost_usd": cost,
        "cost_parts": parts, "usd_per_gpu_hour": cost / (gpus * hours * use),
        "energy_kwh": (use * load + rests * idle) / 1000 * hours}), offer, nodes)


def _why_not(offer: RentalOffer, candidate: Candidate, nodes: int) -> str | None:
    """Return why an offer does not have so many nodes; none where it has."""
    if offer.how == "rent" and nodes > 1 and not candidate.clustered:
        return "single nodes without a fabric never form a cluster"
    if offer.nodes is not None and nodes > offer.nodes:
        return f"{offer.nodes} nodes at most"
    return None


def _lasts(offer: RentalOffer) -> bool:
    """Say whether nodes that are rented are paid for when they do nothing too."""
    return offer.commitment >= YEAR


def _rent(offer: RentalOffer, nodes: int, years: float, use: float) -> float:
    """Return what nodes cost while they are in use, or to the end of each commitment."""
    an_hour, term = nodes * offer.usd_per_node_hour, offer.commitment / YEAR
    return an_hour * YEAR_HOURS * (term * ceil(years / term - SLACK) if _lasts(offer) else years * use)


def _crossing(way: Having, found: Havings) -> Having:
    """Return a way with where buying crosses it; one that is bought, where it crosses the cheapest rent."""
    rented = way if way.row.kind == "rent" else found.cheapest("rent", way.row.gpu)
    bought = way if way.offer.estate is not None else found.cheapest("buy", way.row.gpu)
    estate = bought.offer.estate if bought else None
    if bought is None or estate is None or rented is None or None in (rented.row.cost_usd, bought.row.cost_usd):
        return way
    cost = rented.row.cost_usd or 0.0
    each_hour = cost / (found.years * YEAR_HOURS * found.use)
    # what is paid at rest too is crossed at every use or at none: electricity alone follows use
    less = sum(estate.yearly(bought.nodes).values()) * found.years < cost
    above = (0.0 if less else None) if _lasts(rented.offer) else estate.break_even_utilization(bought.nodes, each_hour)
    return replace(way, row=way.row.model_copy(update={
        "break_even_months": estate.break_even_months(bought.nodes, each_hour), "break_even_utilization": above}))

