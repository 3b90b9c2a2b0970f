"""What a replica delivers at the load it gets: percentiles of its latencies."""

from __future__ import annotations

import numpy as np

from planner.answer.level import Percentiles
from planner.jobs.columns import ReplicaColumn
from planner.jobs.serving.assignment import Delivered
from planner.jobs.serving.rates import span, work
from planner.jobs.serving.service import Service
from planner.layouts.table import Floats
from planner.physics.serving.deployment import Deployment
from planner.physics.serving.level import Served, at_rate

SHOWN = (0.5, 0.95)
"""The percentiles that plans say."""


def working(d: Deployment, column: ReplicaColumn, service: Service, rate: float) -> Served:
    """Return what one replica does that gets `rate` requests/s."""
    low, high = span(column.role, np.array([column.held]))
    at_load = work(d, column.role, service.stream)

    def at(loads: Floats) -> Served:
        return at_load(column.rows.take(np.zeros(len(loads), np.int64)), loads)

    return at_rate(at, rate, float(low[0]), float(high[0]))


def first_token(found: Served) -> Percentiles:
    """Return TTFT at the percentiles that plans say."""
    p50, p95 = (float(found.ttft_at(q)[0]) for q in SHOWN)
    return Percentiles(p50=p50, p95=p95)


def each_token(found: Served) -> Percentiles:
    """Return TPOT at the percentiles that plans say."""
    p50, p95 = (float(found.tpot_at(q)[0]) for q in SHOWN)
    return Percentiles(p50=p50, p95=p95)


def delivered_of(service: Service, rate: float, mine: Served, prefill: Served, decode: Served,
                 role: str) -> Delivered:
    """Return what a replica delivers; of pools apart TTFT is of the one that prefills, TPOT of the one that decodes."""
    stream = service.stream
    return Delivered(rate, 0.0 if role == "prefill" else float(mine.batch[0]), stream.context,
                     first_token(prefill), each_token(decode), 0.0 if role == "decode" else stream.input,
                     1.0 if role == "prefill" else stream.output, float(mine.prompts[0]))
