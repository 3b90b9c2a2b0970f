"""Dates by the calendar as people say them, from a day on: 2027-03-01, March, end of June, Q3, Friday."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta

from planner.errors import InputError

_PART = re.compile(r"(20\d{2})-?([qh]\d)|([qh]\d)-?(20\d{2})", re.ASCII)
_ISO = re.compile(r"(\d{4})-(\d{1,2})(?:-(\d{1,2}))?", re.ASCII)
_SLASHED = re.compile(r"(\d{1,4})/(\d{1,2})/(\d{1,4})|(\d{1,4})\.(\d{1,2})\.(\d{1,4})", re.ASCII)
"""02/15/2027, 15.2.2027 and 2027/02/15."""
_MONTHS = {name.lower(): month for names in (calendar.month_name, calendar.month_abbr)
           for month, name in enumerate(names) if name} | {"sept": 9}
_DAYS = {name.lower(): day for names in (calendar.day_name, calendar.day_abbr) for day, name in enumerate(names)}
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII)
_AHEAD: Mapping[str, Callable[[date], date]] = {
    "tomorrow": lambda today: today + timedelta(1), "this week": lambda today: today + timedelta(7 - today.weekday()),
    "this month": lambda today: date(today.year + today.month // 12, today.month % 12 + 1, 1),
    "this year": lambda today: date(today.year + 1, 1, 1)}
"""Days that are told by today; of what is on, the first day after it."""
_FEASTS = {"christmas": (12, 25), "xmas": (12, 25), "new year": (1, 1), "new years": (1, 1), "new year's": (1, 1)}
"""Days that have the same date every year."""
_YEAR = re.compile(r"(?:19|20|21)\d{2}", re.ASCII)
MONTHS = 12
_PARTS = {f"{letter}{number}": (1 + months * (number - 1), months) for letter, months in (("q", 3), ("h", 6))
          for number in range(1, 1 + MONTHS // months)}
"""First month and months of quarters and halves of a year."""
_PLACES: Mapping[tuple[str, ...], str] = {
    ("end", "of"): "end", ("start", "of"): "start", ("beginning", "of"): "start", ("early",): "start",
    ("middle", "of"): "middle", ("mid",): "middle"}
_MIDDLE, _LONGEST_MONTH = 15, 31
"""Day of a month, and its days at most."""


def days_until(text: str, today: date) -> int | None:
    """Return the days from `today` until the day that text names, the next such one where no year is said; none where
    it names none. Raises InputError for one that has passed, and for what may be two days.

    A month is its first day, as whoever says "by March" has February to work in; its end is the first of the next.
    """
    if wrong := of_two_days(text):
        raise InputError(wrong)
    day = None if text.strip().isdecimal() else _named(text, today)
    if day is not None and day <= today:
        raise InputError(f"{text!r} has passed: a deadline is after {today}")
    return None if day is None else (day - today).days


def stretch(text: str, since: date | None, *, begun: bool = True) -> tuple[date, date] | None:
    """Return the first day of what text names and the first after it: a day, a month, a quarter, half a year or a year;
    none where it names none. Its end is the first day after it twice.

    Where no year is said it is the first that ends after `since`, or begins after it where it may not have begun.
    """
    words = _words(text)
    place = next((where for said, where in _PLACES.items() if tuple(words[:len(said)]) == said), "")
    words = words[next((len(said) for said in _PLACES if tuple(words[:len(said)]) == said), 0):]
    words = [word for word in words if word not in ("the", "of")]
    years = [int(word) for word in words if _YEAR.fullmatch(word)]
    words = [word for word in words if not _YEAR.fullmatch(word)]
    if len(years) > 1 or (not years and (since is None or not words)):
        return None
    for year in years or (0 if since is None else since.year + more for more in (0, 1)):
        try:
            found = _in_year(words, year)
        except ValueError:
            return None
        if found is None:
            return None
        first, after = found
        if place == "middle":
            if (after - first).days > _LONGEST_MONTH or (after - first).days <= 1:
                return None
            first = first.replace(day=_MIDDLE)
            after = first + timedelta(1)
        first = after if place == "end" else first
        if years or since is None or (after if begun else first) > since:
            return first, after
    return None


def _words(text: str) -> list[str]:
    """Return what a date is written in, with year, month and day of 2027-03-01 and 2027-Q3 as words."""
    words = text.lower().replace(",", " ").replace("mid-", "mid ").removeprefix("by ").split()
    if len(words) and (days := _slashed(words[-1])):
        words[-1] = days[0] if len(days) == 1 else "?"
    if len(words) and (iso := _ISO.fullmatch(words[-1])):
        words[-1:] = [iso[1], calendar.month_name[int(iso[2])].lower() if int(iso[2]) <= MONTHS else "?",
                      *([iso[3]] if iso[3] else [])]
    elif len(words) and (part := _PART.fullmatch(words[-1])):
        words[-1:] = [part[1], part[2]] if part[1] else [part[4], part[3]]
    return words


def _slashed(word: str) -> list[str]:
    """Return the days, as 2027-02-15, that a date with slashes or points may be, which are two where day and month
    could be either; none where it is none.
    """
    match = _SLASHED.fullmatch(word)
    if match is None:
        return []
    first, second, third = (part for part in match.groups() if part is not None)
    if len(first) == len("2027"):
        ways = [(first, second, third)]
    else:
        # with points the day stands first everywhere
        ways = [(third, second, first)] + ([] if "." in word else [(third, first, second)])
    return sorted({f"{year}-{int(month):02}-{int(day):02}" for year, month, day in ways
                   if len(year) == len("2027") and len(day) < len("100") and 1 <= int(month) <= MONTHS})


def of_two_days(text: str) -> str:
    """Return what is wrong with a date such as 03/04/2027, which may mean two days; nothing for any other text."""
    words = text.split()
    days = _slashed(words[-1]) if words else []
    return f"{text!r} may be two days: write {' or '.join(days)}" if len(days) > 1 else ""


def _in_year(words: list[str], year: int) -> tuple[date, date] | None:
    """Return the first day of what words name in a year, and the first after it. Raises ValueError for no such day."""
    if not words:
        return date(year, 1, 1), date(year + 1, 1, 1)
    if words[0] in _PARTS and len(words) == 1:
        month, months = _PARTS[words[0]]
        return date(year, month, 1), _months_on(date(year, month, 1), months)
    named, days = [word for word in words if word in _MONTHS], [_DAY.fullmatch(word) for word in words]
    numbers = [int(match[1]) for match in days if match]
    if len(named) != 1 or len(named) + len(numbers) != len(words) or len(numbers) > 1:
        return None
    first = date(year, _MONTHS[named[0]], (numbers or [1])[0])
    return first, first + timedelta(1) if numbers else _months_on(first, 1)


def _months_on(first: date, months: int) -> date:
    return date(first.year + (first.month + months > MONTHS), (first.month + months - 1) % MONTHS + 1, 1)


def _named(text: str, today: date) -> date | None:
    words = text.lower().replace(",", " ").removeprefix("by ").split()
    if words[-1:] and words[-1] in _DAYS and words[:-1] in ([], ["next"], ["this"], ["on"]):
        return today + timedelta((_DAYS[words[-1]] - today.weekday() - 1) % 7 + 1)
    if (soon := _AHEAD.get(" ".join(words))) is not None:
        return soon(today)
    if words in (["end", "of", "the", "year"], ["end", "of", "year"], ["end", "of", "this", "year"]):
        return date(today.year + 1, 1, 1)
    if (feast := _FEASTS.get(" ".join(words))) is not None:
        return next(day for day in (date(today.year + more, *feast) for more in (0, 1)) if day > today)
    found = stretch(text, today, begun=False)
    return None if found is None else found[0]
