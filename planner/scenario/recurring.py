"""Jobs that come back: when each instance is released."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from planner.scenario.horizon import Horizon
from planner.scenario.moment import written


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
                   deadline: datetime | None, late: float | None, worth: float | None) -> None:
    """Raise ValueError for a job that is never released, or has instances only after a deadline that is hard."""
    if every is None:
        return
    if every > horizon.length:
        raise ValueError(f"{where}: every is longer than the horizon, so that it is never released")
    dates = [*releases(horizon, release, every, count)]
    if deadline is None or late is not None or worth is not None or not dates or dates[-1] < deadline:
        return
    in_time = sum(moment < deadline for moment in dates)
    raise ValueError(f"{where}: deadline {written(deadline)} is that of every instance, and the last is released "
                     f"{written(dates[-1])}: give count: {in_time}, or a later deadline")
