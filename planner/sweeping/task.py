"""A variant ready to be solved, loaded and checked before any is; and what became of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.default import Default
from planner.scenario.load import Reference, load_question
from planner.scenario.portfolio import AnyQuestion
from planner.sweeping.variants import Variant, Varied, overrides, variants


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One variant with its resolved question; `index` is its place in the sweep."""

    index: int
    variant: Variant
    scenario: AnyQuestion
    defaults: tuple[Default, ...]

    @property
    def question(self) -> dict[str, Any]:
        """The resolved scenario as plans carry it in their provenance."""
        return self.scenario.model_dump(mode="json", exclude_none=True, by_alias=True)


@dataclass(frozen=True, slots=True)
class SweepTerms:
    """What holds for every variant: the user's catalog folders, the digest that they must have, the time limit."""

    folders: tuple[str, ...]
    digest: str
    time_limit: float | None = None


@dataclass(frozen=True, slots=True)
class VariantOutcome:
    """The plan of one variant as JSON data, or the error that it ended with."""

    index: int
    plan: dict[str, Any] | None
    error: str | None = None
    notes: tuple[str, ...] = ()


Answers = Callable[[Sequence[SweepTask]], Iterator[VariantOutcome]]
"""What an engine is: tasks in, outcomes out as they are done, in any order."""


def tasks(reference: Reference, axes: Sequence[Varied], catalog: Catalog,
          also: Mapping[str, object] | None = None, names: Mapping[str, str] | None = None) -> list[SweepTask]:
    """Return every variant of a scenario, resolved. Raises InputError that names the --vary at fault.

    `also` holds values by path that every variant has, and `names` what messages call them.
    """
    labels = {**(names or {}), **{axis.path: f"--vary {axis.path}" for axis in axes}}
    listed: list[SweepTask] = []
    asked: dict[str, Variant] = {}
    for index, variant in enumerate(variants(axes)):
        scenario, defaults = load_question(reference, {**(also or {}), **overrides(variant, axes)}, catalog,
                                           labels=labels)
        task = SweepTask(index, variant, scenario, tuple(defaults))
        same = asked.setdefault(json.dumps(task.question, sort_keys=True), variant)
        if same is not variant:
            raise _duplicate(same, variant)
        listed.append(task)
    return listed


def _duplicate(first: Variant, second: Variant) -> InputError:
    differing = [path for path, value in first.items() if second[path] != value]
    pairs = ", ".join(f"{first[path]!r} and {second[path]!r}" for path in differing)
    return InputError(f"--vary {', '.join(differing)}: duplicate variant: {pairs} ask the same question")


def spelled(variant: Variant) -> str:
    """Return a variant on one line, for messages."""
    return " ".join(f"{path}={value}" for path, value in variant.items())
