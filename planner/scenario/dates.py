"""Deadlines by the calendar as people say them, counted from today: 2027-03-01, March, end of June, Friday."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta

from planner.errors import InputError

_ISO = re.compile(r"(\d{4})-(\d{1,2})(?:-(\d{1,2}))?", re.ASCII)
_MONTHS = {name.lower(): month for names in (calendar.month_name, calendar.month_abbr)
           for month, name in enumerate(names) if name} | {"sept": 9}
_DAYS = {name.lower(): day for names in (calendar.day_name, calendar.day_abbr) for day, name in enumerate(names)}
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII)
_AHEAD: Mapping[str, Callable[[date], date]] = {
    "tomorrow": lambda today: today + timedelta(1), "this week": lambda today: today + timedelta(7 - today.weekday()),
    "this month": lambda today: date(today.year + today.month // 12, today.month % 12 + 1, 1),
    "this year": lambda today: date(today.year + 1, 1, 1)}
"""Days that are told by today; of what is on, the first day after it."""
_YEAR = re.compile(r"20\d{2}", re.ASCII)
_DECEMBER = 12


def days_until(text: str, today: date) -> int | None:
    """Return the days from `today` until the day that text names, the next such one where no year is said; none where
    it names none. Raises InputError for one that has passed.

    A month is its first day, as whoever says "by March" has February to work in; its end is the first of the next.
    """
    try:
        day = _named(text.lower().replace(",", " ").removeprefix("by ").split(), today)
    except ValueError:
        return None
    if day is not None and day <= today:
        raise InputError(f"{text!r} has passed: a deadline is after {today}")
    return None if day is None else (day - today).days


def _named(words: list[str], today: date) -> date | None:
    if len(words) == 1 and (iso := _ISO.fullmatch(words[0])):
        return date(int(iso[1]), int(iso[2]), int(iso[3] or 1))
    if words[-1:] and words[-1] in _DAYS and words[:-1] in ([], ["next"], ["this"], ["on"]):
        return today + timedelta((_DAYS[words[-1]] - today.weekday() - 1) % 7 + 1)
    if (soon := _AHEAD.get(" ".join(words))) is not None:
        return soon(today)
    ends, words = words[:2] == ["end", "of"], words[2:] if words[:2] == ["end", "of"] else words
    words = [word for word in words if word not in ("the", "of")]
    if ends and words in (["year"], ["this", "year"]):
        return date(today.year + 1, 1, 1)
    months, years = [word for word in words if word in _MONTHS], [word for word in words if _YEAR.fullmatch(word)]
    days = [int(match[1]) for word in words if word not in years and (match := _DAY.fullmatch(word))]
    if len(months) != 1 or len(months) + len(years) + len(days) != len(words) or len(years) > 1 or len(days) > 1:
        return None
    month, day = _MONTHS[months[0]], (days or [1])[0]
    year = int(years[0]) if years else today.year
    if ends:
        year, month = (year + 1, 1) if month == _DECEMBER else (year, month + 1)
    made = date(year, month, day)
    return made if years or made > today else date(year + 1, month, day)
