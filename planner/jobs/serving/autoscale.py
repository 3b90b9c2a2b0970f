"""What an ideal autoscaler needs beside a fixed fleet: replicas that are there just when the load asks for them.

It knows the load to come, so that a replica is started as long before it is needed as it takes to start, and is paid
for from then on. Between two needs it is kept where the gap is shorter than a start. No autoscaler that meets the
targets does with less, but for what a closer look at the load would save; of a trace the schedule is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.answer.level import Autoscaled
from planner.jobs.columns import Pick
from planner.jobs.serving.day import HOUR, at_hour
from planner.layouts.table import Floats, Ints
from planner.simulate.fleet import Shift
from planner.simulate.trace import Trace
from planner.solver.fleet.covering import moving

WINDOWS = (300.0, 60.0, 15.0)
"""Seconds over which the load of a trace is looked at."""
ROOMS = (1.0, 1.15, 1.35, 1.7)
"""Times the rate of a window that its replicas are to hold, raised until a replay meets the targets."""


@dataclass(frozen=True, slots=True)
class ReplicaSchedule:
    """Replicas that take requests in each of equally long parts of a time, one kind after another in rows."""

    counts: Ints
    seconds: float

    def kept(self, startup: float) -> ReplicaSchedule:
        """Return it with replicas kept where they are needed again sooner than others could start."""
        counts, most = self.counts.copy(), int(startup // self.seconds)
        for row in counts:
            for level in range(1, int(row.max()) + 1):
                there = np.flatnonzero(row >= level)
                for first, last in pairwise(there.tolist()):
                    if 1 < last - first <= most + 1:
                        row[first:last] = np.maximum(row[first:last], level)
        return ReplicaSchedule(counts, self.seconds)

    @property
    def starts(self) -> Ints:
        """Replicas of each kind that start after the beginning."""
        starts: Ints = np.maximum(np.diff(self.counts, axis=1), 0).sum(axis=1)
        return starts

    def phases(self) -> tuple[Shift, ...]:
        """Return it as a replay reads it."""
        changes = [0, *(np.flatnonzero(np.diff(self.counts, axis=1).any(axis=0)) + 1).tolist()]
        return tuple(Shift(at * self.seconds, tuple(self.counts[:, at].tolist())) for at in changes)

    def summed(self, gpus: Sequence[int], startup: float, share: float | None) -> Autoscaled:
        """Return its GPUs, with what starting takes; `gpus` are those of a replica of each kind."""
        each = np.array(gpus)
        held = each @ self.counts
        lasts = self.counts.shape[1] * self.seconds
        starting = float(each @ self.starts) * min(startup, lasts) / lasts
        return Autoscaled(startup_seconds=startup, peak_gpus=int(held.max()), mean_gpus=float(held.mean()) + starting,
                          starts=int(self.starts.sum()), share_within_level=share)


def of_a_day(picks: Sequence[Pick], hours: int, startup: float) -> Autoscaled:
    """Return what the fleets of a day's hours take, each ready when its hour begins."""
    counts = [[at_hour(pick, hour) for hour in range(hours)] for pick in picks]
    gpus, starts = np.array([pick.column.gpus for pick in picks]), np.array([moving(row) for row in counts])
    held = gpus @ np.array(counts)
    return Autoscaled(startup_seconds=startup, peak_gpus=int(held.max()), starts=int(starts.sum()),
                      mean_gpus=float(held.mean()) + float(gpus @ starts) * startup / (hours * HOUR))


def of_a_trace(picks: Sequence[Pick], trace: Trace, startup: float,
               within: Callable[[tuple[Shift, ...]], tuple[bool, float]]) -> Autoscaled:
    """Return the schedule of fewest GPUs on average whose replay meets the targets; that of all replicas at all times
    where none does. within: whether a replay of a schedule does, and the share of its requests that do.
    """
    rates, most = np.array([pick.column.rate for pick in picks]), np.array([pick.replicas for pick in picks])
    gpus = [pick.column.gpus for pick in picks]
    lasts = max(trace.seconds, 1.0)
    always = ReplicaSchedule(most[:, None].astype(np.int64), lasts)
    best, refuted = always.summed(gpus, startup, None), list[tuple[Shift, ...]]()
    for window in WINDOWS:
        parts = max(1, int(np.ceil(lasts / window)))
        asked = np.bincount(np.minimum(trace.arrival // window, parts - 1).astype(np.int64), minlength=parts) / window
        for room in ROOMS:
            made = ReplicaSchedule(_enough(asked * room, rates, most), window).kept(startup)
            autoscaled = made.summed(gpus, startup, None)
            if autoscaled.mean_gpus >= best.mean_gpus:
                break
            if (phases := made.phases()) in refuted:
                continue
            meets, share = within(phases)
            refuted.append(phases)
            if meets:
                best = autoscaled.model_copy(update={"share_within_level": share})
                break
    return best


def _enough(asked: Floats, rates: Floats, most: Ints) -> Ints:
    """Return replicas of each kind that hold each rate, kinds in their order; all there are where those are too few."""
    left, counts = asked.copy(), np.zeros((len(rates), len(asked)), np.int64)
    for row, (rate, count) in enumerate(zip(rates, most, strict=True)):
        counts[row] = np.clip(np.ceil(left / rate - 1e-9), 0, count)
        left = left - counts[row] * rate
    # somebody is there to take who comes
    counts[0] = np.maximum(counts[0], counts.sum(axis=0) == 0)
    return counts
