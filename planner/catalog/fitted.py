"""Fitted constants that lie over the entries they belong to: what `planner calibrate` writes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, PrivateAttr, ValidationError

from planner.catalog.ranges import Rows
from planner.catalog.sourced import Fact, Sourced
from planner.errors import InputError
from planner.text_io import read_text, real
from planner.yaml_io import Frozen, parse, validate

S = TypeVar("S", bound=Sourced)
FITTED = "fitted"
"""Name of the file of fitted constants; the quantiles of what they leave lie beside it."""


class Constant(Frozen):
    """One fitted figure in the base unit of its field: its relative uncertainty, and the rows that decide it."""

    value: Annotated[float, Field(ge=-1e18, le=1e18)]
    spread: Annotated[float, Field(ge=0, le=1e6)]
    """Standard deviation of its logarithm, or of its logit for a share."""
    rows: Rows


class Fitted(Sourced):
    """Constants by entry ("stacks/fsdp2", "speeds/vllm") and dotted field; a release of speeds goes by its key."""

    values: dict[str, dict[str, Constant]]
    residuals: dict[str, str] = Field(default_factory=dict)
    """Files of the same fit -> digest of their text: these constants with other residuals are half a fit."""

    _applied: dict[tuple[object, ...], tuple[Sourced, Sourced]] = PrivateAttr(default_factory=dict)
    """What was made, by the entry and the fields over it: both are read once in a process."""

    def over(self, entry: S, kind: str, name: str) -> S:
        """Return `entry` with what is fitted for kind/name, and where it comes from."""
        constants = self.values.get(f"{kind}/{name}", {})
        return self.applied(entry, constants)

    def applied(self, entry: S, constants: Mapping[str, Constant]) -> S:
        """Return `entry` with `constants` by field, and where they come from."""
        if not constants:
            return entry
        known = id(entry), *constants
        if known not in self._applied:
            self._applied[known] = entry, self._over(entry, constants)
        changed = self._applied[known][1]
        assert isinstance(changed, type(entry))
        return changed

    def _over(self, entry: S, constants: Mapping[str, Constant]) -> S:
        for field in constants:
            if value_of(entry, field) is None:
                raise InputError(f"fitted: {entry.name} has no figure {field}; run planner calibrate again")
        facts = {_path(entry, field): Fact(source=self.source, as_of=self.as_of, kind="fitted",
                             note=f"{constant.rows} rows, spread {constant.spread:.2f}")
                 for field, constant in constants.items()}
        changed = with_values(entry, {field: constant.value for field, constant in constants.items()})
        _within_ranges(changed, constants)
        return changed.model_copy(update={"facts": {**entry.facts, **facts}})


def _within_ranges(entry: Sourced, fields: Iterable[str]) -> None:
    """Raise InputError where a fitted figure is outside what its field may be."""
    tops = {field.partition(".")[0] for field in fields}
    try:
        type(entry).model_validate(entry.model_dump(mode="json"))
    except ValidationError as error:
        # a default of zero has no text that reads back, so that only what was fitted is looked at
        for problem in error.errors():
            if problem["loc"] and problem["loc"][0] in tops:
                where = ".".join(map(str, problem["loc"]))
                raise InputError(f"fitted: {entry.name}.{where}: {problem['msg']}; run planner calibrate again"
                                 ) from None


def text_digest(text: str) -> str:
    """Return a digest of a text's lines, however they end."""
    return hashlib.sha256("\n".join(text.splitlines()).encode()).hexdigest()[:16]


def fitted_files(roots: Sequence[Path], unfitted: Path | None) -> list[Path]:
    """Return the files of fitted constants in catalog folders, the stronger later; `unfitted` is left out."""
    kept = [root for root in roots if unfitted is None or real(root) != real(unfitted)]
    return [file for root in kept if (file := root / "calibration" / f"{FITTED}.yaml").is_file()]


def read_fitted(path: Path) -> Fitted:
    """Return the fitted constants of a file. Raises InputError where residuals beside it are not of the same fit."""
    fitted = _parsed(read_text(path), str(path))
    for name, digest in fitted.residuals.items():
        beside = path.with_name(f"{name}.yaml")
        if text_digest(read_text(beside)) != digest:
            raise InputError(f"not of the same fit as {path.name} beside it: run planner calibrate again",
                             file=str(beside))
    return fitted


@lru_cache(maxsize=64)
def _parsed(text: str, file: str) -> Fitted:
    return validate(parse(text, file), Fitted)


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
            key, _, figure = inner.partition(".")
            one = held.get(key)
            changes[top] = {**held, **({key: one.model_copy(update={figure: value})} if isinstance(one, BaseModel)
                                       else {inner: value})}
        elif isinstance(held, tuple):
            key, _, figure = inner.rpartition(".")
            changes[top] = tuple(item.model_copy(update={figure: value}) if item.key == key else item for item in held)
    return entry.model_copy(update=changes)


def value_of(entry: Sourced, field: str) -> float | None:
    """Return the figure in a dotted field; none where the entry has none."""
    top, _, inner = field.partition(".")
    held: Any = getattr(entry, top, None)
    if isinstance(held, tuple):
        key, _, inner = inner.rpartition(".")
        held = next((item for item in held if getattr(item, "key", None) == key), None)
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
    return f"{top}.{[item.key for item in held].index(key)}.{figure}"
