"""A deadline by the calendar is so many days from today."""

from __future__ import annotations

from datetime import date

import pytest

from planner.errors import InputError
from planner.scenario.dates import days_until
from planner.scenario.said import by_calendar

TODAY = date(2026, 11, 26)


@pytest.mark.parametrize(("text", "day"), [
    ("2027-03-01", date(2027, 3, 1)), ("2027-03", date(2027, 3, 1)), ("March", date(2027, 3, 1)),
    ("02/15/2027", date(2027, 2, 15)), ("15.02.2027", date(2027, 2, 15)), ("15/02/2027", date(2027, 2, 15)),
    ("31/31/2027", None),
    ("by march 15", date(2027, 3, 15)), ("15 March 2028", date(2028, 3, 15)), ("March 1st, 2027", date(2027, 3, 1)),
    ("december", date(2026, 12, 1)), ("November", date(2027, 11, 1)), ("end of December", date(2027, 1, 1)),
    ("end of the year", date(2027, 1, 1)), ("tomorrow", date(2026, 11, 27)),
    ("Q2", date(2027, 4, 1)), ("end of Q1 2027", date(2027, 4, 1)), ("2027-Q3", date(2027, 7, 1)),
    ("end of H1", date(2027, 7, 1)), ("mid-July", date(2027, 7, 15)), ("early May", date(2027, 5, 1)),
    ("end of 2027", date(2028, 1, 1)), ("middle of Q2", None), ("q5", None), ("2027-13", None), ("2027", None),
    ("friday", date(2026, 11, 27)), ("next thursday", date(2026, 12, 3)),
    ("30d", None), ("2 weeks", None), ("Smarch", None), ("feb 30", None), ("5", None),
    ("", None), ("march april", None)])
def test_days_are_counted_until_it(text: str, day: date | None) -> None:
    assert days_until(text, TODAY) == (None if day is None else (day - TODAY).days)


def test_a_day_that_has_passed_is_refused() -> None:
    with pytest.raises(InputError, match="'2025-01-01' has passed: a deadline is after 2026-11-26"):
        days_until("2025-01-01", TODAY)
    with pytest.raises(InputError, match="'03/04/2027' may be two days: write 2027-03-04 or 2027-04-03"):
        days_until("03/04/2027", TODAY)


def test_a_deadline_in_days_is_left_as_it_is() -> None:
    assert by_calendar({"limits.deadline": "30d"}, TODAY) == {"limits.deadline": "30d"}
    assert by_calendar({"limits.deadline": "March"}, TODAY) == {"limits.deadline": "95 d"}
