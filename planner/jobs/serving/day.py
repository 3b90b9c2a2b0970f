"""A day of a service in a replay: its hours one after the other, each with its own rate and its own replicas.

An hour is as long as it takes for enough requests to come in the busiest. Replicas that an hour adds are ready when it
begins; those that it does without take no more requests, and end those that they have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.jobs.columns import Pick
from planner.jobs.serving.service import Service
from planner.scenario.serving import Serving
from planner.simulate.fleet import Shift
from planner.simulate.outcome import Outcome
from planner.simulate.trace import Trace

PEAK_REQUESTS = 2000
"""That come in the busiest hour."""
HOUR = 3600.0
LONG = 0.95
"""Share of the answers that are no longer than the one for which a replica waits."""
QUIET = 1e-9
"""Of the busiest hour's rate, what an hour has that nobody asks in."""


@dataclass(frozen=True, slots=True)
class Day:
    """The hours of a day as a replay has them."""

    factors: tuple[float, ...]
    """Of the rate, by hour."""
    seconds: float
    """That an hour lasts."""

    def warped(self, trace: Trace) -> Trace:
        """Return requests that come at the rate itself as they come over the day; those after its end are left out."""
        factors = np.maximum(self.factors, QUIET * max(self.factors))
        asked = np.concatenate([[0.0], np.cumsum(factors)]) * self.seconds
        trace = trace.first(int(np.searchsorted(trace.arrival, asked[-1])))
        return replace(trace, arrival=np.interp(trace.arrival, asked, self.seconds * np.arange(len(asked))))

    def busiest(self, outcome: Outcome) -> Outcome:
        """Return what was found of the requests of the hours that have the most."""
        hours = (outcome.arrival / self.seconds).astype(np.int64) % len(self.factors)
        return outcome.of(np.array(self.factors)[hours] == max(self.factors))

    def phases(self, picks: Sequence[Pick]) -> tuple[Shift, ...]:
        """Return the replicas of each pick, hour by hour."""
        return tuple(Shift(hour * self.seconds, tuple(at_hour(pick, hour) for pick in picks))
                     for hour in range(len(self.factors)))


def at_hour(pick: Pick, hour: int) -> int:
    """Return the replicas that run in an hour of the day."""
    return pick.hourly[hour % len(pick.hourly)] if pick.hourly else pick.replicas


def changing(asked: Serving) -> int:
    """Return seconds for which a replica that an hour of the day adds is paid besides: to start, and to end the answers
    that it has when another hour does without it.
    """
    if asked.day is None or not asked.startup:
        return 0
    tokens = 0.0 if asked.output is None else asked.output.quantile(LONG)
    return math.ceil(asked.startup + sum(level.seconds * (tokens if name == "tpot" else 1)
                                         for name, level in asked.levels if name == "e2e" or asked.e2e is None))


def day_of(service: Service) -> tuple[Day, int] | None:
    """Return the day of a service, and how many requests make it; none where every hour is alike."""
    factors = service.asked.day
    if factors is None or len(set(factors)) == 1 or service.asked.clients is not None:
        return None
    many = int(np.ceil(PEAK_REQUESTS * sum(factors) / max(factors)))
    return Day(factors, PEAK_REQUESTS / (max(factors) * (service.asked.rate or 1.0))), many


def hours_of(service: Service, picks: Sequence[Pick], trace: Trace) -> tuple[Shift, ...]:
    """Return what a replay of a given trace is told of the day: from midnight where it lasts longer than an hour, else
    the replicas are those of the busiest hour.
    """
    factors = service.asked.day
    if factors is None or service.asked.clients is not None or not any(pick.hourly for pick in picks):
        return ()
    if trace.seconds > HOUR:
        hours = range(int(trace.seconds // HOUR) + 1)
    else:
        hours = range(peak := factors.index(max(factors)), peak + 1)
    return tuple(Shift((hour - hours[0]) * HOUR, tuple(at_hour(pick, hour) for pick in picks)) for hour in hours)
