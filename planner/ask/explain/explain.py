"""`planner explain`: the plan, and why it is so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.answer.explanation import Explanation
from planner.ask.doubt import doubt_of
from planner.ask.explain.cause import infeasible_of
from planner.ask.explain.choice import Ask, parts_of, why_not
from planner.ask.explain.worth import worths
from planner.catalog.load import Catalog
from planner.errors import Unsupported
from planner.jobs.holding import asks_what_holds
from planner.jobs.kinds import question_of
from planner.jobs.settle import wholly_settled
from planner.jobs.solved import solve_lifted
from planner.scenario.portfolio import Portfolio
from planner.solver.settings import UNLIMITED, Effort


def explain(ask: Ask, catalog: Catalog, choices: Sequence[str] = (), effort: Effort = UNLIMITED) -> Explanation:
    """Return why the plan is what it is: what its limits are worth, or why none of `choices` (`tp=4,pp=2`) was taken.

    Raises PlannerError where the input is wrong; where only what holds a model is asked, nothing is planned that could
    be explained.
    """
    scenario = ask({})
    if isinstance(scenario, Portfolio):
        from planner.ask.portfolio.explain import explain_portfolio  # the other question, asked by giving jobs

        return explain_portfolio(scenario, catalog, choices, effort)
    if asks_what_holds(scenario):
        raise Unsupported("explain without workload.tokens or a load: this question is about memory alone; say how "
                          "much work it is, such as --tokens 100M, --samples 10k or --rate 5; planner estimate shows "
                          "where the bytes go")
    question = question_of(scenario, catalog)
    asked: list[Mapping[str, str]] = [parts_of(text, question) for text in choices]
    plan = wholly_settled(solve_lifted(question, effort))
    has_plan = plan.solution.value is not None
    made = tuple(plan.assignments())
    others = plan.alone.alternatives(plan.columns[0], plan.picks, plan.effort, proven=False) if (
        made and plan.alone is not None and not asked) else ()
    return Explanation(status=plan.status, notes=question.terms.market.notes, objective=plan.objective,
                       assignments=made, doubt=doubt_of(made, others, plan.objective.name, catalog),
                       why_not=tuple(why_not(ask, catalog, choice, plan) for choice in asked),
                       worth=tuple(worths(plan)) if has_plan and not asked else (), infeasible=infeasible_of(plan))
