"""Rows that were run at the largest rate within limits of latency: MLPerf's Server and Interactive scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from planner.catalog.speed import ServiceLevel
from planner.evidence.serve_run import ServingRow
from planner.layouts.table import Floats
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.level import Stream, served, stream_of
from planner.physics.serving.steady import Service
from planner.scenario.lengths import Length

GRID = 32
"""Loads that are tried, from one sequence to all that the cache holds."""


def within(d: Deployment, layout: Replicas, rows: Sequence[ServingRow], most: Floats) -> Service:
    """Return what each row does at the largest rate whose percentiles stay within its limits; none where none does.

    Times are means.
    """
    found = np.zeros((6, len(rows)))
    kinds: dict[tuple[float, float, ServiceLevel | None], list[int]] = {}
    for at, row in enumerate(rows):
        kinds.setdefault((row.input, row.output, row.limits), []).append(at)
    for (prompt, output, limits), members in kinds.items():
        assert limits is not None
        here = np.array(members)
        # one system is submitted many times
        _, first, back = np.unique(np.stack([layout.tp[here], layout.dp[here], layout.ep[here], most[here]]), axis=1,
                                   return_index=True, return_inverse=True)
        each = here[first]
        stream = _stream(prompt, output, limits.input_cv, limits.output_cv)
        found[:, here] = _largest(d, layout.take(each), stream, limits, most[each])[:, back.reshape(-1)]
    return Service(*found)


def _largest(d: Deployment, rows: Replicas, stream: Stream, limits: ServiceLevel,
             most: Floats) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return rate, tokens/s, mean TTFT, mean TPOT, batch and seconds of a prompt itself of each row, a line each."""
    many = np.maximum(most, 1.0)
    shares = np.linspace(0.0, 1.0, GRID)[:, None]
    loads = many[None, :] ** shares
    at = served(d, rows.take(np.tile(np.arange(len(rows)), GRID)), stream, loads.ravel())
    good = ((at.ttft_at(limits.quantile) <= limits.ttft) & (at.tpot_at(limits.quantile) <= limits.tpot)
            & (at.crowd <= np.tile(many, GRID)))
    rate = np.where(good, at.rate, 0.0).reshape(GRID, -1)
    best = rate.argmax(axis=0), np.arange(len(rows))
    chosen = [value.reshape(GRID, -1)[best] for value in (at.ttft_at(None), at.tpot_at(None), at.batch, at.own)]
    return np.stack([rate[best], rate[best] * stream.output, *chosen])


@lru_cache(maxsize=64)
def _stream(prompt: float, output: float, input_cv: float, output_cv: float) -> Stream:
    """Return requests whose lengths are lognormal about their means and that come at random, as MLPerf sends them."""
    inputs, outputs = Length("mean", prompt, input_cv), Length("mean", output, output_cv)
    return stream_of(inputs.quantile, outputs.quantile, input=prompt, output=output, input_cv=input_cv,
                     output_cv=output_cv, gap_cv=1.0, hits=0.0, drafts=0, accepted=0.0)
