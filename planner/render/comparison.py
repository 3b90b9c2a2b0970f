"""A comparison as text: a row for each candidate and offer, reasons of those without a plan, the trace of figures."""

from __future__ import annotations

from rich.console import Console

from planner.answer.assignment import TrainingAssignment
from planner.ask.compare import Compared
from planner.ask.money_trace import trace
from planner.ask.tornado import tornado
from planner.render.comparison_lines import of_portfolio, show_evidence, show_lines, whence
from planner.render.figures import days
from planner.render.page import Column, Page
from planner.render.served_comparison import of_services, render_services, services_line
from planner.units import DAY, round_up, show_kwh, show_usd

MOST_BOUGHT = 4
"""Purchases on a screen."""
CELLS = 12
"""Of the longest bar."""


def render_comparison_line(found: list[Compared]) -> str:
    """Return the best row in one line, as `--quiet` prints it."""
    if of_portfolio(found):
        first = found[0].row
        return f"Best alone: {first.node}, {first.offer}, all jobs for {show_usd(first.cost_usd or 0.0)}"
    if of_services(found):
        return services_line(found)
    best, plans = found[0], sum(one.assignment is not None for one in found)
    if best.assignment is None or best.row.cost_usd is None or best.row.duration_days is None:
        return f"None of {len(found)} candidates has a plan"
    return (f"Best of {plans}: {best.row.gpus:,} x {best.row.gpu}, {best.row.offer}, "
            f"{days(best.row.duration_days)} for {show_usd(best.row.cost_usd)}")


def render_comparison(found: list[Compared], console: Console, *, traced: bool = False, full: bool = False) -> None:
    """Print the comparison, in full or on a screen; traced: with the lines that lead figures back to the catalog."""
    if not full or of_portfolio(found):
        _show_short(Page(console), found, traced=traced)
        return
    if of_services(found):
        render_services(found, console)
        return
    page = Page(console)
    page.paragraph(render_comparison_line(found), "bold")
    page.console.print()
    columns = (Column("hardware and offer"), Column("GPUs", True), Column("days\n90% interval", True),
               Column("MFU", True), Column("cost\n90% interval\nper M tokens", True), Column("energy\nCO2", True))
    page.table(columns, [_row(one) for one in found if one.assignment is not None], gap=1)
    show_evidence(page, [one for one in found if one.assignment is not None])
    _purchases(page, found)
    _sensitivity(page, found)
    without = [one for one in found if one.assignment is None]
    if without:
        page.heading("Without a plan")
        page.facts([(f"{one.row.node}", f"{one.row.offer or 'not offered'}: {one.row.why_not}") for one in without])
    if traced:
        _show_trace(page, found)


def _show_short(page: Page, found: list[Compared], *, traced: bool) -> None:
    page.paragraph(render_comparison_line(found), "bold")
    show_lines(page, found)
    _purchases(page, found, MOST_BOUGHT)
    if not of_services(found) and not of_portfolio(found):
        _margin(page, found)
    if traced:
        _show_trace(page, found)
    if not of_portfolio(found):
        page.paragraph("-v shows intervals, energy, sensitivity and every row", "dim")


def _show_trace(page: Page, found: list[Compared]) -> None:
    page.heading("Where the figures come from")
    for one in found:
        for at, line in enumerate(trace(one)):
            page.paragraph(f"{one.row.node}, {one.row.offer}: {line}" if at == 0 else f"  {line}")


def _span(one: Compared) -> str:
    """Return the cost at the ends of the 90% interval of the step time."""
    speed = next(swing for swing in tornado(one) if swing.what == "MFU")
    for unit, suffix in ((1e6, "M"), (1e3, "k")):
        if speed.high >= unit:
            return f"{speed.low / unit:,.4g} to {speed.high / unit:,.4g} {suffix}"
    return f"{speed.low:,.4g} to {speed.high:,.4g}"


