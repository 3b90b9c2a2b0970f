"""What a question is in the solver's integers: limits and prices; and what is read back of nodes that are shared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.answer.placement import Commitment
from planner.jobs.columns import Run
from planner.jobs.job import Terms
from planner.money.rent import RentalOffer
from planner.scenario.limits import Limits
from planner.solver.fleet.problem import FleetLimits as Limited
from planner.solver.fleet.problem import FleetOffer
from planner.solver.quantize import DURATION_QUANTUM, PRICE_QUANTUM, budget, duration_limit, price
from planner.units import DAY


def quanta(limits: Limits) -> Limited:
    """Return what one job must keep, in the solver's integers."""
    return Limited(None if limits.deadline is None else duration_limit(limits.deadline.seconds),
                   None if limits.budget is None else budget(limits.budget),
                   None if limits.max_power is None else int(limits.max_power))


def used_by(run: Run) -> dict[str, float]:
    """Return what a run takes of each limit: GPUs, nodes, watts, USD, seconds."""
    column, offer = run.column, run.offer
    cents = 0 if offer is None else offered(offer, 0).cents(column.rented_nodes, column.paid_us)
    return {"gpus": column.gpus, "max_gpus": column.gpus, "max_nodes": column.nodes, "max_power": column.power_w,
            "budget": cents / 100, "deadline": column.upper_us * DURATION_QUANTUM}


def paid(run: Run) -> dict[str, Any]:
    """Return how long a run takes and what it costs, by the fields of an assignment; no money where nothing is paid."""
    column, offer = run.column, run.offer
    spent = {"duration_days": column.duration_us * DURATION_QUANTUM / DAY, "energy_kwh": column.energy_wh / 1000}
    if offer is None:
        return {**spent, "usd_per_node_hour": None, "commitment": None, "cost_usd": None}
    return {**spent, "usd_per_node_hour": price_in_use(offered(offer, 0), column.rented_nodes, column.duration_us),
            "commitment": commitment_of(offer, column.duration_us), "cost_usd": used_by(run)["budget"]}


def price_in_use(offer: FleetOffer, nodes: int, used_us: int) -> float:
    """Return USD per node and hour of use: what is paid for, over the hours that are used."""
    return offer.price(nodes) * PRICE_QUANTUM * max(1.0, offer.least_us / used_us)


def commitment_of(offer: RentalOffer, used_us: int) -> Commitment | None:
    """Return what is paid for beyond the end of a run; none where nothing is."""
    if duration_limit(offer.commitment) <= used_us:
        return None
    return Commitment(term=offer.term, paid_days=offer.commitment / DAY, used_days=used_us * DURATION_QUANTUM / DAY)


def offered(offer: RentalOffer, at: int) -> FleetOffer:
    """Return an offer of the candidate `at` in the solver's integers."""
    return FleetOffer(at, at, price(offer.usd_per_node_hour), offer.nodes, duration_limit(offer.commitment),
                      offer.estate)


def prices(terms: Terms) -> tuple[FleetOffer, ...]:
    """Return the offer of each candidate in the solver's integers, by number; nothing is paid where none is asked."""
    mine = {offer.candidate: offer for offer in terms.market.offers}
    return tuple(offered(mine[at], at) if at in mine else FleetOffer(at, at, 0)
                 for at in range(len(terms.market.candidates)))


def shared_out(gpus: Sequence[int], size: int) -> list[tuple[int, float]]:
    """Return the nodes that each of several groups of GPUs is on, and those it pays for, of nodes of `size` GPUs.

    A group fills nodes of its own; what is left of all groups shares the others, and pays for them by its GPUs.
    """
    left = [count % size for count in gpus]
    bins = -(-sum(left) // size)
    return [(count // size + bool(rest), count // size + (bins * rest / sum(left) if rest else 0.0))
            for count, rest in zip(gpus, left, strict=True)]


def least(*limits: int | None) -> int | None:
    """Return the tightest of some limits; none where none is given."""
    return min((limit for limit in limits if limit is not None), default=None)
