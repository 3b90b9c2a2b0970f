"""Jobs that come back: when each instance is released, and by when it must have ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from planner.scenario.dates import stretch
from planner.scenario.horizon import Horizon
from planner.scenario.moment import after, moment_of, written
from planner.units import SECONDS, exact, parse

_OF_RELEASE = re.compile(r"(?:within )?(.+?)(?: after (?:its |each |the )?(?:release|start))?", re.IGNORECASE)


def due_said(start: datetime, job: Mapping[str, object]) -> object:
    """Return a job's deadline: a span of time as it is where `every` releases the job again and again, so that it is
    each instance's from its release; else the date that it is from the start of the horizon, or from a release that it
    names (`3 d after release`). Anything else as it is. Raises ValueError for a month or a quarter that has begun.
    """
    value = job["deadline"]
    named = stretch(value, start.date()) if isinstance(value, str) else None
    if named is not None and named[0] <= start.date() < named[1] - timedelta(days=1):
        raise ValueError(f"{job.get('name')}: deadline {value} is its first day, {named[0]}, and the horizon begins "
                         f"{written(start)}: write end of {value} for its end")
    match = _OF_RELEASE.fullmatch(value.strip()) if isinstance(value, str) else None
    span = None if match is None else _span(match[1])
    if match is None or span is None:
        return after(start, value)
    if job.get("every") is not None:
        return match[1]
    try:
        since = moment_of(after(start, job["release"], begins=True)) if (
            match[0].lower().endswith(("release", "start")) and job.get("release") is not None) else start
    except ValueError:
        return value
    return written(since + span)


def _span(text: str) -> timedelta | None:
    try:
        return timedelta(seconds=parse(text, SECONDS, "span of time", "3 d"))
    except (ValueError, OverflowError):
        return None


def _due(value: object) -> datetime | timedelta:
    if isinstance(value, timedelta):
        return value
    span = _span(value) if isinstance(value, str) else None
    return moment_of(value) if span is None else span


def due_written(due: datetime | timedelta) -> str:
    """Write a deadline as it is read."""
    return written(due) if isinstance(due, datetime) else exact(due.total_seconds(), SECONDS, "d", "h", "min", "s")


Due = Annotated[datetime | timedelta, PlainValidator(_due, json_schema_input_type=str),
                PlainSerializer(due_written, return_type=str)]
"""A date, or a span of time from a release."""


def releases(horizon: Horizon, release: datetime | None, every: float | None, count: int | None) -> Iterator[datetime]:
    """Yield when each instance of a job is released. every: seconds; as long as such a span ends within the horizon."""
    moment = release or horizon.start
    if every is None:
        yield from [moment] * (count or 1)
        return
    span, number = timedelta(seconds=every), 0
    while moment + span <= horizon.end and (count is None or number < count):
        yield moment
        moment, number = moment + span, number + 1


def expect_in_time(where: str, horizon: Horizon, release: datetime | None, every: float | None, count: int | None,
                   deadline: datetime | timedelta | None, late: float | None, worth: float | None) -> None:
    """Raise ValueError for a job that is never released, or has instances only after a deadline that is hard."""
    if every is None:
        return
    if every > horizon.length:
        raise ValueError(f"{where}: every is longer than the horizon, so that it is never released")
    dates = [*releases(horizon, release, every, count)]
    if not dates:
        raise ValueError(f"{where}: every: no such span from its release, {written(release or horizon.start)}, ends "
                         f"within the horizon, to {written(horizon.end)}, so that it is never released")
    if not isinstance(deadline, datetime) or late is not None or worth is not None or dates[-1] < deadline:
        return
    in_time = sum(moment < deadline for moment in dates)
    enough = f"count: {in_time}, or a later deadline" if in_time else "a later deadline"
    raise ValueError(f"{where}: deadline {written(deadline)} is that of every instance, and the last is released "
                     f"{written(dates[-1])}: give {enough}, or for each instance its own, such as deadline: 3 d")