def _purchases(page: Page, found: list[Compared], most: int | None = None) -> None:
    """Print what buying binds, and when it pays."""
    bought = [(one, one.assignment.purchase) for one in found if one.assignment and one.assignment.purchase]
    if not bought:
        return
    page.heading("Bought")
    columns = (Column("hardware"), Column("capital", True), Column("running\na month", True),
               Column("USD per\nuseful\nGPU-hour", True), Column("pays\nafter", True), Column("pays\nabove", True))
    page.table(columns, [
        (one.row.node, show_usd(what.capex_usd), show_usd(what.opex_usd_per_month),
         f"{what.usd_per_useful_gpu_hour:,.2f}",
         _when(one, "never" if one.row.break_even_months is None else f"{one.row.break_even_months:,.1f} months"),
         _when(one, "never" if one.break_even_utilization is None else f"{one.break_even_utilization:.0%} in use"))
        for one, what in bought[:most]], gap=1 if most is None else 0)
    rent = next((one.rent_usd for one, _ in bought if one.rent_usd is not None), None)
    if rent is not None:
        page.paragraph(f"Against the cheapest rented plan above, job after job: {show_usd(rent)} each. After: "
                       f"months until less cash is spent, in use {bought[0][1].utilization:.0%} of the time, resale "
                       "not counted. Above: time in use from which owning costs less over the life of the nodes")


def _when(one: Compared, text: str) -> str:
    return "-" if one.rent_usd is None else text


def _sensitivity(page: Page, found: list[Compared]) -> None:
    """Print how far the cost of the best plan of each kind moves, and how far the best is from the next."""
    best = {one.row.kind: one for one in reversed(found) if one.assignment is not None}
    chosen = [one for one in found if one in best.values()]
    if not chosen:
        return
    page.heading("Sensitivity (everything else fixed)")
    columns = (Column("hardware and offer"), Column("what changes"), Column("cost", True), Column("", False))
    rows = []
    widest = max(swing.high - swing.low for one in chosen for swing in tornado(one)) or 1.0
    for one in chosen:
        for at, swing in enumerate(tornado(one)):
            rows.append((f"{one.row.node}, {one.row.offer}" if at == 0 else "",
                         f"{swing.what}\n{swing.at_low} to {swing.at_high}",
                         f"{show_usd(swing.low)}\nto {show_usd(swing.high)}",
                         ("█" if page.unicode else "#") * round(CELLS * (swing.high - swing.low) / widest)))
    page.table(columns, rows, gap=0)
    _margin(page, found)


def _margin(page: Page, found: list[Compared]) -> None:
    """Say how far the cheapest plan is from the next on other terms."""
    plans = sorted((one.row.cost_usd, at) for at, one in enumerate(found) if one.row.cost_usd is not None)
    if len(plans) < 2 or plans[1][0] <= plans[0][0] or plans[0][0] <= 0:
        return
    rise, (best, after) = plans[1][0] / plans[0][0] - 1, (found[at] for _, at in plans[:2])
    by = f"by {rise:.1%}" if rise < 9 else f"{1 + rise:,.0f} times"
    idle = best.offer is not None and best.assignment is not None and (
        best.offer.commitment > (best.assignment.duration_days or 0.0) * DAY)
    slower = "" if idle else f" (an MFU of {(best.row.mfu or 0) / (1 + rise):.2f})"
    page.paragraph(f"\n{best.row.node} ({whence(best)}) stays cheapest until its cost rises {by}{slower}; then "
                   f"{after.row.node} ({whence(after)}) is")


def _row(one: Compared) -> tuple[str, ...]:
    row, a = one.row, one.assignment
    assert a is not None
    assert row.duration_days is not None
    whole = a.duration_interval90_days if isinstance(a, TrainingAssignment) else None
    low, high = whole or [row.duration_days * end / a.time.step_seconds for end in a.time.interval90_seconds]
    kg = row.co2_kg
    emitted = "-" if kg is None else f"{kg / 1e3:,.1f} t" if kg >= 1e3 else f"{kg:,.1f} kg"
    duration = f"{round_up(row.duration_days, 1):,}"
    return (f"{row.node}, {row.offer}", f"{row.gpus:,}", f"{duration}\n{low:,.1f} to {high:,.1f}",
            f"{row.mfu:.2f}", f"{show_usd(row.cost_usd or 0.0)}\n{_span(one)}\n{row.usd_per_million_tokens:,.3g} USD",
            f"{show_kwh(row.energy_kwh or 0.0)}\n{emitted}")
