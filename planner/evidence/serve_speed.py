"""Predict serving speed, many rows at once: those of one model, format, engine and GPU are one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.engine import Engine
from planner.catalog.load import Catalog
from planner.evidence.hardware import candidate_of
from planner.evidence.rows import TrainRun
from planner.evidence.serve_run import DIES, ServingRow
from planner.layouts.table import Floats, Ints
from planner.physics.serving.cache import CACHE_BYTES
from planner.physics.serving.capacity import Asked, capacity
from planner.physics.serving.deployment import Deployment, Replicas, deployment_of
from planner.physics.serving.formats import FORMATS, format_of
from planner.physics.serving.sequences import Cut
from planner.physics.serving.steady import Demand, closed, offline, static

MEMORY_OF = {"exllama": "llama-cpp", "mlc": "llama-cpp", "lmdeploy": "vllm"}
"""Engines whose memory is not known, and one that is much like them."""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share a deployment; `at` says where each stands in the file."""

    deployment: Deployment
    engine: str
    memory: Engine
    version: str
    rows: tuple[ServingRow, ...]
    at: Ints


def groups(rows: Mapping[int, ServingRow], catalog: Catalog) -> list[Group]:
    """Gather rows by what they share."""
    found: dict[tuple[object, ...], list[int]] = {}
    for at, row in rows.items():
        found.setdefault((row.model.name, row.format, row.cache, row.engine, row.version, row.gpu, row.gpus > 8), []).append(at)
    made = []
    for members in found.values():
        first = rows[members[0]]
        stack = catalog.stack("megatron-core")
        candidate = candidate_of(TrainRun(gpu=first.gpu), stack, catalog, [], gpus=max(rows[m].gpus for m in members))
        scaleup = candidate.scaleup
        if scaleup is not None and scaleup.name == "pcie4-no-peer" and not first.gpu.startswith("rtx-"):
            candidate = replace(candidate, scaleup=catalog.fabric("pcie4-peer"))
        speed = catalog.speeds(first.engine).release(first.version, candidate.gpu.architecture)
        deployment = deployment_of(catalog, first.model, first.format, format_of(first.format, first.model) or FORMATS["bf16"], CACHE_BYTES[first.cache],
                                   (candidate,), speed)
        made.append(Group(deployment, first.engine, catalog.engine(MEMORY_OF.get(first.engine, first.engine)), first.version, tuple(rows[m] for m in members), np.array(members)))
    return made


def most_sequences(d: Deployment, engine: Engine, version: str, rows: Replicas, length: Floats) -> Floats:
    """Return how many sequences of a length run at once on each row."""
    gpu, release = d.candidates[0].gpu, engine.release(version)
    asked = Asked(d.model, d.weights, d.element, engine, release, gpu.usable_memory,
                  architecture=gpu.architecture)
    found = np.zeros(len(rows))
    for one in np.unique(length):
        mine = length == one
        few = rows.take(np.flatnonzero(mine))
        cut = Cut(few.tp * few.dp, few.pp, few.dp)
        found[mine] = capacity(replace(asked, length=int(one)), cut).concurrency
    return np.minimum(found, d.engine.sequences * rows.dp)


def predict(group: Group) -> list[dict[str, float]]:
    """Return the quantities of every row of a group by name."""
    d, rows = group.deployment, group.rows
    def ints(values: Sequence[int]) -> Ints:
        return np.array(values, np.int64)

    out: list[dict[str, float]] = [{} for _ in rows]
    kinds: dict[tuple[str, bool, bool], list[int]] = {}
    for at, row in enumerate(rows):
        kinds.setdefault((row.regime, row.tp is None, row.decode is not None), []).append(at)
    for (regime, open_, apart), members in kinds.items():
        chosen = [rows[m] for m in members]
        clients = np.array([r.clients or 1.0 for r in chosen])
        demand = Demand(np.array([r.input for r in chosen]), np.array([r.output for r in chosen]), clients)
        gpus = ints([r.gpus for r in chosen])
        if apart:
            continue
        best: dict[str, Floats] | None = None
        for tp in ([1, 2, 4, 8] if open_ else [0]):
            layout = Replicas(np.zeros(len(chosen), np.int64), ints([r.tp or min(tp, r.gpus) for r in chosen]),
                              ints([r.pp for r in chosen]), ints([r.ep for r in chosen]), ints([r.dp for r in chosen]))
            copies = np.maximum(1, gpus // layout.gpus)
            each = Demand(demand.input, demand.output, np.maximum(1.0, clients / copies))
            length = each.input + each.output
            most = most_sequences(d, group.memory, group.version, layout, length)
            found = _one(regime, d, layout, each, most)
            found["output"] = np.where((most < 1) & open_, 0, found["output"] * copies / gpus * np.array([DIES.get(r.gpu, 1) for r in chosen]))
            if best is None:
                best = found
            else:
                better = found["output"] > best["output"]
                best = {k: np.where(better, found[k], best[k]) for k in found}
        assert best is not None
        for i, m in enumerate(members):
            out[m] = {k: float(v[i]) for k, v in best.items()}
    return out


def _one(regime: str, d: Deployment, layout: Replicas, demand: Demand, most: Floats) -> dict[str, Floats]:
    if regime in ("static", "first"):
        s = static(d, layout, demand, most)
    elif regime == "decode":
        s = static(d, layout, demand, most)
        return {"output": 1 / s.tpot, "ttft": s.ttft, "tpot": s.tpot}
    elif regime == "closed":
        s = closed(d, layout, demand, most)
    else:
        s = offline(d, layout, demand, most)
    return {"output": s.tokens, "ttft": s.ttft, "tpot": s.tpot}
