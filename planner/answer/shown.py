"""How answers look in Python: one line in a terminal, a small table in a notebook, rows for a data frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from planner.errors import Unsupported, did_you_mean

SHORT = 2
"""Letters of a word that says nothing of what is meant: to, as, of."""
LONGEST = 50
"""Rows of a table in a notebook; more are counted."""
_TABLE = "border-collapse:collapse;text-align:left;font-variant-numeric:tabular-nums"
_CELL = "padding:2px 10px 2px 0;vertical-align:top;text-align:left"

Table = tuple[Sequence[str], Sequence[Sequence[object]]]
"""Heads of columns, and rows of cells."""


class Shown(ABC):
    """What every answer of `import planner` can do: show itself in short, and become a data frame."""

    __slots__ = ()

    @abstractmethod
    def headline(self) -> str:
        """Return the status and the headline figures on one line."""

    @abstractmethod
    def table(self) -> Table:
        """Return what a notebook shows of it."""

    @abstractmethod
    def records(self) -> list[Mapping[str, object]]:
        """Return the rows of its data frame."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.headline()}>"

    __str__ = __repr__

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> object:
            """Return what is meant by another name, of the answer or a block of it; refuse any other."""
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name.startswith("_"):
                    raise
                meant = _meant(self, name)
                if len(meant) == 1:
                    return meant[0]
                raise AttributeError(f"{type(self).__name__} has no {name!r}{_alike(self, name)}") from None

    def _repr_html_(self) -> str:
        """Return a table that needs nothing around it, as notebooks ask for; every text is escaped."""
        heads, rows = self.table()
        more = len(rows) - LONGEST
        shown = "".join(f"<tr>{''.join(_cell('td', cell) for cell in row)}</tr>" for row in rows[:LONGEST])
        head = f"<tr>{''.join(_cell('th', title) for title in heads)}</tr>"
        rest = f"<p>and {more:,} more</p>" if more > 0 else ""
        return (f'<div><p><b>{escape(type(self).__name__)}</b>: {escape(self.headline())}</p>'
                f'<table style="{_TABLE}"><thead>{head}</thead><tbody>{shown}</tbody></table>{rest}</div>')

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints, as a dictionary."""
        assert isinstance(self, BaseModel)
        return self.model_dump(mode="json", by_alias=True)

    def to_frame(self) -> Any:  # noqa: ANN401 - a frame of whichever library there is
        """Return the rows as a frame of pandas, or of polars where only that is installed; nested keys have dots.

        Raises Unsupported where neither is installed.
        """
        records = self.records()
        for library in ("pandas", "polars"):
            if find_spec(library) is not None:
                return import_module(library).DataFrame(records)
        raise Unsupported("to_frame without pandas or polars: install one, such as pip install 'planner[frame]'")


def _cell(tag: str, value: object) -> str:
    return f'<{tag} style="{_CELL}">{escape("" if value is None else str(value))}</{tag}>'


def flat(answer: BaseModel) -> dict[str, object]:
    """Return a model as one row: nested keys joined by dots, lists left out."""
    return dict(_flat(answer.model_dump(mode="json", by_alias=True), ""))


def _flat(data: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list):
            yield prefix + key, value


def _meant(answer: BaseModel, name: str) -> list[object]:
    """Return the values that people call by a name (cost, days, step_time), nearest to the answer: its own fields',
    then those of the only assignment, then of its blocks.
    """
    level = [answer]
    while level:
        here = [(field, getattr(model, field)) for model in level for field in type(model).model_fields]
        if own := [getattr(model, name) for model in level if isinstance(getattr(type(model), name, None), property)]:
            return own
        if found := [value for field, value in here if value is not None and name.lower() in _called(field)]:
            return found
        level = [inner for field, value in here if field not in _ASIDE for inner in (
            value if isinstance(value, tuple) and len(value) == 1 and field == _ONLY else [value])
            if isinstance(inner, BaseModel)]
    return []


def _called(field: str) -> set[str]:
    """Return what people call a field: cost_usd also cost, step_seconds step_time, duration_days days."""
    front, _, unit = field.rpartition("_")
    of_units = {front, *({f"{front}_time"} if unit == "seconds" else ())} if unit in _UNITS else set()
    return {field, *of_units, *({unit} if field == "duration_days" else ())} - {""}


_UNITS = ("usd", "seconds", "days", "bytes", "kwh", "kg")
"""Units that the names of fields end with."""
_ASIDE = ("provenance", "search", "objective", "doubt", "added", "counted", "infeasible")
"""Blocks of an answer that are of the question or the search, and not of what is planned."""
_ONLY = "assignments"


def _alike(model: object, name: str) -> str:
    """Return which fields are meant by a name, of the answer or of the first in one of its lists, to end a message."""
    assert isinstance(model, BaseModel)
    fields = [*type(model).model_fields, "to_dict()"]
    firsts = {field: value[0] for field in type(model).model_fields if isinstance(
        value := getattr(model, field), tuple) and value and isinstance(value[0], BaseModel)}
    inner = [f"{field}[0].{key}" for field, first in firsts.items() for key in type(first).model_fields]
    words = [word for word in name.lower().split("_") if len(word) > SHORT]
    near = [each for each in (*fields, *inner) if any(word in each for word in words)]
    return f"; did you mean {', '.join(near[:3])}?" if near else did_you_mean(name, fields)
