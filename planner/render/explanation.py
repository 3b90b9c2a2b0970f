"""An explanation as text: the plan in a sentence, then why not another choice, what limits are worth, or why none."""

from __future__ import annotations

from rich.console import Console

from planner.answer.explanation import Explanation, WhyNot, Worth
from planner.answer.objective import NAMES, show_amount
from planner.answer.schema import Plan
from planner.render.facts import is_endless
from planner.render.layout_text import brief
from planner.render.page import Head, Page
from planner.render.portfolio import is_portfolio, portfolio_sentence
from planner.render.proof import show_infeasible
from planner.render.sentence import close_call_sentence, infeasible_sentence, plan_sentence
from planner.solver.fleet.problem import Goal
from planner.units import MONTH_DAYS

_GOALS: dict[str, Goal] = {name: goal for goal, name in NAMES.items()}


def render_explanation_line(explanation: Explanation) -> str:
    """Return the explanation in one line, as `--quiet` prints it."""
    if explanation.why_not:
        return "; ".join(_sentence(one) for one in explanation.why_not)
    if explanation.infeasible is not None:
        return infeasible_sentence(explanation.infeasible)
    binding = [one.limit.replace("_", " ") for one in explanation.worth if one.binds]
    return f"{_answer(explanation)}. Binding: {', '.join(binding) or 'nothing'}"


def render_explanation(explanation: Explanation, console: Console) -> None:
    """Print the explanation."""
    page = Page(console)
    if explanation.infeasible is not None:
        page.paragraph(infeasible_sentence(explanation.infeasible), "bold red")
        page.heading("Together these are enough, and each is needed")
        for because in explanation.infeasible.because:
            page.paragraph(f"  - {because}")
        show_infeasible(page, explanation.infeasible)
    else:
        page.paragraph(_answer(explanation), "bold")
    if (close := close_call_sentence(_plan(explanation), settled=True)) is not None:
        page.paragraph(close)
    for one in explanation.why_not:
        _show_choice(page, one)
    if explanation.worth:
        _show_worth(page, explanation)


def _answer(explanation: Explanation) -> str:
    plan = _plan(explanation)
    return portfolio_sentence(plan) if is_portfolio(plan) else plan_sentence(plan)


def _plan(explanation: Explanation) -> Plan:
    return Plan(status=explanation.status, objective=explanation.objective, assignments=explanation.assignments,
                doubt=explanation.doubt, infeasible=explanation.infeasible)


def _sentence(one: WhyNot) -> str:
    return f"Not {_asked(one)}: {one.because}" if one.verdict != "is the plan" else f"{_asked(one)}: {one.because}"


def _asked(one: WhyNot) -> str:
    return ", ".join(f"{key}={value}" for key, value in one.asked.items())


def _show_choice(page: Page, one: WhyNot) -> None:
    """Print what becomes of one choice: verdict, reason, and the best plan with it."""
    page.heading(f"Why not {_asked(one)}")
    page.paragraph(f"{one.verdict.capitalize()}: {one.because}")
    if one.assignment is not None and one.verdict != "is the plan":
        a = one.assignment
        page.facts([("best with it", f"{a.nodes:,} x {a.node}, {brief(a)}"), ("offer", a.offer or "-")])
    if one.infeasible is not None:
        show_infeasible(page, one.infeasible)


def _show_worth(page: Page, explanation: Explanation) -> None:
    """Print what each limit costs."""
    goal, plan = _GOALS[explanation.objective.name], _plan(explanation)

    def shown(value: float | None) -> str:
        return "not proven" if value is None else "nothing" if value == 0 else show_amount(goal, value)

    def row(one: Worth) -> tuple[str, ...]:
        words = one.limit.replace("_", " ").replace(".", " ") if is_portfolio(plan) else one.limit.replace("_", " ")
        without = "-" if one.without is None and one.saves is not None else shown(one.without)
        return (words, one.given, one.used, "yes" if one.binds else "no",
                f"{one.unit}: {shown(one.saves)}" + (f" (pays from {one.pays_from} on)" if one.pays_from else ""),
                without)

    serves = plan.assignments and not is_portfolio(plan) and is_endless(plan.assignments[0])
    page.heading(f"What the limits cost in {MONTH_DAYS:g} days" if serves else "What the limits cost")
    page.table((Head("limit"), Head("given"), Head("used"), Head("binds"), Head("one unit more saves"),
                Head("without it saves")), [row(one) for one in explanation.worth])
