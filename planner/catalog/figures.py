"""A catalog entry as figures, each with where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalog.sourced import Fact, Sourced

_ABOUT = frozenset({"name", "aliases", "source", "as_of", "kind", "note", "facts"})


@dataclass(frozen=True, slots=True)
class Figure:
    """One fact of an entry: its dotted path, its value with unit, and its provenance."""

    path: str
    value: str
    fact: Fact


def figures(entry: Sourced) -> list[Figure]:
    """Return every stated figure of `entry`, in the order of its schema."""
    data = entry.model_dump(mode="json", exclude_none=True)
    stated = {key: value for key, value in data.items() if key not in _ABOUT}
    return [Figure(path, text, own or entry.provenance(path)) for path, text, own in _flat(stated, "", None)]


def _flat(value: object, path: str, own: Fact | None) -> Iterator[tuple[str, str, Fact | None]]:
    """Yield path, text and, where a nested entry states its own source, that."""
    if isinstance(value, dict):
        if {"source", "as_of", "kind"} <= value.keys():
            own = Fact.model_validate({key: value[key] for key in ("source", "as_of", "kind")})
            value = {key: inner for key, inner in value.items() if key not in _ABOUT}
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key), own)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for at, inner in enumerate(value):
            yield from _flat(inner, f"{path}.{at}", own)
    elif value not in ([], ""):
        yield path, _text(value), own


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_text(inner) for inner in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
