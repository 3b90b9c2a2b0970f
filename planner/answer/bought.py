"""What a plan on bought nodes binds: capital, running costs a month, an hour of useful work, the bill of materials."""

from __future__ import annotations

from planner.money.purchase import YEAR_HOURS, Estate
from planner.yaml_io import Frozen

RUNNING = ("electricity", "colocation", "maintenance", "staff")
"""Parts of a year that are paid as the nodes run; the others come from the capital."""


class BillItem(Frozen):
    """One line of what is bought, in USD, with where its price comes from."""

    item: str
    """What is bought."""
    count: int
    """How many."""
    unit_usd: float
    """USD each."""
    usd: float
    """USD for all."""
    source: str
    """Where the price comes from."""
    as_of: str
    """Date of the price."""
    kind: str
    """How sure the price is."""


class Bought(Frozen):
    """What it takes to buy the nodes of a plan, spares included."""

    capex_usd: float
    """Nodes, network, storage and installation."""
    resale_usd: float
    """Resale value of nodes and network at the end of their life."""
    life_years: float
    """Years over which they are written off."""
    utilization: float
    """Share of time in which the nodes work, for this job or others."""
    usd_per_month: dict[str, float]
    """USD per month, by part; a month is a twelfth of a year."""
    opex_usd_per_month: float
    """Electricity, colocation, maintenance and staff."""
    usd_per_useful_gpu_hour: float
    """USD per productive hour of a GPU in the layout."""
    bill: tuple[BillItem, ...]
    """The bill of materials."""


def bought_of(estate: Estate, nodes: int, gpus: int, goodput: float) -> Bought:
    """Return what `nodes` nodes, of which `gpus` GPUs are in the layout, cost their owner."""
    capital = estate.capital(nodes)
    yearly = estate.yearly(nodes, capital)
    useful = YEAR_HOURS * estate.utilization * gpus * goodput
    return Bought(
        capex_usd=capital.total, resale_usd=estate.resale(capital),
        life_years=estate.years, utilization=estate.utilization,
        usd_per_month={name: usd / 12 for name, usd in yearly.items()},
        opex_usd_per_month=sum(yearly.get(name, 0.0) for name in RUNNING) / 12,
        usd_per_useful_gpu_hour=sum(yearly.values()) / useful,
        bill=tuple(BillItem(item=i.name, count=i.count, unit_usd=i.unit_usd, usd=i.usd, source=i.source, as_of=i.as_of,
                            kind=i.kind) for i in capital.items))
