"""What a replay found: latencies of each request, how busy each replica was, and the figures drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from planner.layouts.table import Floats, Ints, Mask

Latency = Literal["ttft", "tpot", "e2e", "queue"]
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Columns with one row a request, in the order of the trace; seconds, nan where a request was rejected."""

    arrival: Floats
    input: Ints
    output: Ints
    ttft: Floats
    """Arrival to first token."""
    tpot: Floats
    """Between tokens after the first, on average; nan for answers of one token."""
    e2e: Floats
    """Arrival to last token."""
    queue: Floats
    """Waiting for a slot or for cache, over all its admissions."""
    preemptions: Ints
    rejected: Mask
    """What no replica that may serve it could ever hold."""
    served_by: Ints
    """The replica of the last token, counted over the groups in order; -1 where rejected."""
    utilization: Floats
    """Of each replica that a request could come to: the share of `seconds` in which a step ran."""
    idle: int
    """Replicas besides, beyond the number of requests."""
    seconds: float
    """From 0 to the last token."""

    def delayed(self, seconds: float) -> Outcome:
        """Return what was found with so many seconds more before each first token, outside the steps."""
        return replace(self, ttft=self.ttft + seconds, e2e=self.e2e + seconds)

    def of(self, rows: Mask) -> Outcome:
        """Return what was found of some requests."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _ROWS})

    def within_ends(self, many: int) -> Outcome:
        """Return what was found but for so many requests at either end, in the time in which the others were asked."""
        columns = {name: getattr(self, name)[many:-many] for name in _ROWS}
        return replace(self, **columns, seconds=float(self.arrival[-many] - self.arrival[many]))

    def percentiles(self, latency: Latency) -> dict[str, float]:
        """Return p50, p90, p95, p99 and mean of a latency, in seconds; nan where no request has it."""
        column: Floats = getattr(self, latency)
        values = column[~np.isnan(column)]
        if not len(values):
            return dict.fromkeys([*(f"p{p}" for p in PERCENTILES), "mean"], float("nan"))
        seconds = np.percentile(values, PERCENTILES)
        return {f"p{p}": float(v) for p, v in zip(PERCENTILES, seconds, strict=True)} | {"mean": float(values.mean())}

    def within(self, latency: Latency, share: float | None) -> float:
        """Return the seconds that a share of requests stay within, or their mean for None; nan where none has it."""
        column: Floats = getattr(self, latency)
        values = column[~np.isnan(column)]
        if not len(values):
            return float("nan")
        return float(values.mean() if share is None else np.percentile(values, 100 * share))

    @property
    def busy_share(self) -> float:
        """Share of the time of all replicas in which a step ran."""
        return float(self.utilization.sum()) / (len(self.utilization) + self.idle)

    @property
    def output_tokens_per_second(self) -> float:
        """Answers of all requests that ended, over the whole time."""
        return float(self.output[~self.rejected].sum() / self.seconds) if self.seconds else 0.0

    def share_meeting(self, ttft: float | None = None, tpot: float | None = None, e2e: float | None = None) -> float:
        """Return the share of all requests within all limits, in seconds; a rejected one meets none."""
        good = ~self.rejected
        if ttft is not None:
            good &= self.ttft <= ttft
        if tpot is not None:
            good &= (self.tpot <= tpot) | (self.output == 1)
        if e2e is not None:
            good &= self.e2e <= e2e
        return float(good.mean())


_ROWS = tuple(field.name for field in fields(Outcome) if field.name not in ("seconds", "utilization", "idle"))
"""Columns with a row for each request."""


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Return what was found of parts of a trace on replicas of their own, in that order."""
    columns = {name: np.concatenate([getattr(outcome, name) for outcome in outcomes])
               for name in _ROWS if name != "served_by"}
    first = np.cumsum([0, *(len(outcome.utilization) for outcome in outcomes)])
    served_by = np.concatenate([np.where(outcome.served_by < 0, -1, outcome.served_by + at)
                                for outcome, at in zip(outcomes, first, strict=False)])
    seconds = max(outcome.seconds for outcome in outcomes)
    # each part was busy for a share of its own time
    busy = np.concatenate([outcome.utilization * (outcome.seconds / seconds if seconds else 0.0)
                           for outcome in outcomes])
    return Outcome(**columns, served_by=served_by, utilization=busy, idle=sum(outcome.idle for outcome in outcomes),
                   seconds=seconds)
