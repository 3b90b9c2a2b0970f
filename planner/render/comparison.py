"""A comparison as text: a row for each candidate and offer, reasons of those without a plan, the trace of figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console

from planner.answer.comparison import Compared
from planner.render.figures import days
from planner.render.page import Column, Page
from planner.units import show_kwh, show_usd


def render_comparison_line(found: list[Compared]) -> str:
    """Return the best row in one line, as `--quiet` prints it."""
    best, plans = found[0], sum(one.assignment is not None for one in found)
    if best.assignment is None or best.row.cost_usd is None or best.row.duration_days is None:
        return f"None of {len(found)} candidates has a plan"
    return (f"Best of {plans}: {best.row.gpus:,} x {best.row.gpu}, {best.row.offer}, "
            f"{days(best.row.duration_days)} for {show_usd(best.row.cost_usd)}")


def render_comparison(found: list[Compared], console: Console,
                      trace: Callable[[Compared], Iterable[str]] | None = None) -> None:
    """Print the comparison; `trace` gives the lines that lead each figure back to the catalog."""
    page = Page(console)
    page.paragraph(render_comparison_line(found), "bold")
    page.console.print()
    columns = (Column("hardware and offer"), Column("GPUs", True), Column("days (90% interval)", True),
               Column("MFU", True), Column("cost", True), Column("USD/M tokens", True), Column("energy", True),
               Column("CO2", True))
    page.table(columns, [_row(one) for one in found if one.assignment is not None], gap=1)
    without = [one for one in found if one.assignment is None]
    if without:
        page.heading("Without a plan")
        page.facts([(f"{one.row.node}", f"{one.row.offer or 'not offered'}: {one.row.why_not}") for one in without])
    if trace is not None:
        page.heading("Where the figures come from")
        for one in found:
            for at, line in enumerate(trace(one)):
                page.paragraph(f"{one.row.node}, {one.row.offer}: {line}" if at == 0 else f"  {line}")


def _row(one: Compared) -> tuple[str, ...]:
    row, a = one.row, one.assignment
    assert a is not None
    assert row.duration_days is not None
    low, high = (row.duration_days * end / a.time.step_seconds for end in a.time.interval90_seconds)
    return (f"{row.node}, {row.offer}", f"{row.gpus:,}", f"{row.duration_days:,.1f} ({low:,.1f} to {high:,.1f})",
            f"{row.mfu:.2f}", show_usd(row.cost_usd or 0.0), f"{row.usd_per_million_tokens:,.3g}",
            show_kwh(row.energy_kwh or 0.0), "-" if row.co2_kg is None else f"{row.co2_kg / 1e3:,.1f} t")
