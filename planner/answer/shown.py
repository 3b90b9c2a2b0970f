"""How answers look in Python: one line in a terminal, a small table in a notebook, rows for a data frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from planner.answer.meant import Meant
from planner.errors import InputError, Unsupported
from planner.text_io import json_text

LONGEST = 50
"""Rows of a table in a notebook; more are counted."""
_TABLE = "border-collapse:collapse;text-align:left;font-variant-numeric:tabular-nums"
_CELL = "padding:2px 10px 2px 0;vertical-align:top;text-align:left"

Table = tuple[Sequence[str], Sequence[Sequence[object]]]
"""Heads of columns, and rows of cells."""


class Shown(Meant, ABC):
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

    def __eq__(self, other: object) -> bool:
        """Say whether both are written alike: what is read back equals what was written."""
        return self is other or (type(self) is type(other) and isinstance(other, Shown)
                                 and self.to_json() == other.to_json())

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.headline()}>"

    __str__ = __repr__

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

    def to_json(self) -> str:
        """Return what `--json` prints, as text, which `from_json` reads."""
        return json_text(self.to_dict(), indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the answer that was written as JSON. Raises InputError for text that is none."""
        assert issubclass(cls, BaseModel)
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise InputError(f"not the JSON of a {cls.__name__}: {error.errors()[0]['msg']}") from None

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
