"""What is to be started, out of what `planner plan` or `planner estimate` found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from planner.answer.assignment import KINDS, Assignment, PostTrainingAssignment
from planner.answer.schema import Plan, to_json
from planner.errors import InputError
from planner.scenario.load import as_question
from planner.scenario.portfolio import AnyQuestion, Portfolio
from planner.scenario.portfolio_job import AnyWork
from planner.scenario.scenario import ServingScenario
from planner.scenario.tuned import without_idle_rank
from planner.yaml_io import Document, Frozen, validate


class _Asked(Frozen):
    workload: Annotated[AnyWork, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class Given:
    """One workload that is placed, what was asked of it, and its plan as JSON."""

    placed: Assignment
    asked: AnyWork | None
    """The workload of the question; none of an estimate of an earlier release, which does not state it."""
    plan: str
    beside: tuple[Assignment, ...] = ()
    """Other kinds of replicas that serve the same requests together with it."""

    @property
    def every(self) -> tuple[Assignment, ...]:
        """All that is started together."""
        return self.placed, *self.beside

    @property
    def folder(self) -> str:
        """A name for its folder, beside those of others."""
        name = getattr(self.placed, "job", None) or self.placed.workload
        if self.placed.serving is not None and self.placed.serving.prompts is not None:
            name += f"-from-{self.placed.serving.prompts[0]}"
        return re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.")[:60] or "workload"


def started_by(placed: Assignment) -> str:
    """Return the stack or engine that starts it: of reinforcement learning the framework about its trainer."""
    return placed.framework if isinstance(placed, PostTrainingAssignment) else placed.stack


def given_of(found: Plan | Assignment, alternative: int | None = None) -> list[Given]:
    """Return what a plan starts, or one of its alternatives, counted from one. Raises InputError for nothing."""
    if not isinstance(found, Plan):
        if alternative is not None:
            raise InputError(f"--alternative {alternative}: an estimate has none")
        return [estimated(found)]
    question = question_of(found)
    if alternative is not None:
        if not 1 <= alternative <= len(found.alternatives):
            raise InputError(f"--alternative {alternative}: the plan has {len(found.alternatives)}")
        picked = found.alternatives[alternative - 1]
        parts = [_as_assignment(other) for other in found.alternatives
                 if other is picked or (picked.fleet is not None and other.fleet == picked.fleet)]
        return _given(found, parts, question)
    if not found.assignments:
        raise InputError(f"the plan is {found.status}: there is nothing to start")
    return _given(found, [one for one in found.assignments if one.status != "rejected"], question)


def _given(plan: Plan, placed: Sequence[Assignment], question: AnyQuestion | None) -> list[Given]:
    """Return what starts together: every job alone, all replicas that answer the same requests as one."""
    together: dict[object, list[Assignment]] = {}
    for number, one in enumerate(placed):
        key = number if one.serving is None else (one.workload, one.job, one.serving.prompts)
        together.setdefault(key, []).append(one)
    return [Given(each[0], asked_of(question, each[0]), _alone(plan, *each), tuple(each[1:]))
            for each in together.values()]


def asked_of(question: AnyQuestion | None, placed: Assignment) -> AnyWork | None:
    """Return the workload of a question that something placed answers: of several by the name of job or service."""
    if isinstance(question, Portfolio):
        return next((job.workload for job in question.jobs if job.name == placed.job), None)
    if isinstance(question, ServingScenario):
        return next((one for one in question.services if one.label == placed.workload), None)
    return question.workload if question else None


def estimated(first: Assignment, *beside: Assignment) -> Given:
    """Return estimates that are started together. Raises InputError where the first states no workload of ours."""
    work = first.asked and validate(Document({"workload": first.asked}, "asked", {}), _Asked).workload
    return Given(first, work or None, to_json(first), beside)


def question_of(plan: Plan) -> AnyQuestion | None:
    """Return what a plan answers, where it says so."""
    if not plan.provenance.scenario:
        return None
    return as_question(Document(without_idle_rank(plan.provenance.scenario), "provenance.scenario", {}))


def _as_assignment(found: Assignment) -> Assignment:
    kind = KINDS[found.kind]
    return kind(**{name: getattr(found, name) for name in kind.model_fields})


def _alone(plan: Plan, *placed: Assignment) -> str:
    return to_json(plan.model_copy(update={"assignments": placed, "alternatives": ()}))
