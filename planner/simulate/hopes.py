"""When a replay is certain to miss: more requests were late than may be, whatever becomes of those under way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.layouts.table import Floats
from planner.simulate.trace import Trace

Limited: TypeAlias = Literal["ttft", "tpot", "e2e"]
"""A latency that may have a target."""
CLOSE = 1e-9
"""Relative; what is over a bar by less is not certain to be so in other ways of adding up."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A latency within which a share of the requests must stay, or their mean for None."""

    latency: Limited
    seconds: float
    share: float | None


@dataclass(frozen=True, slots=True)
class Hopes:
    """What a replay is run for; it ends where nothing of it is left."""

    bars: tuple[tuple[Bar, ...], ...]
    """In groups: hope is gone when each group has a bar that is missed."""
    delay: Floats
    """Seconds before the first token of each request that no step has."""
    ends: int = 0
    """Requests at either end of the trace that do not count."""


class Hoping:
    """The hopes of one replay, told of each request that ends."""

    def __init__(self, hopes: Hopes, trace: Trace) -> None:
        self.inner = range(hopes.ends, len(trace) - hopes.ends)
        self.delay, self.output = hopes.delay.tolist(), trace.output.tolist()
        self.open = [[_Tally(bar, _most(bar, trace, self.inner)) for bar in group] for group in hopes.bars]
        """The groups of which no bar is missed so far."""
        self.tallies = [tally for group in self.open for tally in group]

    def ended(self, request: int, arrival: float, first: float, last: float) -> bool:
        """Note when a request came and got its tokens; say whether all hope is gone."""
        if request not in self.inner:
            return False
        for tally in self.tallies:
            if tally.latency != "tpot":
                seconds = (first if tally.latency == "ttft" else last) - arrival + self.delay[request]
            elif self.output[request] > 1:
                seconds = (last - first) / (self.output[request] - 1)
            else:
                continue
            if tally.takes(seconds):
                self.open = [group for group in self.open if tally not in group]
        return not self.open


class _Tally:
    """How many requests were over a bar, or the seconds of all where their mean counts."""

    __slots__ = ("latency", "mean", "most", "over", "sum")

    def __init__(self, bar: Bar, most: float) -> None:
        self.latency, self.mean, self.most = bar.latency, bar.share is None, most
        self.over, self.sum = bar.seconds * (1 + CLOSE), 0.0

    def takes(self, seconds: float) -> bool:
        """Add a request; say whether the bar is missed for certain."""
        if self.mean:
            self.sum += seconds
        elif seconds > self.over:
            self.sum += 1
        return self.sum > self.most


def _most(bar: Bar, trace: Trace, inner: range) -> float:
    """Return how much a bar takes before it is missed: requests, or seconds of all."""
    # answers of one token have no time between tokens
    count = int((trace.output[inner.start:inner.stop] > 1).sum()) if bar.latency == "tpot" else len(inner)
    if not count:
        return math.inf
    if bar.share is None:
        return bar.seconds * count * (1 + CLOSE)
    # a percentile lies between two requests in order: the faster of them must be late
    return count - 1 - math.floor((count - 1) * bar.share - CLOSE)
