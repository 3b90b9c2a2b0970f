"""A comparison on a screen: a line for each of the first candidates and offers, of jobs and of services alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.answer.level import ServingFigures
from planner.ask.compare import Compared
from planner.render.facts import held_against
from planner.render.figures import TOKENS, days, paid_each
from planner.render.layout_text import asked_latency, latencies_of, latency_names
from planner.render.page import Head, Page
from planner.render.runners_up import shortened
from planner.units import show_usd

MOST_ROWS = 10
"""Candidates with a plan that are shown; the others are behind -v."""
MOST_REASONS = 4
"""Candidates without one."""
INDENT = 2


def show_lines(page: Page, compared: Sequence[Compared]) -> None:
    """Print the best rows, and why some have no plan."""
    plans = [plan for plan in compared if plan.assignments]
    without = [plan for plan in compared if not plan.assignments]
    if plans:
        page.console.print()
        heads, row = _table(plans)
        page.lines([Head("hardware"), Head("from"), *(Head(head, True) for head in heads)],
                   [(plan.row.node, whence(plan), f"{plan.row.gpus:,}", *row(plan)) for plan in plans[:MOST_ROWS]])
        if len(plans) > MOST_ROWS:
            page.paragraph(f"{' ' * INDENT}{len(plans) - MOST_ROWS} more with -v")
    show_evidence(page, plans[:MOST_ROWS])
    if without:
        page.heading("Without a plan")
        for lacking in without[:MOST_REASONS]:
            name = f"{' ' * INDENT}{lacking.row.node}, {whence(lacking)}: "
            page.paragraph(name + shortened(lacking.row.why_not or "", page.console.width - len(name)))
        if len(without) > MOST_REASONS:
            page.paragraph(f"{' ' * INDENT}{len(without) - MOST_REASONS} more with -v")


def show_evidence(page: Page, plans: Sequence[Compared]) -> None:
    """Print what published runs the speeds are held against, once for all nodes of which it is the same."""
    said: dict[str, list[str]] = {}
    for plan in plans:
        if plan.row.evidence is not None:
            text = f"{plan.assignments[0].stack}: {held_against(plan.row.evidence, 'speed')}"
            said.setdefault(text, []).append(plan.row.node)
    for text, nodes in said.items():
        page.paragraph(f"{', '.join(dict.fromkeys(nodes))} with {text}", "dim")


TRAINED = ("GPUs", "time", "MFU", "cost")
MANY = ("GPUs at most", "cost", "late", "rejected")


def of_portfolio(plans: Sequence[Compared]) -> bool:
    """Say whether the rows are of many jobs together."""
    return any(a.job for compared in plans for a in compared.assignments)


def _table(plans: Sequence[Compared]) -> tuple[tuple[str, ...], Callable[[Compared], tuple[str, ...]]]:
    """Return the heads after hardware and source, and what stands below those after the first."""
    if of_portfolio(plans):
        return MANY, _many
    made = [a for plan in plans for a in plan.assignments]
    each = next((each[1] for a in made if (each := paid_each(a, 0.0)) is not None), "")
    last = "USD/M tokens" if each in ("", TOKENS) else f"USD/{each}"
    if served := [a.serving for a in made if a.serving]:
        return ("GPUs", "USD/h", *latency_names(served), served_price(served)), _served
    return (*TRAINED, last), _trained


def served_price(served: Sequence[ServingFigures]) -> str:
    """Return what of services has a price: output tokens, or where all make images or clips a thousand of these."""
    return f"USD/1,000 {served[0].noun}" if all(level.made for level in served) else "USD/M output"


def _many(compared: Compared) -> tuple[str, ...]:
    row = compared.row
    return "-" if row.cost_usd is None else show_usd(row.cost_usd), f"{row.late or 0:,}", f"{row.rejected or 0:,}"


def _trained(compared: Compared) -> tuple[str, ...]:
    row = compared.row
    return ("-" if row.duration_days is None else days(row.duration_days), f"{row.mfu or 0:.2f}",
            "-" if row.cost_usd is None else show_usd(row.cost_usd), _each(compared))


def _each(compared: Compared) -> str:
    """Return what a million tokens, or 1,000 images or clips, cost."""
    first = compared.assignments[0] if compared.assignments else None
    each = None if first is None else paid_each(first, compared.row.cost_usd or 0.0)
    return f"{0 if each is None else each[0]:,.3g}"


def _served(compared: Compared) -> tuple[str, ...]:
    """Return what an hour costs, the slowest latencies, and what an answer costs."""
    row, levels = compared.row, [a.serving for a in compared.assignments if a.serving]
    hourly = "-" if not row.cost_usd or not row.duration_days else f"{row.cost_usd / row.duration_days / 24:,.2f}"
    slowest = [max(each, key=lambda one: one.p95) for each in zip(*map(latencies_of, levels), strict=True)]
    first, each = (" ".join(asked_latency(one)[::-1]) for one in slowest)
    if all(level.made for level in levels):
        return hourly, first, priced(compared)
    return hourly, first, each if any(level.writes for level in levels) else "-", priced(compared)


def priced(compared: Compared) -> str:
    """Return the cost below `served_price`."""
    row = compared.row
    if row.serving:
        return f"{row.serving.usd_per_million_output_tokens:,.3g}"
    made = all(a.serving and a.serving.made for a in compared.assignments)
    return f"{row.usd_per_million_tokens / 1e3:,.3g}" if made and row.usd_per_million_tokens else "-"


def whence(compared: Compared) -> str:
    """Return the provider, with terms that are not the usual; or whose the nodes are."""
    if compared.offer is None:
        return compared.row.offer or "not offered"
    offer = compared.offer
    if offer.how != "rent":
        return {"buy": "bought", "owned": "owned"}[offer.how]
    return offer.provider if offer.term == "on-demand" else f"{offer.provider} {offer.term}"
