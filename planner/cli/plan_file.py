"""A plan read back from the file that `planner plan --json` was written to."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from planner.errors import InputError
from planner.text_io import read_text
from planner.yaml_io import Document

if TYPE_CHECKING:
    from planner.answer.assignment import Assignment
    from planner.answer.schema import Plan
    from planner.scenario.portfolio import AnyQuestion

MAX_BYTES = 64 * 2**20


def read_placed(path: Path) -> Plan | Assignment:
    """Return the plan of a file, or the assignment that `planner estimate --json` printed. Raises InputError."""
    from planner.answer.assignment import KINDS

    text = read_text(path, MAX_BYTES)
    for kind in KINDS.values():
        with suppress(ValidationError):
            return kind.model_validate_json(text)
    return _plan(text, path)


def read_plan(path: Path) -> Plan:
    """Return the plan of a file. Raises InputError."""
    return _plan(read_text(path, MAX_BYTES), path)


def _plan(text: str, path: Path) -> Plan:
    from planner.answer.schema import Plan

    try:
        plan = Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        raise InputError(f"{where}: {first['msg']}; expected the output of planner plan --json",
                         file=str(path)) from None
    if plan.provenance.scenario:
        _of_its_scenario(plan, path)
    return plan


def _of_its_scenario(plan: Plan, path: Path) -> None:
    """Raise InputError where the scenario inside a plan is none, or is not the one that its assignments answer."""
    from planner.scenario.load import as_question
    from planner.scenario.tuned import without_idle_rank

    document = Document(without_idle_rank(plan.provenance.scenario), str(path), {})
    try:
        kinds = _kinds(as_question(document))
    except InputError as error:
        raise InputError(f"provenance.scenario.{error.problem}; expected the output of planner plan --json",
                         file=str(path)) from None
    for key in ("assignments", "alternatives"):
        for at, entry in enumerate(getattr(plan, key)):
            name = getattr(entry, "job", None) or entry.workload
            kind = kinds.get(name, kinds.get(""))
            if kind is None:
                raise InputError(f"{key}.{at}.workload: expected {' or '.join(map(repr, kinds))}, as the plan's "
                                 f"scenario has it, got {name[:60]!r}", file=str(path))
            if kind != entry.kind or (kind == "serving") != (entry.serving is not None):
                raise InputError(f"{key}.{at}.kind: expected an assignment of the kind of the plan's scenario, "
                                 f"{kind}, with what is of it alone", file=str(path))


def _kinds(question: AnyQuestion) -> dict[str, str]:
    """Return the kind of every workload by its name; of one job that ends by none, as plans call it by its model."""
    from planner.scenario.portfolio import Portfolio
    from planner.scenario.scenario import ServingScenario
    from planner.scenario.serving import Serving

    if isinstance(question, Portfolio):
        return {job.name: "serving" if isinstance(job.workload, Serving) else job.workload.kind
                for job in question.jobs}
    if isinstance(question, ServingScenario):
        return {service.label: "serving" for service in question.services}
    return {"": question.workload.kind}
