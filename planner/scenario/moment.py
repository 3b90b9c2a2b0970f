"""Dates, spans of time, and rates by time, as a portfolio of jobs states them."""

from __future__ import annotations

import calendar
import re
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from planner.units import DAY, HOUR, SECONDS, USD, Quantity, parse, trimmed

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2})?", re.ASCII)
_GROWTH = re.compile(r"([+-]?\d+(?:\.\d+)?) ?% ?(?:/|per|a) ?(month|year)", re.IGNORECASE | re.ASCII)
_AT_ONCE = re.compile(r"0 ?(?:s|min|h|d|days?|w|weeks?)", re.ASCII)
WEEK = 7 * DAY
MONTHS = 12
PER_DAY = {f"{usd}/{time}": factor * DAY / seconds for usd, factor in USD.items()
           for time, seconds in (("d", DAY), ("day", DAY), ("h", HOUR), ("week", WEEK), ("w", WEEK))}


def moment_of(value: object) -> datetime:
    """Return a date, or a date with a time. Raises ValueError."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _DATE.fullmatch(trimmed(value, "date")):
        raise ValueError(f"{value!r} is not a date: write for example 2027-06-30, or 2027-06-30T18:00 (UTC), or a span "
                         "from the start of the horizon such as 3 d")
    try:
        return datetime.fromisoformat(trimmed(value, "date"))
    except ValueError:
        raise ValueError(f"{value!r} is not a date: there is no such day or hour") from None


def after(start: datetime, value: object) -> object:
    """Return the date that lies a span of time after the start; anything else as it is."""
    if isinstance(value, str) and _AT_ONCE.fullmatch(value.strip()):
        return written(start)
    try:
        return written(start + timedelta(seconds=parse(value, SECONDS, "span of time", "3 d")))
    except (ValueError, OverflowError):
        return value


def written(moment: datetime) -> str:
    """Write a moment as it is read: without the time where that is midnight."""
    return moment.strftime("%Y-%m-%d" if moment == moment.replace(hour=0, minute=0) else "%Y-%m-%dT%H:%M")


def iso(moment: datetime) -> str:
    """Write a moment as plans do: with time, up to the second, in UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


Moment = Annotated[datetime, PlainValidator(moment_of, json_schema_input_type=str),
                   PlainSerializer(written, return_type=str)]
"""A date (its 00:00 UTC) or a date with a time."""


def _growth(value: object) -> float:
    if isinstance(value, float):
        return value
    match = _GROWTH.fullmatch(trimmed(value, "growth")) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a growth: write for example '10%/month' or '50%/year'")
    share = float(match.group(1)) / 100
    if not -1 < share <= 10:
        raise ValueError(f"{value!r}: a growth is above -100% and at most 1000%")
    return share if match.group(2).lower() == "month" else (1 + share) ** (1 / MONTHS) - 1


Growth = Annotated[float, PlainValidator(_growth, json_schema_input_type=str),
                   PlainSerializer(lambda share: f"{share * 100:.10g}%/month", return_type=str)]
"""Share by which a rate grows from month to month."""
Span = Annotated[float, Quantity(SECONDS, "span of time", "52 weeks", "d", "h", "min", "s", least="1 s",
                                 most="36525 d")]
PerDay = Annotated[float, Quantity(PER_DAY, "price of a day", "20,000 USD/d", "USD/d", least="0.01 USD/d",
                                   most="1,000,000,000 USD/d")]


def months_since(start: datetime, now: datetime) -> int:
    """Return the whole months that have gone by; one that has no such day ends with its last."""
    months = (now.year - start.year) * MONTHS + now.month - start.month
    last = calendar.monthrange(now.year, now.month)[1]
    began = now.replace(day=min(start.day, last), hour=start.hour, minute=start.minute, second=0, microsecond=0)
    return months - (now < began)


def next_month(moment: datetime) -> datetime:
    """Return the start of the month after."""
    return (moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)).replace(day=1)
