"""A comparison as text: a row for each candidate and offer, reasons of those without a plan, the trace of figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from planner.answer.assignment import TrainingAssignment
from planner.ask.compare import Compared
from planner.ask.money_trace import trace
from planner.ask.tornado import Swing, tornado
from planner.render.comparison_lines import (
    answers_at_once,
    counted,
    each_of,
    named,
    of_portfolio,
    show_evidence,
    show_lines,
    slowest_p95,
    whence,
)
from planner.render.facts import is_endless
from planner.render.figures import TOKENS, paid_each
from planner.render.layout_text import brief
from planner.render.page import Head, Page
from planner.render.rent_or_buy import enough_use, pays_back
from planner.units import DAY, show_days, show_kwh, show_seconds, show_usd

MOST_BOUGHT = 4
"""Purchases on a screen."""
CELLS = 12
"""Of the longest bar."""
TRAINED = (Head("hardware and offer"), Head("GPUs", True), Head("days\n90% interval", True), Head("MFU", True),
           Head("cost\n90% interval\nper {}", True), Head("energy\nCO2", True))
SERVED = (Head("hardware, offer and layout"), Head("GPUs", True), Head("USD/h", True),
          Head("USD per M\ninput\noutput", True), Head("output\ntokens/s\nper GPU", True),
          Head("p95\nTTFT\nTPOT", True), Head("J per\ntoken", True))
MADE = (Head("hardware, offer and layout"), Head("GPUs", True), Head("USD/h", True), Head("USD per\n{}", True),
        Head("p95", True))
"""Of a service whose requests have one answer: an image, a clip or an embedding."""


def of_services(plans: Sequence[Compared]) -> bool:
    """Say whether the rows are of services: some has replicas that do not end."""
    return any(is_endless(a) for compared in plans for a in compared.assignments)


def render_comparison_line(plans: Sequence[Compared]) -> str:
    """Return the best row in one line, as `--quiet` prints it."""
    best = plans[0].row
    if of_portfolio(plans):
        return f"Best alone: {best.node}, {best.offer}, all jobs for {show_usd(best.cost_usd or 0.0)}"
    if best.cost_usd is None or best.duration_days is None:
        return f"None of {len(plans)} candidates has a plan"
    price = (f"{show_usd(best.cost_usd / best.duration_days / 24)}/h" if of_services(plans) else
             f"{show_days(best.duration_days)} for {show_usd(best.cost_usd)}")
    count = sum(bool(compared.assignments) for compared in plans)
    model = f"{best.model} on " if best.model else ""
    return f"Best of {count}: {model}{best.gpus:,} x {best.gpu}, {best.offer}, {price}"


def render_comparison(compared: list[Compared], console: Console, *, traced: bool = False, full: bool = False) -> None:
    """Print the comparison, in full or on a screen; traced: with the lines that lead figures back to the catalog."""
    page = Page(console)
    if not full or of_portfolio(compared):
        _show_short(page, compared, traced=traced)
        return
    page.paragraph(render_comparison_line(compared), "bold")
    plans = [plan for plan in compared if plan.assignments]
    without = [plan.row for plan in compared if not plan.assignments]
    if plans:
        page.console.print()
        serves = of_services(compared)
        heads, row = (TRAINED, _trained) if not serves else (MADE, _made) if answers_at_once(plans) else (
            SERVED, _served)
        each = counted(plans).replace(TOKENS, "M tokens")
        named = [replace(head, label=head.label.format(each)) for head in heads]
        page.table(named, [row(plan) for plan in plans], gap=1)
        if not serves:
            show_evidence(page, plans)
            _purchases(page, compared)
            _sensitivity(page, compared)
    if without:
        page.heading("Without a plan")
        page.facts([(row.node, f"{row.offer or 'not offered'}: {row.why_not}") for row in without])
    if traced:
        _show_trace(page, compared)


def _show_short(page: Page, plans: list[Compared], *, traced: bool) -> None:
    page.paragraph(render_comparison_line(plans), "bold")
    show_lines(page, plans)
    _purchases(page, plans, MOST_BOUGHT)
    if not of_services(plans) and not of_portfolio(plans):
        _margin(page, plans)
    if traced:
        _show_trace(page, plans)
    if not of_portfolio(plans):
        page.paragraph("-v shows intervals, energy, sensitivity and every row", "dim")


def _show_trace(page: Page, plans: list[Compared]) -> None:
    page.heading("Where the figures come from")
    for compared in plans:
        for at, line in enumerate(trace(compared)):
            page.paragraph(f"{compared.row.node}, {compared.row.offer}: {line}" if at == 0 else f"  {line}")


def _span(compared: Compared) -> str:
    """Return the cost at the ends of the 90% interval of the step time."""
    speed = next(swing for swing in tornado(compared) if swing.what == "MFU")
    for unit, suffix in ((1e6, "M"), (1e3, "k")):
        if speed.high >= unit:
            return f"{speed.low / unit:,.4g} to {speed.high / unit:,.4g} {suffix}"
    return f"{speed.low:,.4g} to {speed.high:,.4g}"


BOUGHT = (Head("hardware"), Head("capital", True), Head("running\na month", True),
          Head("USD per\nuseful\nGPU-hour", True), Head("pays\nafter", True), Head("pays\nabove", True))


def purchases(plans: Sequence[Compared]) -> tuple[list[tuple[str, ...]], str]:
    """Return a row, as BOUGHT has it, of what buying binds and when it pays for each row of bought nodes, and against
    what.
    """
    bought = [(compared, compared.assignment.purchase) for compared in plans if compared.assignment
              and compared.assignment.purchase]
    rows: list[tuple[str, ...]] = [(compared.row.node, show_usd(what.capex_usd), show_usd(what.opex_usd_per_month),
             f"{what.usd_per_useful_gpu_hour:,.2f}",
             _when(compared, pays_back(compared.row.break_even_months, compared.break_even_utilization,
                                       what.utilization)),
             _when(compared, "never" if compared.break_even_utilization is None else
                   f"{enough_use(compared.break_even_utilization)} in use")) for compared, what in bought]
    rent = next((compared.rent_usd for compared, _ in bought if compared.rent_usd is not None), None)
    against = "" if rent is None else (
        f"Against the cheapest rented plan above, job after job: {show_usd(rent)} each. After: months until less cash "
        f"is spent, in use {bought[0][1].utilization:.0%} of the time, resale not counted (when resold: only by it). "
        "Above: time in use from which owning costs less over the life of the nodes")
    return rows, against


def _purchases(page: Page, plans: list[Compared], most: int | None = None) -> None:
    """Print what buying binds, and when it pays."""
    rows, against = purchases(plans)
    if not rows:
        return
    page.heading("Bought")
    page.table(BOUGHT, rows[:most], gap=1 if most is None else 0)
    if against:
        page.paragraph(against)


def _when(compared: Compared, text: str) -> str:
    return "-" if compared.rent_usd is None else text


def swings(plans: Sequence[Compared]) -> list[tuple[Compared, list[Swing]]]:
    """Return how far the cost of the best plan of each kind, rented, bought or owned, moves."""
    best = {plan.row.kind: plan for plan in reversed(plans) if plan.assignment is not None}
    return [(plan, tornado(plan)) for plan in plans if plan in best.values()]


def _sensitivity(page: Page, plans: list[Compared]) -> None:
    """Print how far the cost of the best plan of each kind moves, and how far the best is from the next."""
    chosen = swings(plans)
    if not chosen:
        return
    page.heading("Sensitivity (everything else fixed)")
    columns = (Head("hardware and offer"), Head("what changes"), Head("cost", True), Head("", False))
    rows = []
    widest = max(swing.high - swing.low for _, moved in chosen for swing in moved) or 1.0
    for compared, moved in chosen:
        for at, swing in enumerate(moved):
            rows.append((f"{compared.row.node}, {compared.row.offer}" if at == 0 else "",
                         f"{swing.what}\n{swing.at_low} to {swing.at_high}",
                         f"{show_usd(swing.low)}\nto {show_usd(swing.high)}",
                         ("█" if page.unicode else "#") * round(CELLS * (swing.high - swing.low) / widest)))
    page.table(columns, rows, gap=0)
    _margin(page, plans)


def _margin(page: Page, compared: list[Compared]) -> None:
    """Say how far the cheapest plan is from the next on other terms."""
    if said := margin(compared):
        page.paragraph(f"\n{said}")


def margin(compared: Sequence[Compared]) -> str:
    """Return how far the cheapest plan is from the next on other terms; empty where there is none."""
    plans = sorted((plan.row.cost_usd, at) for at, plan in enumerate(compared) if plan.row.cost_usd is not None)
    if len(plans) < 2 or compared[0].row.model or plans[1][0] <= plans[0][0] or plans[0][0] <= 0:
        return ""
    rise, (best, after) = plans[1][0] / plans[0][0] - 1, (compared[at] for _, at in plans[:2])
    by = f"by {rise:.1%}" if rise < 9 else f"{1 + rise:,.0f} times"
    idle = best.offer is not None and best.assignment is not None and (
        best.offer.commitment > (best.assignment.duration_days or 0.0) * DAY)
    slower = "" if idle else f" (an MFU of {(best.row.mfu or 0) / (1 + rise):.2f})"
    return (f"{best.row.node} ({whence(best)}) stays cheapest until its cost rises {by}{slower}; then "
            f"{after.row.node} ({whence(after)}) is")


def _trained(compared: Compared) -> tuple[str, ...]:
    row, a = compared.row, compared.assignment
    assert a is not None
    assert row.duration_days is not None
    whole = a.duration_interval90_days if isinstance(a, TrainingAssignment) else None
    low, high = whole or [row.duration_days * end / a.time.step_seconds for end in a.time.interval90_seconds]
    kg = row.co2_kg
    emitted = "-" if kg is None else f"{kg / 1e3:,.1f} t" if kg >= 1e3 else f"{kg:,.1f} kg"
    duration, each = f"{row.duration_days:,.1f}", paid_each(a, row.cost_usd or 0.0)
    return (f"{row.node}, {row.offer}", f"{row.gpus:,}", f"{duration}\n{low:,.1f} to {high:,.1f}",
            f"{row.mfu:.2f}",
            f"{show_usd(row.cost_usd or 0.0)}\n{_span(compared)}\n"
            + ("" if each is None else f"{each[0]:,.3g} USD"),
            f"{show_kwh(row.energy_kwh or 0.0)}\n{emitted}")


def _made(compared: Compared) -> tuple[str, ...]:
    row, each = compared.row, each_of(compared)
    assert row.cost_usd is not None
    assert row.duration_days is not None
    layouts = "; ".join(brief(a) for a in compared.assignments)
    return (f"{named(compared)}, {row.offer}\n{layouts}", f"{row.gpus:,}",
            f"{row.cost_usd / row.duration_days / 24:,.2f}",
            "-" if each is None else f"{each:,.3g}", slowest_p95(compared))


def _served(compared: Compared) -> tuple[str, ...]:
    row, served = compared.row, compared.row.serving
    assert served is not None
    assert row.cost_usd is not None
    assert row.duration_days is not None
    layouts = "; ".join(brief(a) for a in compared.assignments)
    levels = [a.serving for a in compared.assignments if a.serving]
    ttft, tpot = (max(getattr(level, name).p95 for level in levels) for name in ("ttft_seconds", "tpot_seconds"))
    return (f"{named(compared)}, {row.offer}\n{layouts}", f"{row.gpus:,}",
            f"{row.cost_usd / row.duration_days / 24:,.2f}",
            f"{served.usd_per_million_input_tokens:,.3f}\n{served.usd_per_million_output_tokens:,.3f}",
            f"{served.output_tokens_per_second_per_gpu:,.0f}", f"{show_seconds(ttft)}\n{show_seconds(tpot)}",
            f"{served.joules_per_token:,.2f}")
