"""A comparison for services as text: a row for each candidate and offer."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from planner.ask.compare import Compared
from planner.render.layout_text import brief
from planner.render.page import Column, Page
from planner.units import show_seconds, show_usd


def of_services(found: Sequence[Compared]) -> bool:
    """Say whether the rows are of services: some has replicas that do not end."""
    return any(a.serving is not None and a.serving.documents is None for one in found for a in one.assignments)


def services_line(found: Sequence[Compared]) -> str:
    """Return the best row in one line, as `--quiet` prints it."""
    best, plans = found[0].row, sum(bool(one.assignments) for one in found)
    if best.cost_usd is None or best.duration_days is None:
        return f"None of {len(found)} candidates has a plan"
    return (f"Best of {plans}: {best.gpus:,} x {best.gpu}, {best.offer}, "
            f"{show_usd(best.cost_usd / best.duration_days / 24)}/h")


def render_services(found: Sequence[Compared], console: Console) -> None:
    """Print the comparison."""
    page = Page(console)
    page.paragraph(services_line(found), "bold")
    with_plan = [_row(one) for one in found if one.assignments]
    columns = (Column("hardware, offer and layout"), Column("GPUs", True), Column("USD/h", True),
               Column("USD per M\ninput\noutput", True), Column("output\ntokens/s\nper GPU", True),
               Column("p95\nTTFT\nTPOT", True), Column("J per\ntoken", True))
    if with_plan:
        page.console.print()
        page.table(columns, with_plan, gap=1)
    without = [one.row for one in found if not one.assignments]
    if without:
        page.heading("Without a plan")
        page.facts([(row.node, f"{row.offer or 'not offered'}: {row.why_not}") for row in without])


def _row(one: Compared) -> tuple[str, ...]:
    row, served = one.row, one.row.serving
    assert served is not None
    assert row.cost_usd is not None
    assert row.duration_days is not None
    layouts = "; ".join(brief(a) for a in one.assignments)
    levels = [a.serving for a in one.assignments if a.serving]
    ttft, tpot = (max(getattr(level, name).p95 for level in levels) for name in ("ttft_seconds", "tpot_seconds"))
    return (f"{row.node}, {row.offer}\n{layouts}", f"{row.gpus:,}", f"{row.cost_usd / row.duration_days / 24:,.2f}",
            f"{served.usd_per_million_input_tokens:,.3f}\n{served.usd_per_million_output_tokens:,.3f}",
            f"{served.output_tokens_per_second_per_gpu:,.0f}", f"{show_seconds(ttft)}\n{show_seconds(tpot)}",
            f"{served.joules_per_token:,.2f}")
