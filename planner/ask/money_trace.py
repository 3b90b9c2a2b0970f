"""How each monetary figure of a comparison follows from facts of the catalog, one line a step."""

from __future__ import annotations

from collections.abc import Iterator

from planner.answer.assignment import Assignment
from planner.answer.bought import Bought
from planner.ask.compare import Compared
from planner.money.purchase import YEAR_HOURS, Estate
from planner.money.rent import RentalOffer
from planner.units import DAY, show_usd


def trace(compared: Compared) -> Iterator[str]:
    """Yield the steps from the cost of a row down to facts with their source, date and kind."""
    a, offer, row = compared.assignment, compared.offer, compared.row
    if a is None or offer is None or a.cost_usd is None or a.duration_days is None or a.usd_per_node_hour is None:
        return
    total = a.nodes + a.spare_nodes
    yield (f"cost {a.cost_usd:,.2f} USD = ({a.nodes:,} + {a.spare_nodes:,} spare) nodes x "
           f"{a.usd_per_node_hour:,.6f} USD/h x 24 h x {a.duration_days:.6f} d")
    yield (f"duration {a.duration_days:.6f} d = {a.time.steps:,} steps x {a.time.step_seconds:.6f} s / goodput "
           f"{a.goodput:.6f}")
    priced = (f"{row.usd_per_million_tokens:.6g} USD per million tokens = cost / tokens asked for"
              if row.usd_per_thousand_images is None
              else f"{row.usd_per_thousand_images:.6g} USD per 1,000 images = cost / images")
    yield (f"{priced}; "
           f"{row.usd_per_gpu_hour:.6g} USD per GPU-hour = cost / {a.gpus:,} GPUs / {a.duration_days * 24:,.2f} h")
    if offer.estate is not None and a.purchase is not None:
        yield from _estate(offer.estate, total, a, a.purchase)
        if compared.rent_usd is not None:
            months = row.break_even_months
            when = "never" if months is None else f"after {months:.2f} months"
            each = compared.rent_usd / a.duration_days / 24
            yield (f"break-even {when} = capital / (rent - running - interest) a month; rent: the cheapest rented plan "
                   f"above, job after job: {compared.rent_usd:,.2f} USD, or {each:,.4f} USD for each hour of use")
    elif offer.how == "owned":
        yield f"price {offer.usd_per_node_hour:,.6f} USD/h is its electricity under load: {_from(offer)}"
    elif offer.commitment > a.duration_days * DAY:
        yield (f"price {a.usd_per_node_hour:,.6f} USD/h = {offer.usd_per_node_hour:,.6f} USD/h x "
               f"{offer.commitment / DAY:,.6g} d committed / {a.duration_days:.6f} d used; {_from(offer)}")
    else:
        yield f"price {offer.usd_per_node_hour:,.6f} USD/h: {_from(offer)}"


def share(value: float) -> str:
    """Write a share so that a product with it can be checked."""
    return f"{100 * value:.8g}%"


def _from(offer: RentalOffer) -> str:
    return f"{offer.source}, {offer.as_of}, {offer.kind}"


def _estate(estate: Estate, nodes: int, a: Assignment, bought: Bought) -> Iterator[str]:
    """Yield what an hour of use is made of."""
    capital, terms, site = estate.capital(nodes), estate.terms, estate.site
    yearly = estate.yearly(nodes, capital)
    load, idle = estate.watts(nodes, capital.network)
    left = estate.resale(capital)

    def fact(name: str) -> str:
        known = estate.fact(name)
        return f"{known.source}, {known.as_of}, {known.kind}"
    grid, building = site.provenance("electricity"), site.provenance("pue")
    yield (f"price {a.usd_per_node_hour:,.6f} USD/h = {sum(yearly.values()):,.2f} USD a year / ({nodes:,} nodes x "
           f"{YEAR_HOURS:,.0f} h x {share(estate.utilization)} in use)")
    running = bought.opex_usd_per_month
    yield (f"running {running:,.2f} USD a month = {12 * running:,.2f} USD a year of electricity, colocation, "
           "maintenance and staff / 12")
    yield (f"{bought.usd_per_useful_gpu_hour:,.4f} USD per useful GPU-hour = "
           f"a year / ({YEAR_HOURS:,.0f} h x {share(estate.utilization)} in use x {a.gpus:,} GPUs x goodput)")
    yield (f"depreciation {yearly['depreciation']:,.2f} USD a year = (capital {capital.total:,.2f} - resale "
           f"{left:,.2f}) / {estate.years:g} years: {fact('life')}")
    yield (f"resale {left:,.2f} USD = nodes and network {capital.hardware:,.2f} x (1 - {terms.value_loss:g})^"
           f"{estate.years:g}: {fact('value_loss')}")
    yield (f"financing {yearly['financing']:,.2f} USD a year: annuity at {terms.financing:.1%} over {estate.years:g} "
           f"years, less depreciation: {fact('financing')}")
    busy, idle_share = share(estate.utilization), share(1 - estate.utilization)
    drawn = f"{busy} x {load / 1000:,.2f} kW + {idle_share} x {idle / 1000:,.2f} kW"
    yield (f"electricity {yearly['electricity']:,.2f} USD a year = ({drawn}) x PUE {site.pue:g} x {YEAR_HOURS:,.0f} h "
           f"x {site.electricity:g} USD/kWh: {grid.source}, {grid.as_of}, {grid.kind}; PUE: {building.source}, "
           f"{building.as_of}, {building.kind}")
    if terms.colocation is not None:
        yield (f"colocation {yearly['colocation']:,.2f} USD a year = {load / 1000:,.2f} kW x {terms.colocation:g} "
               f"USD/kW-month x 12: {fact('colocation')}")
    for name in ("maintenance", "staff"):
        yield (f"{name} {yearly[name]:,.2f} USD a year = {getattr(terms, name):.1%} x nodes and network "
               f"{capital.hardware:,.2f}: {fact(name)}")
    for item in capital.items:
        yield (f"capital: {item.count:,} x {item.name} at {item.unit_usd:,.2f} USD = {show_usd(item.usd)}: "
               f"{item.source}, {item.as_of}, {item.kind}")
