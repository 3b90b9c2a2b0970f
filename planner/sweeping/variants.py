"""The variants of a question: the product of the values that `--vary PATH=V1,V2` names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from planner.errors import InputError, UnknownName

MOST = 100_000
"""Variants of one sweep; more are taken for a slip."""
Variant = dict[str, str]
"""Scenario path -> value as written, in the order of the --vary options."""


@dataclass(frozen=True, slots=True)
class Varied:
    """One scenario value and what it takes in turn, as written."""

    path: str
    values: tuple[str, ...]
    is_list: bool = False
    """Whether each value is a list, its parts joined by +."""


def varied(texts: Sequence[str], lists: Mapping[str, bool]) -> tuple[Varied, ...]:
    """Return what each `PATH=V1,V2` varies. `lists` has the paths there are, and which are lists. Raises InputError."""
    by_path: dict[str, Varied] = {}
    for text in texts:
        parsed = _varied(text, lists)
        if parsed.path in by_path:
            raise InputError(f"--vary {parsed.path}: given twice; write all its values in one, separated by commas")
        by_path[parsed.path] = parsed
    if not by_path:
        raise InputError("nothing is varied: say what takes which values in turn, as in --vary gpus=8,16, or from "
                         "Python vary={'gpus': [8, 16]}")
    if (count := prod(len(other.values) for other in by_path.values())) > MOST:
        raise InputError(f"--vary: {count:,} variants; a sweep has at most {MOST:,}")
    return tuple(by_path.values())


def _varied(text: str, lists: Mapping[str, bool]) -> Varied:
    path, equals, rest = (part.strip() for part in text.partition("="))
    if not equals or not path:
        raise InputError(f"--vary {text!r}: write PATH=V1,V2, for example limits.deadline=30d,60d")
    if path not in lists:
        raise UnknownName("scenario value in --vary", path, lists)
    values = tuple(value.strip() for value in rest.split(","))
    for value in values:
        if not all(_parts(value) if lists[path] else [value]):
            raise InputError(f"--vary {path}: empty value in {rest!r}")
        if values.count(value) > 1:
            raise InputError(f"--vary {path}: duplicate value {value!r}")
    return Varied(path, values, lists[path])


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split("+")]


def variants(axes: Sequence[Varied]) -> Iterator[Variant]:
    """Yield the product of all values; the last path varies fastest."""
    for values in product(*(axis.values for axis in axes)):
        yield dict(zip((axis.path for axis in axes), values, strict=True))


def overrides(variant: Mapping[str, str], axes: Sequence[Varied]) -> dict[str, object]:
    """Return a variant as `load_question` takes it: values of a list are split at `+`, others are left alone."""
    lists = {axis.path for axis in axes if axis.is_list}
    return {path: _parts(value) if path in lists else value for path, value in variant.items()}
