"""Another engine or format than the default one, or a stack that few use, where it does the work for clearly less."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.ask.unchosen import ENGINE, FORMAT
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.jobs.kinds import question_of
from planner.jobs.otherwise import affordable, by_engines, by_last_stacks, in_narrower_formats
from planner.jobs.settle import settle
from planner.jobs.solved import Solved, solve_lifted
from planner.scenario.default import Default
from planner.scenario.scenario import AnyScenario
from planner.solver.settings import Effort
from planner.units import show_usd

OF_MEDIAN = 1.48
"""A standard deviation of normal errors over the median of their sizes."""


def cheaper_ways(plan: Plan, scenario: AnyScenario, defaults: Sequence[Default], catalog: Catalog, effort: Effort
                 ) -> list[str]:
    """Return in words which other engine, format of fewer bits a weight, or stack that few use costs clearly less than
    the plan.
    """
    if plan.objective.value is None or not plan.assignments or scenario.objective != "cost":
        return []
    was = {default.name: default.value for default in defaults}
    return [*(_by_engine(plan, was[ENGINE], scenario, catalog, effort) if ENGINE in was else []),
            *(_by_format(plan, was[FORMAT], scenario, catalog, effort) if FORMAT in was else []),
            *_by_stack(plan, scenario, catalog, effort)]


def _by_engine(plan: Plan, was: str, scenario: AnyScenario, catalog: Catalog, effort: Effort) -> list[str]:
    """Return in words which other engine costs least, on the node types of the plan and of its alternatives alone.

    Of an engine that nobody measured with such a model on such GPUs nothing is said, nor where it saves no
    more than the speed of those runs scatters.
    """
    nodes = tuple(dict.fromkeys(one.node for one in (*plan.assignments, *plan.alternatives)))
    on_these = {"hardware": scenario.hardware.model_copy(update={"candidates": nodes})}
    computed = ((solved.objective.value, name, solved) for _, name, _, changed in by_engines(scenario, catalog)
                if (solved := _computed(changed.model_copy(update=on_these), plan, catalog, effort)) is not None)
    least: tuple[float, str] | None = None
    for by_formula, name, solved in sorted(computed, key=lambda each: (each[0] or 0.0, each[1])):
        # replays of a fleet hardly tell more of its speed than is known before
        sure = _surely_below(plan, catalog, _error_of(solved.assignments()))
        enough = sure if least is None else min(sure, least[0])
        if (by_formula or 0.0) >= enough:
            continue
        cost, error = _replayed(solved, enough)
        if cost is not None and cost < _surely_below(plan, catalog, error):
            least = cost, name
    return [] if least is None else [_said(plan, "engine", was, *least, "as far as its speed is known")]


def _by_format(plan: Plan, was: str, scenario: AnyScenario, catalog: Catalog, effort: Effort) -> list[str]:
    """Return in words the widest format of fewer bits that costs clearly less, on whatever the question admits."""
    for name, changed in in_narrower_formats(scenario):
        cost, error = _cheaper(changed, plan, catalog, effort)
        if cost is not None:
            return [_said(plan, FORMAT, was, cost, name, f"if its answers are good enough{_doubt(error, ', and')}")]
    return []


def _by_stack(plan: Plan, scenario: AnyScenario, catalog: Catalog, effort: Effort) -> list[str]:
    """Return in words which stacks that few use for such a run cost less, where none of them is the plan's."""
    last = by_last_stacks(scenario, catalog)
    if last is None or any(made.stack in last[0] for made in plan.assignments):
        return []
    names, changed = last
    cost, error = _cheaper(changed, plan, catalog, effort)
    return [] if cost is None else [
        f"{' and '.join(names)}, which few use for this, does it for at most {show_usd(cost)} ({_saved(plan, cost)})"
        f"{_doubt(error, ',')}: --stack {','.join(names)} plans that"]


def _said(plan: Plan, key: str, was: str, cost: float, name: str, how_far: str) -> str:
    """Return in words what another choice than a default costs."""
    return (f"{key} {was} is the default, and {name} serves it for at most {show_usd(cost)} ({_saved(plan, cost)}) "
            f"{how_far}: --{key} {name} plans that")


def _saved(plan: Plan, cost: float) -> str:
    return f"{cost / (plan.objective.value or cost) - 1:+.0%}"


def _doubt(error: float | None, joined: str) -> str:
    """Return in words that no run confirms a speed, with what joins that to what stands before; nothing where one does.
    """
    return "" if error is not None else f"{joined} if its speed, which no published run confirms, is as computed"


def _cheaper(changed: AnyScenario, plan: Plan, catalog: Catalog, effort: Effort
             ) -> tuple[float | None, float | None]:
    """Return what a changed question costs, replayed as the plan is, where that is below the plan's by more than can be
    told apart, and the median error of measured runs of the like; none where there are none.
    """
    solved = _computed(changed, plan, catalog, effort)
    return (None, None) if solved is None else _replayed(solved, _clearly_below(plan, catalog))


def _computed(changed: AnyScenario, plan: Plan, catalog: Catalog, effort: Effort) -> Solved | None:
    """Return a changed question with its fleet by formula, where that is below the plan by more than can be told apart.
    """
    if effort.is_over:
        return None
    with suppress(PlannerError):
        below = _clearly_below(plan, catalog)
        question = affordable(question_of(changed, catalog), below)
        if question is None:
            return None
        solved = solve_lifted(question, effort, depth="best", so_far=True, lifts=False)
        if (solved.objective.value or math.inf) < below:
            return solved
    return None


def _replayed(solved: Solved, below: float) -> tuple[float | None, float | None]:
    """Return what a fleet costs at most by replay where that is below a cost, and the median error of measured runs of
    the like; none where there are none.
    """
    with suppress(PlannerError):
        # the first that is below is told apart already, and a plan of it finds what may cost less still
        found = settle(solved, enough=below)
        value = found.solved.objective.value
        if found.met and value is not None and value < below:
            return value, _error_of(found.solved.assignments())
    return None, None


def _clearly_below(plan: Plan, catalog: Catalog) -> float:
    """Return a cost that is below the plan's by as much as can be told apart."""
    return (plan.objective.value or 0.0) / (1.0 + catalog.kernels.resolution)


def _surely_below(plan: Plan, catalog: Catalog, error: float | None) -> float:
    """Return a cost that is clearly below the plan's although measured runs like it scatter; zero where there are none.
    """
    return 0.0 if error is None else _clearly_below(plan, catalog) / (1.0 + OF_MEDIAN * error)


def _error_of(assignments: Sequence[Assignment]) -> float | None:
    """Return the largest median error of measured runs like these; none where the speed of one is held against none."""
    errors = [one.time.evidence.median_abs_error if one.time is not None and one.time.evidence is not None else None
              for one in assignments]
    known = [error for error in errors if error is not None]
    return max(known) if len(known) == len(errors) else None
