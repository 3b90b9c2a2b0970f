"""How far a plan's cost moves with its price, its speed and, where bought, its utilization; everything else held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.answer.assignment import Assignment
from planner.ask.compare import Compared
from planner.money.rent import RentalOffer
from planner.units import DAY

SWING = 0.2
"""How far price and utilization are moved, up and down."""


@dataclass(frozen=True, slots=True)
class Swing:
    """One assumption at its two ends, and what the plan costs there, in USD; `low` is the cheaper end."""

    what: str
    at_low: str
    at_high: str
    low: float
    high: float


def tornado(compared: Compared) -> list[Swing]:
    """Return the swings of a row that has a plan, the widest first."""
    if compared.assignment is None or compared.offer is None or compared.assignment.duration_days is None:
        return []
    swings = _swings(compared.assignment, compared.offer, compared.assignment.duration_days)
    return sorted(swings, key=lambda swing: swing.low - swing.high)


def _swings(a: Assignment, offer: RentalOffer, days: float) -> Iterator[Swing]:
    nodes = a.nodes + a.spare_nodes
    ends = tuple(_cost(offer, nodes, days, price=1 + by) for by in (-SWING, SWING))
    bought = "price of nodes" if offer.estate is not None else "price"
    yield Swing("electricity" if offer.how == "owned" else bought, f"-{SWING:.0%}", f"+{SWING:.0%}", *ends)
    fast, slow = (end / a.time.step_seconds for end in a.time.interval90_seconds)
    yield Swing("MFU", f"{a.time.mfu / fast:.2f}", f"{a.time.mfu / slow:.2f}",
                *(_cost(offer, nodes, days * by) for by in (fast, slow)))
    if offer.estate is not None:
        use = offer.estate.utilization
        high, low = min(1.0, use * (1 + SWING)), use * (1 - SWING)
        yield Swing("utilization", f"{100 * high:.3g}%", f"{100 * low:.3g}%",
                    *(_cost(offer, nodes, days, utilization=by) for by in (high, low)))


def _cost(offer: RentalOffer, nodes: int, days: float, *, price: float = 1.0,
          utilization: float | None = None) -> float:
    """Return what `nodes` nodes cost for `days` days with the offer so changed, in USD."""
    estate, hours = offer.estate, max(days, offer.commitment / DAY) * 24
    if estate is None:
        return nodes * offer.usd_per_node_hour * price * hours
    purchase = estate.purchase.model_copy(update={"price": estate.purchase.price * price})
    changed = replace(estate, purchase=purchase, utilization=utilization or estate.utilization)
    return nodes * changed.usd_per_node_hour(nodes) * hours
