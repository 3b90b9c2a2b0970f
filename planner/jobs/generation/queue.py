"""Replicas that make images in batches as a queue: how many hold a rate within a latency, and how long an image takes.

A replica takes what waits, up to a batch, and makes it in one call. Of k replicas at a share rho of their most, a call
waits with the chance of Erlang's C, and then by an exponential whose mean is half that of random service, as calls take
always as long (Cosmetatos 1976). Replays have the last word.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from planner.jobs.generation.options import CallWay

BUSIEST = 0.98
"""Share of the time that replicas may be at work."""
NARROW = 1e-3
"""Share of a rate to which the largest is looked for."""


def waits(replicas: int, busy: float) -> float:
    """Return the chance that a call waits, of replicas that are at work for a share of the time (Erlang's C)."""
    if busy >= 1:
        return 1.0
    load, blocked = replicas * busy, 1.0
    for count in range(1, replicas + 1):
        blocked = load * blocked / (count + load * blocked)
    return blocked / (1 - busy * (1 - blocked))


@dataclass(frozen=True, slots=True)
class Queue:
    """What one of several replicas gets: images a second, and how long they take."""

    way: CallWay
    replicas: int
    rate: float

    @property
    def busy(self) -> float:
        """Share of the time at work, in calls that are full where there is enough to do."""
        return min(1.0, self.rate / self.way.rate)

    @property
    def call(self) -> float:
        """Seconds of a call, of as many images as come while one is made."""
        images = min(float(self.way.split.batch), max(1.0, self.rate * self.way.call))
        return self.way.alone + (self.way.call - self.way.alone) * (images - 1) / max(1, self.way.split.batch - 1)

    @property
    def _drained(self) -> float:
        """The rate at which waiting ends."""
        return 2 * self.replicas * (1 - self.busy) / self.way.call

    def latency(self, share: float | None) -> float:
        """Return seconds at a share of the images, or on average (none); of replicas that are never idle, of a call."""
        if self.busy >= 1:
            return self.way.call
        chance = waits(self.replicas, self.busy)
        if share is None:
            return self.call + (chance / self._drained)
        if chance <= 1 - share:
            return self.call
        return self.call + (math.log(chance / (1 - share)) / self._drained)

    def keeps(self, target: tuple[float, float | None] | None) -> bool:
        """Say whether the latency is within a target."""
        return self.busy <= BUSIEST and (target is None or self.latency(target[1]) <= target[0])


def alone(way: CallWay, target: tuple[float, float | None] | None) -> float | None:
    """Return the most images a second that a replica holds by itself, and so any number of replicas each, down; none
    where none is within the target.
    """
    low, high = 0.0, way.rate * BUSIEST
    if Queue(way, 1, high).keeps(target):
        return high
    while high - low > high * NARROW:
        middle = (low + high) / 2
        low, high = (middle, high) if Queue(way, 1, middle).keeps(target) else (low, middle)
    return low or None


def fewest(way: CallWay, rate: float, target: tuple[float, float | None] | None) -> int | None:
    """Return the fewest replicas that hold a rate within a target; none where no number does."""
    if target is not None and way.alone > target[0]:
        return None
    low = max(1, math.ceil(rate / (way.rate * BUSIEST)))
    high = low
    while not Queue(way, high, rate / high).keeps(target):
        low, high = high + 1, 2 * high
    return low + bisect_left(range(low, high), True, key=lambda count: Queue(way, count, rate / count).keeps(target))
