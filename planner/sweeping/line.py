"""One line of a sweep's output, schema planner.sweep/1: written, and read back to resume."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field

from planner.answer.first_edition import upgraded
from planner.answer.meant import Meant
from planner.answer.schema import Plan
from planner.answer.shown import Shown, Table
from planner.sweeping.task import SweepTask, VariantOutcome
from planner.sweeping.variants import Variant
from planner.text_io import json_text
from planner.units import plural
from planner.yaml_io import Frozen, absent

SCHEMA = "planner.sweep/1"
START = f'{{"schema": "{SCHEMA}"'
"""How every line begins."""
PROVEN = ("optimal", "infeasible")
"""Statuses of answers that are not asked again."""


class SweepLine(Meant, Frozen):
    """One variant with its answer, whose figures it has by their names: line.cost_usd."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["planner.sweep/1"] = Field(default="planner.sweep/1", alias="schema")
    """Edition of this document."""
    variant: Variant
    """What is varied, by path, as it was given."""
    plan: Plan | None
    """As planner plan --json prints it; none where the variant ended with an error."""
    error: str | None = Field(default=None, exclude_if=absent)
    """What it ended with; elsewhere left out."""


class Sweep(Shown, Frozen):
    """All variants of a question, in their order."""

    lines: tuple[SweepLine, ...]
    """One a variant."""

    def headline(self) -> str:
        """Return how many variants have a proven answer, and how many ended with an error."""
        proven = sum(line.plan is not None and line.plan.status in PROVEN for line in self.lines)
        errors = sum(line.error is not None for line in self.lines)
        failed = f", {errors:,} with an error" if errors else ""
        return f"{plural(len(self.lines), 'variant')}, {proven:,} proven{failed}"

    def table(self) -> Table:
        """Return one row a variant."""
        varied = list(self.lines[0].variant) if self.lines else []
        return ((*varied, "answer"), [
            (*line.variant.values(), line.plan.headline() if line.plan else line.error) for line in self.lines])

    def records(self) -> list[Mapping[str, object]]:
        """Return one row an assignment or alternative of a variant; one alone where there is no plan."""
        return [{**line.variant, "status": line.plan.status if line.plan else None, "error": line.error, **row}
                for line in self.lines for row in ((line.plan.records() if line.plan else None) or [{}])]


class WrongLine(ValueError):
    """A line that this sweep did not write."""


def line_of(variant: Variant, outcome: VariantOutcome) -> str:
    """Return the line of an outcome: keys in the contract's order, the same bytes each time."""
    return _line(variant, outcome.plan, outcome.error)


def _line(variant: Variant, plan: Mapping[str, Any] | None, error: str | None) -> str:
    data = {"schema": SCHEMA, "variant": variant, "plan": plan, **({} if error is None else {"error": error})}
    return json_text(data)


@dataclass(frozen=True, slots=True)
class Kept:
    """A line that is there already; without a proof it stands only until its variant is answered again."""

    index: int
    text: str
    finished: bool


def kept(text: str, tasks: Mapping[frozenset[tuple[str, str]], SweepTask], digest: str) -> Kept:
    """Return a line as of one of `tasks`, which are by the items of their variants. Raises WrongLine."""
    try:
        data = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise WrongLine(f"not a line of {SCHEMA}") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("variant"), dict):
        raise WrongLine(f"not a line of {SCHEMA}")
    task = tasks.get(frozenset((path, str(value)) for path, value in data["variant"].items()))
    if task is None:
        raise WrongLine(f"its variant is not of this sweep: {json_text(data['variant'])}")
    plan, error = upgraded(data.get("plan")), data.get("error")
    if plan is None and isinstance(error, str):
        return Kept(task.index, _line(task.variant, None, error), False)
    if not isinstance(plan, dict) or not isinstance(plan.get("provenance"), dict):
        raise WrongLine(f"not a line of {SCHEMA}: it has neither plan nor error")
    _same_question(plan["provenance"], task, digest)
    return Kept(task.index, _line(task.variant, plan, None), plan.get("status") in PROVEN)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _same_question(provenance: Mapping[str, Any], task: SweepTask, digest: str) -> None:
    there, here = _flat(provenance.get("scenario")), _flat(task.question)
    for path in [*here, *there]:
        if there.get(path) != here.get(path):
            raise WrongLine(f"it answers another question: {path} is {there.get(path, 'open')!r} there, "
                            f"{here.get(path, 'open')!r} here")
    if provenance.get("catalog_digest") != digest:
        raise WrongLine(f"it was answered with catalog {provenance.get('catalog_digest')}, this one is {digest}")


def _flat(data: object, prefix: str = "") -> dict[str, object]:
    """Return nested data as path -> value, an empty mapping being its own value."""
    if not isinstance(data, dict) or not data:
        return {prefix.removesuffix("."): data}
    return {path: value for key, inner in data.items() for path, value in _flat(inner, f"{prefix}{key}.").items()}


def is_cut(text: str) -> bool:
    """Say whether a last line without its end is the beginning of one of ours: killed while writing."""
    if not (text.startswith(START) or START.startswith(text)):
        return False
    try:
        json.loads(text)
    except ValueError:
        return True
    return False
