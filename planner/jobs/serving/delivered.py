"""What a replica delivers at the load it gets: percentiles of its latencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.answer.level import Asked, Percentiles, name_of
from planner.jobs.columns import ReplicaColumn
from planner.jobs.serving.assignment import Delivered
from planner.jobs.serving.rates import span, work
from planner.jobs.serving.service import Service
from planner.layouts.memo import ByValue
from planner.layouts.table import Floats
from planner.physics.serving.deployment import Deployment
from planner.physics.serving.level import Served, at_rate, evened
from planner.scenario.demand import Level

WORKS = ByValue[Served](most=1024)
"""What single replicas do; the search, the replays and the answer ask for the same ones."""
SHOWN = (0.5, 0.95)
"""The percentiles that plans say."""


def working(d: Deployment, column: ReplicaColumn, service: Service, rate: float, whole: float | None = None) -> Served:
    """Return what one replica does that gets `rate` requests/s, of `whole` that a router shares out, if given."""
    stream = service.stream
    if whole is not None and rate > 0:
        stream = replace(stream, gap_cv=evened(stream.gap_cv, whole / rate))
    low, high = span(column.role, stream, np.array([column.held]))
    at_load = work(d, column.role, stream)

    def at(loads: Floats) -> Served:
        return at_load(column.rows.take(np.zeros(len(loads), np.int64)), loads)

    return WORKS.recall((d, column.layout[2:], column.held, stream, rate),
                        lambda: at_rate(at, rate, float(low[0]), float(high[0])))


def percentiles(at: Callable[[float | None], float], target: Level | None) -> Percentiles:
    """Return a latency at the percentiles that plans say, and at that of its target; `at` takes a share, or none for
    the mean.
    """
    p50, p95 = (at(q) for q in SHOWN)
    if target is None:
        return Percentiles(p50=p50, p95=p95)
    share = None if target.percentile is None else target.percentile / 100
    asked = Asked(at=name_of(share), seconds=at(share), target_seconds=target.seconds)
    return Percentiles(p50=p50, p95=p95, asked=asked)


def first_token(served: Served, service: Service) -> Percentiles:
    """Return TTFT as plans say it."""
    return percentiles(lambda q: float(served.ttft_at(q)[0]), service.asked.ttft)


def each_token(served: Served, service: Service) -> Percentiles:
    """Return TPOT as plans say it; zero where nothing is answered."""
    if service.stream.only_reads:
        return Percentiles(p50=0.0, p95=0.0)
    return percentiles(lambda q: float(served.tpot_at(q)[0]), service.asked.tpot)


def whole_answer(served: Served, service: Service) -> Percentiles | None:
    """Return the time to the last token as plans say it, where it has a target."""
    return None if service.asked.e2e is None else percentiles(lambda q: float(served.e2e_at(q)[0]), service.asked.e2e)


def delivered_of(service: Service, rate: float, mine: Served, prefill: Served, decode: Served,
                 role: str) -> Delivered:
    """Return what a replica delivers; of pools apart TTFT is of the one that prefills, TPOT of the one that decodes."""
    stream = service.stream
    users = None if service.asked.clients is None else rate
    return Delivered(rate if users is None else float(mine.rate[0]),
                     0.0 if role == "prefill" else float(mine.batch[0]), stream.context,
                     first_token(prefill, service), each_token(decode, service),
                     0.0 if role == "decode" else stream.input,
                     1.0 if role == "prefill" else stream.output, float(mine.prompts[0]),
                     whole_answer(mine, service), users)
