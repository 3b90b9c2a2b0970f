"""Rent or buy as text: what some years cost each way, and from which use buying costs less."""

from __future__ import annotations

import math
from collections import Counter

from rich.console import Console

from planner.answer.comparison import Row
from planner.ask.rent_or_buy import Having, Havings
from planner.render.page import Head, Page, Sheet
from planner.units import plural, show_usd

MOST_ROWS = 12
"""Ways on a screen; all are behind -v."""
MOST_REASONS = 3
HEADS = (Head("hardware"), Head("from"), Head("cost", True), Head("USD/GPU-h", True),
         Head("buy from", True), Head("pays back", True))


def rent_or_buy_line(found: Havings) -> str:
    """Return the answer in a sentence."""
    best = found.ways[0]
    bought, rented = found.cheapest("buy", best.row.gpu), found.cheapest("rent", best.row.gpu)
    if best.row.cost_usd is None:
        return f"Neither: {best.row.node}, {best.row.offer}: {best.row.why_not}"
    what = f"{plural(best.row.gpus or 0, 'GPU')} ({_nodes(best)}) for {_years(found)}, in use {found.use:.0%}"
    if bought is None or rented is None:
        none = "no price to buy it is known" if bought is None else "nobody rents it on these terms"
        return f"{what}: {show_usd(best.row.cost_usd)} {_whence(best)}; {none}"
    verdict = "Buy" if best.row.kind == "buy" else "Rent"
    row = bought.row
    return (f"{verdict}: {what} of the time, cost {show_usd(row.cost_usd or 0.0)} bought ({_nodes(bought)}) and "
            f"{show_usd(rented.row.cost_usd or 0.0)} rented at the least "
            f"({rented.offer.provider} {rented.offer.term}); buying costs less {_from(row)}")


def render_rent_or_buy(found: Havings, console: Console, *, full: bool = False) -> None:
    """Print the ways, and what buying binds."""
    page = Page(console)
    page.paragraph(rent_or_buy_line(found), "bold")
    page.console.print()
    write_ways(found, page, full=full)


def write_ways(found: Havings, page: Sheet, *, full: bool) -> None:
    """Write the ways, and what buying binds, on a page of whatever kind."""
    ways = [way for way in found.ways if way.row.cost_usd is not None]
    # of one provider on one term the cheapest region
    first = {(way.row.node, _whence(way)): way for way in reversed(ways)}
    shown = ways if full else [way for way in ways if way in first.values()][:MOST_ROWS]
    # of one provider on one term several regions are told apart
    alike = Counter((way.row.node, _whence(way)) for way in shown)
    page.lines(HEADS, [_cells(way, found.use, apart=alike[way.row.node, _whence(way)] > 1) for way in shown])
    if len(ways) > len(shown):
        page.paragraph(f"  {len(ways) - len(shown)} more with -v")
    if (bought := found.cheapest("buy", found.ways[0].row.gpu)) is not None:
        _binds(page, bought, found)
    lacking = [way.row for way in found.ways if way.row.cost_usd is None]
    if lacking:
        page.heading("Left out")
        for row in lacking if full else lacking[:MOST_REASONS]:
            page.paragraph(f"  {row.node}, {(row.offer or '').partition(' (')[0]}: {row.why_not}")
    if found.unsold and not any(way.offer.estate for way in found.ways):
        page.paragraph(f"no price to buy is known of {', '.join(found.unsold)}: catalogs/purchases in a folder of "
                       "yours states one")


def _cells(way: Having, use: float, *, apart: bool) -> tuple[str, ...]:
    row = way.row
    return (row.node, f"{_whence(way)}, {way.offer.region}" if apart else _whence(way), show_usd(row.cost_usd or 0.0),
            f"{row.usd_per_gpu_hour or 0:,.2f}", _from(row).removeprefix("from ").removesuffix(" in use"),
            pays_back(row.break_even_months, row.break_even_utilization, use))


def pays_back(months: float | None, above: float | None, use: float) -> str:
    """Return when buying has taken less cash than renting; above: the share of use from which it costs less."""
    if months is not None:
        return f"{months:,.1f} months"
    return "when resold" if above is not None and above <= use else "never"


def enough_use(share: float) -> str:
    """Write the share of use from which something holds, up to a tenth of a percent, so that it holds there."""
    return f"{math.ceil(share * 1000 - 1e-6) / 1000:.1%}".replace(".0%", "%")


def _years(found: Havings) -> str:
    return f"{found.years:g} {'year' if found.years == 1 else 'years'}"


def _nodes(way: Having) -> str:
    return f"{way.nodes} x {way.row.node}"


def _whence(way: Having) -> str:
    offer = way.offer
    if offer.how != "rent":
        return "bought" if offer.how == "buy" else "owned"
    return offer.provider if offer.term == "on-demand" else f"{offer.provider} {offer.term}"


def _from(row: Row) -> str:
    share = row.break_even_utilization
    return "never" if share is None else "at any use" if share == 0 else f"from {enough_use(share)} in use"


def _binds(page: Sheet, bought: Having, found: Havings) -> None:
    estate = bought.offer.estate
    assert estate is not None
    capital = estate.capital(bought.nodes)
    a_year = estate.yearly(bought.nodes, capital)
    running = sum(usd for name, usd in a_year.items() if name not in ("depreciation", "financing"))
    price, offer = estate.purchase, bought.offer
    page.facts([
        ("bought", f"{show_usd(capital.total)} at once for nodes, network, racks and installation; "
                   f"{show_usd(running / 12)} a month for electricity, space, maintenance and staff at "
                   f"{estate.site.name}; resale {show_usd(estate.resale(capital))} after {_years(found)}; "
                   f"interest {estate.terms.financing:.0%} a year"),
        ("prices", f"to buy {show_usd(price.price)} a node, {offer.as_of}, {offer.kind}; to rent "
                   f"{_dates([way.offer.as_of for way in found.ways if way.offer.how == 'rent'])}: ask for quotes"),
        ("how", "on-demand nodes are paid while in use, reserved ones to the end of each commitment; buy from: share "
                "of time in use from which buying costs less; pays back: until less cash is spent, resale not counted "
                "(when resold: only by it); USD/GPU-h: of an hour in use; --utilization 50% and --site change it")])


def _dates(dates: list[str]) -> str:
    return " to ".join(sorted({min(dates), max(dates)})) if dates else "none"
