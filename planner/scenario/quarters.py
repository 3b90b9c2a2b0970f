"""A budget of calendar quarters: one amount for each of them, or an amount for some, such as `2027-Q1: 4 MUSD`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, get_args

from pydantic import PlainSerializer, PlainValidator

from planner.scenario.dates import MONTHS, stretch
from planner.units import Money, Quantity, exact

MONTHS_OF_QUARTER = 3
_MONEY: Quantity = get_args(Money)[1]
_NAME = re.compile(r"20\d\d-Q[1-4]", re.ASCII)


def quarter_of(day: date) -> str:
    """Return the calendar quarter that a day lies in, as 2027-Q1."""
    return f"{day.year}-Q{(day.month - 1) // MONTHS_OF_QUARTER + 1}"


def quarter_after(moment: datetime) -> datetime:
    """Return the start of the calendar quarter after the one that a moment lies in."""
    month = (moment.month - 1) // MONTHS_OF_QUARTER * MONTHS_OF_QUARTER + MONTHS_OF_QUARTER + 1
    return datetime(moment.year + month // (MONTHS + 1), (month - 1) % MONTHS + 1, 1)


def quarter_named(text: object, since: date) -> str | None:
    """Return the quarter that text such as Q2, 2027-Q2 or Q2 2027 names, the next from a day on; none for other text.
    """
    named = stretch(text, since) if isinstance(text, str) else None
    if named is None or quarter_after(datetime(named[0].year, named[0].month, 1)).date() != named[1]:
        return None
    return quarter_of(named[0]) if named[0].month % MONTHS_OF_QUARTER == 1 else None


def from_day(said: object, start: datetime) -> object:
    """Return amounts under the quarters that they are of: those of a list are of one quarter after another from the
    first day on. Anything else as it is.
    """
    if isinstance(said, Mapping):
        return {quarter_named(key, start.date()) or key: value for key, value in said.items()}
    if not isinstance(said, list | tuple):
        return said
    named, moment = dict[str, object](), start
    for amount in said:
        named[quarter_of(moment)], moment = amount, quarter_after(moment)
    return named


def _read(value: object) -> float | dict[str, float]:
    if not isinstance(value, Mapping):
        return _MONEY.read(value)
    if not value:
        raise ValueError("expected an amount, or quarters with theirs: {2027-Q1: 4 MUSD}")
    for key in value:
        if not isinstance(key, str) or not _NAME.fullmatch(key):
            raise ValueError(f"{key!r} is not a calendar quarter: write for example {{2027-Q1: 4 MUSD}}")
    return {key: _amount(key, value[key]) for key in sorted(value)}


def _amount(key: str, value: object) -> float:
    try:
        return _MONEY.read(value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _write(value: float | Mapping[str, float]) -> str | dict[str, str]:
    return {key: _written(usd) for key, usd in value.items()} if isinstance(value, Mapping) else _written(value)


def _written(usd: float) -> str:
    return exact(usd, _MONEY.units, *_MONEY.shown)


ByQuarter = Annotated[float | dict[str, float], PlainValidator(_read, json_schema_input_type=str | dict[str, str]),
                      PlainSerializer(_write, return_type=str | dict[str, str])]
"""The most in any calendar quarter, or in each that is named; USD."""
