"""Plans and estimates as text: first the answer in one sentence, then the figures behind it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.render.breakdown import show_assignment
from planner.render.holding import asks_what_holds, holding_sentence, show_holding
from planner.render.layout_text import prompts_of
from planner.render.page import Page
from planner.render.pareto import show_trade_offs, trades
from planner.render.portfolio import is_portfolio, portfolio_sentence, show_portfolio
from planner.render.proof import (
    proof_line,
    show_alternatives,
    show_defaults,
    show_infeasible,
    show_proof,
    show_provenance,
)
from planner.render.runners_up import show_runners_up
from planner.render.sentence import (
    close_call_sentence,
    estimate_sentence,
    infeasible_sentence,
    no_deadline_sentence,
    plan_sentence,
)
from planner.render.serving import capacity_sentence
from planner.render.summary import show_each, show_summary

MOST_LISTED = 4
"""Values of a default that are listed on a screen."""
MORE = "-v shows everything: all axes, the search, every alternative"


def render_answer_line(plan: Plan) -> str:
    """Return the answer in one line, as `--quiet` prints it."""
    if asks_what_holds(plan) and plan.assignments:
        return holding_sentence(plan)
    if is_portfolio(plan) and plan.assignments:
        return portfolio_sentence(plan)
    return infeasible_sentence(plan.infeasible) if plan.infeasible else plan_sentence(plan)


def render_plan(plan: Plan, console: Console, *, full: bool = False) -> None:
    """Print the answer, then layout, memory, time, cost, proof, alternatives and defaults; in full, or on a screen."""
    page = Page(console)
    if is_portfolio(plan) and plan.assignments:
        page.paragraph(portfolio_sentence(plan), "bold")
        show_portfolio(page, plan, full=full)
        _show_end(page, plan, full=full)
        return
    if asks_what_holds(plan) and plan.assignments:
        page.paragraph(holding_sentence(plan), "bold")
        show_holding(page, plan, full=full)
        _show_end(page, plan, full=full)
        return
    page.paragraph(plan_sentence(plan), "bold red" if plan.infeasible else "bold")
    if (reminder := no_deadline_sentence(plan)) is not None:
        page.paragraph(reminder, "yellow")
    if (close := close_call_sentence(plan, settled=full)) is not None:
        page.paragraph(close)
    if plan.infeasible:
        show_infeasible(page, plan.infeasible)
    given = plan.provenance.scenario.get("confidence")
    confidence = float(given) if isinstance(given, int | float) else None
    if not full:
        _show_short(page, plan, confidence)
        return
    for assignment in plan.assignments:
        if len(plan.assignments) > 1:
            page.heading(f"{assignment.workload}: {assignment.gpus:,} {assignment.gpu} GPUs{prompts_of(assignment)}",
                         "underline")
        show_assignment(page, assignment, confidence)
    show_proof(page, plan)
    if trades(plan):
        show_trade_offs(page, plan, full=True)
    else:
        show_alternatives(page, plan)
    _show_end(page, plan, full=True)


def _show_short(page: Page, plan: Plan, confidence: float | None) -> None:
    if len(plan.assignments) == 1 and not trades(plan):
        show_summary(page, plan.assignments[0], confidence, proof_line(plan))
    else:
        if len(plan.assignments) > 1:
            show_each(page, plan.assignments)
        page.console.print()
        page.facts([("proof", proof_line(plan))])
    if trades(plan):
        show_trade_offs(page, plan, full=False)
    elif plan.assignments:
        show_runners_up(page, plan)
    _show_end(page, plan, full=False)


def _show_end(page: Page, plan: Plan, *, full: bool) -> None:
    if full:
        show_provenance(page, plan.provenance)
        return
    show_defaults(page, plan.provenance, MOST_LISTED)
    page.paragraph(MORE, "dim")


def render_estimate(assignment: Assignment, console: Console, confidence: float | None = None,
                    levers: str = "", chosen: Sequence[str] = (), *, full: bool = False) -> None:
    """Print whether the layout fits and how fast it is, then the figures.

    `confidence` is that of the memory verdict, 0 to 1; it is named where given. chosen: how the layout was come by.
    """
    page = Page(console)
    page.paragraph(estimate_sentence(assignment, confidence), "bold")
    for line in chosen:
        page.paragraph(line)
    if levers:
        page.paragraph(levers)
    (show_assignment if full else show_summary)(page, assignment, confidence)


def render_service(assignment: Assignment, console: Console, asked: float | None = None, chosen: Sequence[str] = (), *,
                   offline: bool = False, full: bool = False) -> None:
    """Print what one layout of a service holds and how fast it is, then the figures; `asked` are requests/s.

    chosen: how the layout was come by. offline: whether no load was given.
    """
    page = Page(console)
    page.paragraph(capacity_sentence(assignment, asked, offline=offline), "bold")
    for line in chosen:
        page.paragraph(line)
    (show_assignment if full else show_summary)(page, assignment, None)
