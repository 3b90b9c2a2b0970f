"""What bounds a serving row: room for its cache, or the latency limits of MLPerf's Server and Interactive scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from planner.catalog.engine import Engine
from planner.catalog.speed import ServiceLevel
from planner.evidence.serve_run import ServingRow
from planner.layouts.table import Floats, Ints
from planner.physics.serving.capacity import CacheInput, capacity, paging_of
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.level import Stream, evened, served, stream_of
from planner.physics.serving.sequences import Cut, sequence_bytes
from planner.physics.serving.settings import EngineSettings
from planner.physics.serving.steady import SteadyState
from planner.scenario.lengths import Length

SCANT, TUNED = 0.05, 0.95
"""Who finds less than this share of memory left for the cache asks for the larger fraction."""
GRID, PASSES = 16, 3
"""Loads that are tried, from one sequence to all that the cache holds, and how often between the nearest two."""


def most_sequences(d: Deployment, engine: Engine, version: str, rows: Replicas, length: Floats) -> Floats:
    """Return how many sequences of a length run at once on each row: what memory holds, and what the engine admits.

    Below one the layout does not hold the model and a sequence.
    """
    gpu, release = d.candidates[0].gpu, engine.release(version)
    whole = length.astype(np.int64)
    # the pool depends on the length only where a release passes over sequences whole
    bound = np.where(whole <= release.whole_to, whole, 1)
    keys, at = np.unique(np.stack([rows.tp, rows.pp, rows.dp, bound, whole]), axis=1, return_inverse=True)
    at = at.reshape(-1)
    asked = CacheInput(d.model, d.weights, d.cache, engine, release, gpu.usable_memory, architecture=gpu.architecture)
    sequences = np.zeros(keys.shape[1])
    for limit in np.unique(keys[3]):
        mine = np.flatnonzero(keys[3] == limit)
        cuts, cut_at = np.unique(keys[:3, mine], axis=1, return_inverse=True)
        pools = capacity(replace(asked, length=int(limit)), _cut(cuts)).worst_pool
        if engine.fraction_of != "what is left" and (pools < SCANT * gpu.usable_memory).any():
            most = capacity(replace(asked, length=int(limit), settings=EngineSettings(TUNED)), _cut(cuts)).worst_pool
            pools = np.where(pools < SCANT * gpu.usable_memory, np.maximum(pools, most), pools)
        pool = pools[cut_at.reshape(-1)]
        for value in np.unique(keys[4, mine]):
            here = keys[4, mine] == value
            cut = _cut(keys[:3, mine[here]])
            held = sequence_bytes(d.model, int(value), d.cache, cut, paging_of(replace(asked, length=int(value))))
            sequences[mine[here]] = np.maximum(pool[here], 0.0) / held * cut.data
    held_at_once: Floats = np.minimum(sequences[at], d.engine.sequences * rows.dp)
    return held_at_once


def _cut(keys: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Cut:
    tp, pp, dp = keys
    return Cut(tp * dp, pp, dp)


def within(d: Deployment, layout: Replicas, rows: Sequence[ServingRow], most: Floats, copies: Ints) -> SteadyState:
    """Return what each row does at the largest rate whose percentiles stay within its limits; none where none does.

    copies: of the layout, which share the requests out. Times are means.
    """
    bounds = np.zeros((6, len(rows)))
    kinds: dict[tuple[float, float, ServiceLevel | None, int], list[int]] = {}
    for at, row in enumerate(rows):
        kinds.setdefault((row.input, row.output, row.limits, int(copies[at])), []).append(at)
    for (prompt, output, limits, shared), members in kinds.items():
        assert limits is not None
        here = np.array(members)
        # one system is submitted many times
        _, first, back = np.unique(np.stack([layout.tp[here], layout.dp[here], layout.ep[here], most[here]]), axis=1,
                                   return_index=True, return_inverse=True)
        each = here[first]
        stream = _stream(prompt, output, limits.input_cv, limits.output_cv, evened(1.0, shared))
        bounds[:, here] = _largest(d, layout.take(each), stream, limits, most[each])[:, back.reshape(-1)]
    return SteadyState(*bounds)


def _largest(d: Deployment, rows: Replicas, stream: Stream, limits: ServiceLevel,
             most: Floats) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return rate, tokens/s, mean TTFT, mean TPOT, batch and seconds of a prompt itself of each row, a line each."""
    low, high = np.ones(len(rows)), np.maximum(most, 1.0)
    for _ in range(PASSES):
        loads = np.geomspace(low, high, GRID)
        at = served(d, rows.take(np.tile(np.arange(len(rows)), GRID)), stream, loads.ravel())
        ttft, tpot = (np.full(at.rate.shape, seconds) for seconds in (limits.ttft, limits.tpot))
        good = ((at.within(ttft) >= limits.quantile) & (at.pace.within(tpot) >= limits.quantile)
                & (at.crowd <= np.tile(np.maximum(most, 1.0), GRID)))
        rate = np.where(good, at.rate, 0.0).reshape(GRID, -1)
        best = rate.argmax(axis=0), np.arange(len(rows))
        low, high = loads[best], loads[np.minimum(best[0] + 1, GRID - 1), best[1]]
    chosen = [value.reshape(GRID, -1)[best] for value in (at.ttft_at(None), at.tpot_at(None), at.batch, at.own)]
    return np.stack([rate[best], rate[best] * stream.output, *chosen])


@lru_cache(maxsize=64)
def _stream(prompt: float, output: float, input_cv: float, output_cv: float, gap_cv: float) -> Stream:
    """Return requests whose lengths are lognormal about their means and that come at random, as MLPerf sends them."""
    inputs, outputs = Length("mean", prompt, input_cv), Length("mean", output, output_cv)
    return stream_of(inputs.quantile, outputs.quantile, input=prompt, output=output, input_cv=input_cv,
                     output_cv=output_cv, gap_cv=gap_cv, hits=0.0, drafts=0, accepted=0.0)
