"""A comparison on a screen: a line for each of the first candidates and offers, of jobs and of services alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.ask.compare import Compared
from planner.render.facts import held_against
from planner.render.figures import days
from planner.render.layout_text import asked_latency
from planner.render.page import Head, Page
from planner.render.runners_up import shortened
from planner.units import show_usd

MOST_ROWS = 10
"""Candidates with a plan that are shown; the others are behind -v."""
MOST_REASONS = 4
"""Candidates without one."""
INDENT = 2


def show_lines(page: Page, found: Sequence[Compared]) -> None:
    """Print the best rows, and why some have no plan."""
    plans = [one for one in found if one.assignments]
    without = [one for one in found if not one.assignments]
    if plans:
        page.console.print()
        heads, row = _table(plans)
        page.lines([Head("hardware"), Head("from"), *(Head(head, True) for head in heads)],
                   [(one.row.node, whence(one), f"{one.row.gpus:,}", *row(one)) for one in plans[:MOST_ROWS]])
        if len(plans) > MOST_ROWS:
            page.paragraph(f"{' ' * INDENT}{len(plans) - MOST_ROWS} more with -v")
    show_evidence(page, plans[:MOST_ROWS])
    if without:
        page.heading("Without a plan")
        for one in without[:MOST_REASONS]:
            name = f"{' ' * INDENT}{one.row.node}, {whence(one)}: "
            page.paragraph(name + shortened(one.row.why_not or "", page.console.width - len(name)))
        if len(without) > MOST_REASONS:
            page.paragraph(f"{' ' * INDENT}{len(without) - MOST_REASONS} more with -v")


def show_evidence(page: Page, plans: Sequence[Compared]) -> None:
    """Print what published runs the speeds are held against, once for all nodes of which it is the same."""
    said: dict[str, list[str]] = {}
    for one in plans:
        if one.row.evidence is not None:
            text = f"{one.assignments[0].stack}: {held_against(one.row.evidence, 'speed')}"
            said.setdefault(text, []).append(one.row.node)
    for text, nodes in said.items():
        page.paragraph(f"{', '.join(dict.fromkeys(nodes))} with {text}", "dim")


TRAINED = ("GPUs", "time", "MFU", "cost", "USD/M tokens")
SERVED = ("GPUs", "USD/h", "TTFT", "TPOT", "USD/M output")


MANY = ("GPUs at most", "cost", "late", "rejected")


def of_portfolio(found: Sequence[Compared]) -> bool:
    """Say whether the rows are of many jobs together."""
    return any(a.job for one in found for a in one.assignments)


def _table(plans: Sequence[Compared]) -> tuple[tuple[str, ...], Callable[[Compared], tuple[str, ...]]]:
    """Return the heads after hardware and source, and what stands below those after the first."""
    if of_portfolio(plans):
        return MANY, _many
    return (SERVED, _served) if any(a.serving for one in plans for a in one.assignments) else (TRAINED, _trained)


def _many(one: Compared) -> tuple[str, ...]:
    row = one.row
    return "-" if row.cost_usd is None else show_usd(row.cost_usd), f"{row.late or 0:,}", f"{row.rejected or 0:,}"


def _trained(one: Compared) -> tuple[str, ...]:
    row = one.row
    return ("-" if row.duration_days is None else days(row.duration_days), f"{row.mfu or 0:.2f}",
            "-" if row.cost_usd is None else show_usd(row.cost_usd), f"{row.usd_per_million_tokens or 0:,.3g}")


def _served(one: Compared) -> tuple[str, ...]:
    row, levels = one.row, [a.serving for a in one.assignments if a.serving]
    hourly = "-" if not row.cost_usd or not row.duration_days else f"{row.cost_usd / row.duration_days / 24:,.2f}"
    slowest = [max((getattr(level, name) for level in levels), key=lambda each: each.p95)
               for name in ("ttft_seconds", "tpot_seconds")]
    first, each = (" ".join(asked_latency(one)[::-1]) for one in slowest)
    return (hourly, first, each if any(level.writes for level in levels) else "-",
            f"{row.serving.usd_per_million_output_tokens:,.3g}" if row.serving else "-")


def whence(one: Compared) -> str:
    """Return the provider, with terms that are not the usual; or whose the nodes are."""
    if one.offer is None:
        return one.row.offer or "not offered"
    if one.offer.how != "rent":
        return {"buy": "bought", "owned": "owned"}[one.offer.how]
    return one.offer.provider if one.offer.term == "on-demand" else f"{one.offer.provider} {one.offer.term}"
