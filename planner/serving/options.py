"""Every way to run a service: hardware, weight formats and layouts, with what each holds and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.calibration import serving_interval
from planner.catalog.load import Catalog
from planner.errors import MissingFact
from planner.layouts.candidate import Candidate
from planner.physics.serving.cache import CACHE_BYTES
from planner.physics.serving.capacity import Asked, Capacity, capacity
from planner.physics.serving.deployment import Deployment, Replicas, deployment_of
from planner.physics.serving.formats import format_of
from planner.physics.serving.sequences import Cut
from planner.serving.service import Service
from planner.solver.replicas import DEGREES, STAGES, Nearest, ReplicaColumn, Role, columns, idle, layouts, undominated

SMALL = 64
"""Sequences of mean length in a cache below which more of the memory is tried."""


@dataclass(slots=True)
class Account:
    """What was looked at."""

    layouts: int = 0
    legal: int = 0
    fit: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    nearest: list[tuple[Nearest, str]] = field(default_factory=list)
    """Of hardware where no layout holds the level: what comes nearest, and its name."""
    missing: list[tuple[float, str]] = field(default_factory=list)
    """Of hardware where no layout fits: bytes a GPU lacks at least, and its name."""

    def add(self, other: Account, label: str) -> None:
        """Count what was found on the same nodes under another name."""
        self.layouts, self.legal = self.layouts + other.layouts, self.legal + other.legal
        self.fit += other.fit
        self.removed.update(other.removed)
        self.nearest += [(nearest, label) for nearest, _ in other.nearest]
        self.missing += [(missing, label) for missing, _ in other.missing]


def deployment(catalog: Catalog, service: Service, candidate: Candidate, name: str) -> Deployment:
    """Return a service on one kind of hardware with its weights in the format `name`. Raises PlannerError."""
    asked = service.asked
    weights = format_of(name, service.model)
    if weights is None:
        raise MissingFact(f"model {service.model.name}", f"weights in {name}")
    speed = catalog.speeds(asked.engine).release(asked.engine_version, candidate.gpu.architecture)
    cache = "bf16" if asked.kv_cache == "auto" else asked.kv_cache
    return deployment_of(catalog, service.model, name, weights, CACHE_BYTES[cache], (candidate,), speed)


def held(catalog: Catalog, service: Service, d: Deployment, rows: Replicas, length: int,
         fraction: float | None = None) -> Capacity:
    """Return what each layout holds of sequences of that length; `fraction` of memory, or the engine's default."""
    engine, gpu = catalog.engine(service.asked.engine), d.candidates[0].gpu
    asked = Asked(service.model, d.weights, d.element, engine, engine.release(service.asked.engine_version),
                  gpu.usable_memory, fraction, length=length, architecture=gpu.architecture,
                  drafts=1 if service.stream.drafts else 0)
    return capacity(asked, Cut(rows.tp * rows.dp, rows.pp, rows.dp))


def options(catalog: Catalog, service: Service, candidates: Sequence[Candidate],
            account: Account) -> list[ReplicaColumn]:
    """Return the columns of a service on all candidates; `account` is told what was removed and why."""
    found: list[ReplicaColumn] = []
    known: dict[tuple[str, str], tuple[list[ReplicaColumn], Account]] = {}
    for at, candidate in enumerate(candidates):
        for name in service.asked.quantization or ():
            d = deployment(catalog, service, candidate, name)
            rows = layouts(service.model, candidate, account.removed)
            account.layouts += _domain(service.model)
            account.legal += len(rows)
            # what stays inside a node is the same whatever network joins the nodes
            inside = rows.gpus <= candidate.node.gpus
            key = candidate.node.name, name
            if key not in known:
                first = Account()
                known[key] = _each_fraction(catalog, service, d, rows.take(np.flatnonzero(inside)), first), first
            inner, counted = known[key]
            account.add(counted, f"{candidate.label} in {name}")
            wide = _each_fraction(catalog, service, d, rows.take(np.flatnonzero(~inside)), account)
            # formats are told apart, so that each can be shown beside the best
            mine = [replace(column, candidate=at) for column in (*inner, *wide)]
            found += undominated(mine, account.removed)
    return found


def _each_fraction(catalog: Catalog, service: Service, d: Deployment, rows: Replicas,
                   account: Account) -> list[ReplicaColumn]:
    """Return the columns of layouts with the engine's share of memory, and with a larger one where caches are small."""
    most = catalog.engine(service.asked.engine).memory_fraction_most
    found = _of(catalog, service, d, rows, account)
    if most is None or not len(rows):
        return found
    few = np.flatnonzero(held(catalog, service, d, rows, service.mean_length).concurrency < SMALL)
    return found + _of(catalog, service, d, rows.take(few), account, most)


def _of(catalog: Catalog, service: Service, d: Deployment, rows: Replicas, account: Account,
        fraction: float | None = None) -> list[ReplicaColumn]:
    """Return the columns of some layouts that hold the level."""
    if not len(rows):
        return []
    longest, mean = (held(catalog, service, d, rows, length, fraction)
                     for length in (service.length, service.mean_length))
    fits = np.flatnonzero(longest.concurrency >= 1)
    account.removed["memory"] += len(rows) - len(fits)
    account.fit += len(fits)
    if fraction is not None:
        # a layout with more of the memory is one more
        account.layouts, account.legal = account.layouts + len(rows), account.legal + len(rows)
    label = f"{d.candidates[0].label} in {d.format}"
    if not len(fits):
        account.missing.append((float((longest.sequence - longest.worst_pool).min()), label))
        return []
    apart: dict[str, tuple[Role, ...]] = {"no": ("whole",), "allowed": ("whole", "prefill", "decode"),
                                          "only": ("prefill", "decode")}
    kept = rows.take(fits)
    made = columns(d, 0, kept, service.stream, service.level, mean.concurrency[fits],
                   apart[service.asked.disaggregated], account.removed)
    if not made:
        account.nearest.append((idle(d, kept, service.stream, service.level), label))
    return [replace(column, fraction=fraction) for column in made]


def interval(catalog: Catalog, service: Service, d: Deployment) -> tuple[float, float]:
    """Return measured over predicted seconds per token that 90% of comparable runs lie between."""
    return serving_interval(catalog.serving_residuals, "tpot_ms", service.asked.engine,
                            d.candidates[0].gpu.architecture, mixture=service.model.mixes_experts)


def _domain(model: Model) -> int:
    """Return how many combinations the degrees of a replica make."""
    return len(DEGREES) * len(STAGES) * (2 * len(DEGREES) if model.mixes_experts else 1)
