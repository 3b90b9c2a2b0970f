"""Fitted constants that lie over the entries they belong to: what `planner calibrate` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from planner.catalog.sourced import Fact, Sourced
from planner.errors import InputError
from planner.yaml_io import Frozen

S = TypeVar("S", bound=Sourced)


class Constant(Frozen):
    """One fitted figure in the base unit of its field: its relative uncertainty, and the rows that decide it."""

    value: float
    spread: float = Field(ge=0)
    """Standard deviation of its logarithm, or of its logit for a share."""
    rows: int = Field(ge=1)


class Fitted(Sourced):
    """Constants by entry ("stacks/fsdp2", "speeds/vllm") and dotted field; a release of speeds goes by its key."""

    values: dict[str, dict[str, Constant]]

    def over(self, entry: S, kind: str, name: str) -> S:
        """Return `entry` with what is fitted for kind/name, and where it comes from."""
        constants = self.values.get(f"{kind}/{name}", {})
        return self.applied(entry, constants)

    def applied(self, entry: S, constants: Mapping[str, Constant]) -> S:
        """Return `entry` with `constants` by field, and where they come from."""
        if not constants:
            return entry
        for field in constants:
            if value_of(entry, field) is None:
                raise InputError(f"fitted: {entry.name} has no figure {field}; run planner calibrate again")
        facts = {_path(entry, field): Fact(source=self.source, as_of=self.as_of, kind="fitted",
                             note=f"{constant.rows} rows, spread {constant.spread:.2f}")
                 for field, constant in constants.items()}
        changed = with_values(entry, {field: constant.value for field, constant in constants.items()})
        return changed.model_copy(update={"facts": {**entry.facts, **facts}})


def with_values(entry: S, values: Mapping[str, float]) -> S:
    """Return a copy with some figures changed; a dotted field is one of a nested entry or mapping."""
    changes: dict[str, Any] = {}
    for field, value in values.items():
        top, _, inner = field.partition(".")
        held = changes.get(top, getattr(entry, top))
        if not inner:
            changes[top] = value
        elif isinstance(held, BaseModel):
            changes[top] = held.model_copy(update={inner: value})
        elif isinstance(held, dict):
            changes[top] = {**held, inner: value}
        elif isinstance(held, tuple):
            key, _, figure = inner.rpartition(".")
            changes[top] = tuple(one.model_copy(update={figure: value}) if one.key == key else one for one in held)
    return entry.model_copy(update=changes)


def value_of(entry: Sourced, field: str) -> float | None:
    """Return the figure in a dotted field; none where the entry has none."""
    top, _, inner = field.partition(".")
    held: Any = getattr(entry, top, None)
    if isinstance(held, tuple):
        key, _, inner = inner.rpartition(".")
        held = next((one for one in held if getattr(one, "key", None) == key), None)
    for part in inner.split(".") if inner else ():
        held = held.get(part) if isinstance(held, dict) else getattr(held, part, None)
    return float(held) if isinstance(held, int | float) else None


def _path(entry: Sourced, field: str) -> str:
    """Return a dotted field with the key of a release as its place among them, as an entry's provenance has it."""
    top, _, inner = field.partition(".")
    held = getattr(entry, top)
    if not isinstance(held, tuple):
        return field
    key, _, figure = inner.rpartition(".")
    return f"{top}.{[one.key for one in held].index(key)}.{figure}"
