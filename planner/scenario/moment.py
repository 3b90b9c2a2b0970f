"""Dates, spans of time, and rates by time, as a portfolio of jobs states them."""

from __future__ import annotations

import calendar
import re
from datetime import date, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, PlainValidator

from planner.scenario.dates import MONTHS, days_until, of_two_days, stretch
from planner.units import DAY, HOUR, SECONDS, USD, Quantity, parse, trimmed

_DATE = re.compile(r"(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?)(?:Z|\+00:00)?", re.ASCII)
_GROWTH = re.compile(r"([+-]?\d+(?:\.\d+)?) ?% ?(?:/|per|a) ?(month|year)", re.IGNORECASE | re.ASCII)
_TO = re.compile(r" (?:to|until|till|through|-|–|—) |\.\.| ?(?:->|→) ?", re.IGNORECASE)
_AT_ONCE = re.compile(r"0 ?(?:s|min|h|d|days?|w|weeks?)", re.ASCII)
WEEK = 7 * DAY
PER_DAY = {f"{usd}/{time}": factor * DAY / seconds for usd, factor in USD.items()
           for time, seconds in (("d", DAY), ("day", DAY), ("h", HOUR), ("week", WEEK), ("w", WEEK))}


def moment_of(value: object) -> datetime:
    """Return a date, or a date with a time. Raises ValueError."""
    if isinstance(value, datetime):
        return value
    written_out = _DATE.fullmatch(trimmed(value, "date")) if isinstance(value, str) else None
    if written_out is not None:
        try:
            return datetime.fromisoformat(written_out[1])
        except ValueError:
            raise ValueError(f"{value!r} is not a date: there is no such day or hour") from None
    named = stretch(value, None) if isinstance(value, str) else None
    if named is None and isinstance(value, str) and (wrong := of_two_days(value)):
        raise ValueError(wrong)
    if named is None:
        raise ValueError(f"{value!r} is not a date: write for example 2027-06-30, 2027-06-30T18:00 (UTC), March, end "
                         "of Q2, or a span from the start of the horizon such as 3 d")
    return _midnight(named[0])


def end_of(value: object) -> datetime:
    """Return the first moment after what ends with a date or, as 2027-12, with all of a month. Raises ValueError."""
    whole = stretch(value, None) if isinstance(value, str) and not _DATE.fullmatch(value.strip()) else None
    return moment_of(value) if whole is None else _midnight(whole[1])


def after(start: datetime, value: object, *, begins: bool = False) -> object:
    """Return the date that lies a span of time after the start, or that is named by the calendar; anything else as it
    is. What `begins` with a month that began before the start begins with that.
    """
    if isinstance(value, str) and _AT_ONCE.fullmatch(value.strip()):
        return written(start)
    named = stretch(value, start.date()) if isinstance(value, str) and not _DATE.fullmatch(value.strip()) else None
    if named is not None:
        first, then = (_midnight(day) for day in named)
        return written(start if begins and first < start < then else first)
    try:
        return written(start + timedelta(seconds=parse(value, SECONDS, "span of time", "3 d")))
    except (ValueError, OverflowError):
        text = value.strip() if isinstance(value, str) else ""
        # what is wrong with a date is told where it is read as one, with its place
        days = None if _DATE.fullmatch(text) or of_two_days(text) else days_until(text, start.date())
        return value if days is None else written(_midnight(start.date()) + timedelta(days))


def from_to(value: object) -> list[str]:
    """Return the two dates of `2027-04-05 to 2027-04-07`; none of any other text."""
    said = [part.strip() for part in _TO.split(value)] if isinstance(value, str) else []
    return said if len(said) == len(("first", "last")) and all(said) else []


def days_of(start: datetime, value: object) -> object:
    """Return the first and last day of what the calendar names, such as a month, or of two dates with `to` between;
    anything else as a date.
    """
    if said := from_to(value):
        return [after(start, day) for day in said]
    named = stretch(value, start.date()) if isinstance(value, str) else None
    return after(start, value) if named is None else [written(_midnight(day)) for day in (
        named[0], max(named[0], named[1] - timedelta(days=1)))]


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def written(moment: datetime) -> str:
    """Write a moment as it is read: without the time where that is midnight, and without seconds where there are none.
    """
    if moment == moment.replace(hour=0, minute=0, second=0):
        return moment.strftime("%Y-%m-%d")
    return moment.strftime("%Y-%m-%dT%H:%M:%S" if moment.second else "%Y-%m-%dT%H:%M")


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
_EACH = {"hourly": "hour", "daily": "day", "weekly": "week", "biweekly": "2 weeks", "monthly": "month",
         "quarterly": "3 months", "yearly": "year"}


def _one_of(value: object) -> object:
    """Read `a week`, `weekly` and `week` as 1 week."""
    said = value.strip().lower() if isinstance(value, str) else ""
    said = _EACH.get(said, said.removeprefix("every ").removeprefix("a "))
    counted = said if said[:1].isdecimal() else f"1 {said}"
    try:
        parse(counted, SECONDS, "span of time", "3 d")
    except ValueError:
        return value
    return counted if said.isalpha() or said in _EACH.values() else value


Span = Annotated[float, Quantity(SECONDS, "span of time", "52 weeks", "d", "h", "min", "s", least="1 s",
                                 most="36525 d"), BeforeValidator(_one_of)]
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
