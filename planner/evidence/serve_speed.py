"""Predict serving speed, many rows at once: those of one model, format, engine and GPU are one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.load import Catalog
from planner.evidence.hardware import candidate_of
from planner.evidence.rows import TrainRun
from planner.evidence.serve_run import DIES, ServingRow
from planner.layouts.table import Floats, Ints
from planner.physics.serving.cache import CACHE_BYTES, token_bytes
from planner.physics.serving.deployment import Deployment, Replicas, deployment_of
from planner.physics.serving.steady import Demand, closed, offline, static
from planner.physics.serving.weights import FORMATS, weight_bytes


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share a deployment; `at` says where each stands in the file."""

    deployment: Deployment
    engine: str
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
        deployment = deployment_of(catalog, first.model, first.format, FORMATS[first.format], CACHE_BYTES[first.cache],
                                   (candidate,), speed)
        made.append(Group(deployment, first.engine, first.version, tuple(rows[m] for m in members), np.array(members)))
    return made


def most_sequences(d: Deployment, engine: str, rows: Replicas, length: Floats) -> Floats:
    gpu = d.candidates[0].gpu
    experts = weight_bytes(d.model, d.weights, rows.tp * rows.dp, rows.pp)
    if engine == "tensorrt-llm":
        pool = 0.9 * (gpu.usable_memory - experts - 1.2 * 2**30)
    else:
        pool = {"vllm": 0.9, "sglang": 0.88}.get(engine, 0.9) * gpu.usable_memory - experts - 2.5 * 2**30
    tokens = np.maximum(pool, 0) / token_bytes(d.model, d.element, rows.tp, rows.pp) * rows.dp
    return np.minimum(tokens / length, d.engine.sequences * rows.dp)


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
            most = most_sequences(d, group.engine, layout, length)
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
