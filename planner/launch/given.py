"""What is to be started, out of what `planner plan` or `planner estimate` found."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.answer.assignment import Assignment, ServingAssignment, TrainingAssignment
from planner.answer.schema import Plan, to_json
from planner.errors import InputError
from planner.scenario.load import as_question
from planner.scenario.portfolio import Portfolio
from planner.scenario.scenario import AnyScenario
from planner.yaml_io import Document


@dataclass(frozen=True, slots=True)
class Given:
    """One workload that is placed, the question it answers where that is known, and its plan as JSON."""

    placed: Assignment
    scenario: AnyScenario | None
    plan: str

    @property
    def folder(self) -> str:
        """A name for its folder, beside those of others."""
        name = getattr(self.placed, "job", None) or self.placed.workload
        return re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.")[:60] or "workload"


def given_of(found: Plan | Assignment, alternative: int | None = None) -> list[Given]:
    """Return what a plan starts, or one of its alternatives, counted from one. Raises InputError for nothing."""
    if not isinstance(found, Plan):
        if alternative is not None:
            raise InputError(f"--alternative {alternative}: an estimate has none")
        return [Given(found, None, to_json(found))]
    scenario = _scenario(found)
    if alternative is not None:
        if not 1 <= alternative <= len(found.alternatives):
            raise InputError(f"--alternative {alternative}: the plan has {len(found.alternatives)}")
        one = _as_assignment(found.alternatives[alternative - 1])
        return [Given(one, scenario, _alone(found, one))]
    if not found.assignments:
        raise InputError(f"the plan is {found.status}: there is nothing to start")
    placed = [one for one in found.assignments if one.status != "rejected"]
    return [Given(one, scenario, _alone(found, one)) for one in placed]


def _scenario(plan: Plan) -> AnyScenario | None:
    if not plan.provenance.scenario:
        return None
    question = as_question(Document(plan.provenance.scenario, "provenance.scenario", {}))
    return None if isinstance(question, Portfolio) else question


def _as_assignment(found: Assignment) -> Assignment:
    kind = ServingAssignment if found.kind == "serving" else TrainingAssignment
    return kind(**{name: getattr(found, name) for name in kind.model_fields})


def _alone(plan: Plan, placed: Assignment) -> str:
    return to_json(plan.model_copy(update={"assignments": (placed,), "alternatives": ()}))
