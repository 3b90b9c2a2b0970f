"""An explanation as text: the plan in a sentence, then why not another choice, what limits are worth, or why none."""

from __future__ import annotations

from rich.console import Console

from planner.answer.explanation import Explanation, WhyNot, Worth
from planner.answer.objective import NAMES, show_amount
from planner.answer.schema import Plan
from planner.render.facts import is_endless
from planner.render.layout_text import brief
from planner.render.page import Head, Page, Sheet
from planner.render.portfolio import is_portfolio, portfolio_sentence
from planner.render.proof import show_infeasible
from planner.render.sentence import close_call_sentence, infeasible_sentence, plan_sentence
from planner.solver.fleet.problem import Goal
from planner.units import MONTH_DAYS

_GOALS: dict[str, Goal] = {name: goal for goal, name in NAMES.items()}


def render_explanation_line(explanation: Explanation) -> str:
    """Return the explanation in one line, as `--quiet` prints it."""
    if explanation.why_not:
        return "; ".join(_sentence(why_not) for why_not in explanation.why_not)
    if explanation.infeasible is not None:
        return infeasible_sentence(explanation.infeasible)
    binding = [worth.limit.replace("_", " ") for worth in explanation.worth if worth.binds]
    return f"{_answer(explanation)}. Binding: {', '.join(binding) or 'nothing'}"


def render_explanation(explanation: Explanation, console: Console) -> None:
    """Print the explanation."""
    write_explanation(explanation, Page(console))


def write_explanation(explanation: Explanation, page: Sheet) -> None:
    """Write the explanation on a page of whatever kind."""
    if explanation.infeasible is not None:
        page.paragraph(infeasible_sentence(explanation.infeasible), "bold red")
        page.heading("Together these are enough, and each is needed")
        page.items(explanation.infeasible.because)
        show_infeasible(page, explanation.infeasible)
    else:
        page.paragraph(_answer(explanation), "bold")
    if (close := close_call_sentence(_plan(explanation), settled=True)) is not None:
        page.paragraph(close)
    for why_not in explanation.why_not:
        _show_choice(page, why_not)
    if explanation.worth:
        _show_worth(page, explanation)


def _answer(explanation: Explanation) -> str:
    plan = _plan(explanation)
    return portfolio_sentence(plan) if is_portfolio(plan) else plan_sentence(plan)


def _plan(explanation: Explanation) -> Plan:
    return Plan(status=explanation.status, objective=explanation.objective, assignments=explanation.assignments,
                doubt=explanation.doubt, infeasible=explanation.infeasible)


def _sentence(why_not: WhyNot) -> str:
    return f"{'Not ' if why_not.verdict != 'is the plan' else ''}{_asked(why_not)}: {why_not.because}"


def _asked(why_not: WhyNot) -> str:
    return ", ".join(f"{key}={value}" for key, value in why_not.asked.items())


def _show_choice(page: Sheet, why_not: WhyNot) -> None:
    """Print what becomes of one choice: verdict, reason, and the best plan with it."""
    page.heading(f"Why not {_asked(why_not)}")
    page.paragraph(f"{why_not.verdict.capitalize()}: {why_not.because}")
    if why_not.assignment is not None and why_not.verdict != "is the plan":
        a = why_not.assignment
        page.facts([("best with it", f"{a.nodes:,} x {a.node}, {brief(a)}"), ("offer", a.offer or "-")])
    if why_not.infeasible is not None:
        show_infeasible(page, why_not.infeasible)


def _show_worth(page: Sheet, explanation: Explanation) -> None:
    """Print what each limit costs."""
    goal, plan = _GOALS[explanation.objective.name], _plan(explanation)

    def shown(value: float | None) -> str:
        return "not proven" if value is None else "nothing" if value == 0 else show_amount(goal, value)

    def row(worth: Worth) -> tuple[str, ...]:
        words = worth.limit.replace("_", " ").replace(".", " ") if is_portfolio(plan) else worth.limit.replace("_", " ")
        without = "-" if worth.without is None and worth.saves is not None else shown(worth.without)
        return (words, worth.given, worth.used, "yes" if worth.binds else "no",
                f"{worth.unit}: {shown(worth.saves)}" + (f" (pays from {worth.pays_from} on)"
                                                         if worth.pays_from else ""),
                without)

    serves = plan.assignments and not is_portfolio(plan) and is_endless(plan.assignments[0])
    page.heading(f"What the limits cost in {MONTH_DAYS:g} days" if serves else "What the limits cost")
    page.table((Head("limit"), Head("given"), Head("used"), Head("binds"), Head("one unit more saves"),
                Head("without it saves")), [row(worth) for worth in explanation.worth])
