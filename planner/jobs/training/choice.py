"""Why not another choice: the best plan with it, solved like the plan itself, or what rules it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from planner.answer.assignment import Assignment
from planner.answer.explanation import WhyNot
from planner.answer.objective import amount, show_amount
from planner.answer.schema import Infeasible
from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.jobs.training.assignment import alternative_of
from planner.jobs.training.cause import infeasible_of
from planner.jobs.training.one_layout import KEYS, axis_value
from planner.jobs.training.prepared import prepare
from planner.jobs.training.solved import Planned, planned
from planner.scenario.scenario import Scenario, ServingScenario
from planner.solver.settings import UNLIMITED, Effort

Ask = Callable[[Mapping[str, str]], Scenario]
"""The question with some scenario values replaced, by dotted path."""
PLACES = {"gpu": "hardware.candidates", "node": "hardware.candidates", "provider": "sourcing.rent.providers",
          "region": "sourcing.rent.regions", "terms": "sourcing.rent.terms", "gpus": "limits.gpus"}
VALUES = {**PLACES, "stack": "workload.stack", "precision": "workload.precision"}
"""Choices that are scenario values, and the path of each."""
Asked = TypeVar("Asked", Scenario, ServingScenario)
RENTED = frozenset({"provider", "region", "terms"})
AXES = {key: axis for key, axis in KEYS.items() if key != "shard"}
"""Choices that hold an axis of the layout."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The plan that the question has: its value in the solver's integers, and its assignment."""

    value: int
    assignment: Assignment


def parse_choice(text: str) -> dict[str, str]:
    """Return the parts of `tp=4,pp=2`. Raises InputError."""
    return parts_of(text, AXES, VALUES)


def parts_of(text: str, axes: Iterable[str], values: Iterable[str]) -> dict[str, str]:
    """Return the parts of a choice, each a layout axis or a scenario value. Raises InputError."""
    known = [*axes, *values]
    parts: dict[str, str] = {}
    for part in text.split(","):
        key, found, value = (piece.strip() for piece in part.partition("="))
        if not found or not value:
            raise InputError(f"--why-not {part.strip() or text!r}: expected choices such as tp=4,pp=2 or gpu=a100")
        if key not in known:
            raise UnknownName("choice in --why-not", key, known)
        if key in parts:
            raise InputError(f"--why-not {text}: {key} is given twice")
        parts[key] = value
    return parts


def why_not(ask: Ask, catalog: Catalog, asked: dict[str, str], plan: Answered | None,
            effort: Effort = UNLIMITED) -> WhyNot:
    """Return what becomes of one choice. `plan` is none where the question has no plan. Raises InputError."""
    held = {AXES[key]: (axis_value(key, value, "--why-not"),) for key, value in asked.items() if key in AXES}
    scenario = as_rented(ask({VALUES[key]: value for key, value in asked.items() if key in VALUES}), asked)
    try:
        prepared = prepare(scenario, catalog)
    except InputError as error:
        return WhyNot(asked=asked, verdict="not offered", because=str(error))
    facts = prepared.facts
    solved = planned(replace(prepared, facts=replace(facts, space=replace(facts.space, only=held))), effort)
    return _ruled_out(asked, solved) if solved.choice.best is None else _weighed(asked, solved, plan)


def _ruled_out(asked: dict[str, str], solved: Planned) -> WhyNot:
    infeasible = infeasible_of(solved)
    if infeasible is None:
        return WhyNot(asked=asked, verdict="undecided", because="time ran out before a plan with it was found")
    return ruled_out(asked, infeasible)


def ruled_out(asked: Mapping[str, str], infeasible: Infeasible) -> WhyNot:
    """Return the verdict on a choice that no plan has, with the reasons and the nearest miss."""
    nearest = f". Nearest miss: {infeasible.nearest}" if infeasible.nearest else ""
    return WhyNot(asked=dict(asked), verdict="infeasible", because="; ".join(infeasible.because) + nearest,
                  infeasible=infeasible)


def as_rented(scenario: Asked, asked: Mapping[str, str]) -> Asked:
    """Return a question as who names an offer asks it: about renting alone."""
    if not RENTED & asked.keys():
        return scenario
    rented = scenario.sourcing.model_copy(update={"own": {}, "buy": None})
    return scenario.model_copy(update={"sourcing": rented})


def _weighed(asked: dict[str, str], solved: Planned, plan: Answered | None) -> WhyNot:
    """Compare the best plan with the choice to the plan."""
    choice, goal, best = solved.choice, solved.prepared.scenario.objective, solved.assignment()
    assert choice.best is not None
    assert choice.value is not None
    assert best is not None
    shown = show_amount(goal, amount(goal, choice.value))
    value = amount(goal, choice.value)
    if plan is None:
        return WhyNot(asked=asked, verdict="better", value=value, assignment=best,
                      because=f"with it there is a plan: {shown}")
    excess = choice.value / plan.value - 1
    if choice.value == plan.value and best.layout == plan.assignment.layout and best.offer == plan.assignment.offer:
        return WhyNot(asked=asked, verdict="is the plan", value=value, excess=0.0, assignment=best,
                      because="the plan does just that")
    if excess < 0:
        return WhyNot(asked=asked, verdict="better", value=value, excess=excess, assignment=best,
                      because=f"it would be better, {shown}, but the question leaves it out")
    other = alternative_of(solved.context, choice.best, plan.assignment)
    return WhyNot(asked=asked, verdict="tied" if other.tied else "worse", value=value, excess=excess, assignment=best,
                  because=f"the best plan with it comes to {shown}: {other.why}")
