"""How many sequences of a length run at once on layouts of one deployment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.catalog.engine import Engine
from planner.layouts.table import Floats
from planner.physics.serving.capacity import Asked, capacity, paging_of
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.sequences import Cut, sequence_bytes
from planner.physics.serving.settings import EngineSettings

SCANT, TUNED = 0.05, 0.95
"""Who finds less than this share of memory left for the cache asks for the larger fraction."""


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
    asked = Asked(d.model, d.weights, d.cache, engine, release, gpu.usable_memory, architecture=gpu.architecture)
    found = np.zeros(keys.shape[1])
    for limit in np.unique(keys[3]):
        mine = np.flatnonzero(keys[3] == limit)
        cuts, cut_at = np.unique(keys[:3, mine], axis=1, return_inverse=True)
        pools = capacity(replace(asked, length=int(limit)), _cut(cuts)).worst_pool
        if engine.fraction_of != "what is left" and (pools < SCANT * gpu.usable_memory).any():
            most = capacity(replace(asked, length=int(limit), settings=EngineSettings(TUNED)), _cut(cuts)).worst_pool
            pools = np.where(pools < SCANT * gpu.usable_memory, np.maximum(pools, most), pools)
        pool = pools[cut_at.reshape(-1)]
        for one in np.unique(keys[4, mine]):
            here = keys[4, mine] == one
            cut = _cut(keys[:3, mine[here]])
            held = sequence_bytes(d.model, int(one), d.cache, cut, paging_of(replace(asked, length=int(one))))
            found[mine[here]] = np.maximum(pool[here], 0.0) / held * cut.data
    held_at_once: Floats = np.minimum(found[at], d.engine.sequences * rows.dp)
    return held_at_once


def _cut(keys: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Cut:
    tp, pp, dp = keys
    return Cut(tp * dp, pp, dp)
