"""`planner explain`: the plan, and why it is so."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.explanation import Explanation
from planner.catalog.load import Catalog
from planner.errors import Unsupported
from planner.jobs.training.cause import infeasible_of
from planner.jobs.training.choice import Answered, Ask, why_not
from planner.jobs.training.prepared import prepare
from planner.jobs.training.solved import planned
from planner.jobs.training.worth import worths
from planner.solver.settings import UNLIMITED, Effort


def explain(ask: Ask, catalog: Catalog, choices: Sequence[dict[str, str]] = (),
            effort: Effort = UNLIMITED) -> Explanation:
    """Return why the plan is what it is: what its limits are worth, or why none of `choices` was taken.

    Raises PlannerError where the input is wrong; without tokens nothing is planned that could be explained.
    """
    scenario = ask({})
    if scenario.workload.tokens is None:
        raise Unsupported("explain without workload.tokens: what holds a model is a question of memory alone; "
                          "planner estimate shows where the bytes go")
    plan = planned(prepare(scenario, catalog), effort)
    if plan.choice.frontier.interrupted:
        raise KeyboardInterrupt
    assignment = plan.assignment()
    best = None if assignment is None or plan.choice.value is None else Answered(plan.choice.value, assignment)
    asked = tuple(why_not(ask, catalog, choice, best, effort) for choice in choices)
    worth = tuple(worths(plan.prepared, best.value, best.assignment, effort)) if best and not choices else ()
    return Explanation(status=plan.choice.status, notes=plan.prepared.notes, objective=plan.objective,
                       assignments=(best.assignment,) if best else (), why_not=asked, worth=worth,
                       infeasible=infeasible_of(plan))
