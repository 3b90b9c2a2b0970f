"""What holds a model to serve it: the fewest GPUs of every kind, with room for one request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import get_args

import numpy as np

from planner.answer.assignment import Assignment
from planner.answer.schema import Search
from planner.catalog.load import Catalog
from planner.jobs.serving.deployed import deployment, held, lacks
from planner.jobs.serving.estimate import LayoutTried, every
from planner.jobs.serving.rates import layouts
from planner.jobs.serving.service import service_of
from planner.layouts.candidate import Candidate
from planner.scenario.resolve import resolve_service
from planner.scenario.serving import Quantization, Serving
from planner.scenario.workload import Training

METHOD = "inference"


def service_for(work: Training, name: str, catalog: Catalog) -> Serving:
    """Return the service that method inference of a training question is about: stored as published, unless it computes
    in a lower precision.
    """
    model = catalog.model(name)
    low = [name for name in dict.fromkeys(work.precision) if name in get_args(Quantization) and name != "bf16"]
    formats = {"quantization": low} if low else {}
    asked = Serving.model_validate({"kind": "serving", "model": name, **formats,
                                    "max_model_len": work.sequence_length or model.sequence_length})
    return resolve_service(asked, catalog)[0]


def fewest_serving(asked: Serving, catalog: Catalog, candidates: Iterable[Candidate], most: int
                   ) -> tuple[list[Assignment], Search]:
    """Return the fewest GPUs of every candidate that hold a resolved service, fewest first, and what was looked at.

    most: GPUs at most. Every layout of a replica is looked at, so no fewer of those searched hold it. Raises
    PlannerError.
    """
    service, removed = service_of(asked, catalog), Counter[str]()
    found, legal, fit = list[tuple[float, Assignment]](), 0, 0
    for candidate in candidates:
        table = layouts(service.model, candidate, removed, catalog.engine(asked.engine).copies)
        table = table.take(np.flatnonzero(table.gpus <= most))
        legal += len(table)
        here: list[tuple[int, tuple[float, ...], LayoutTried]] = []
        for name in asked.quantization or ("bf16",):
            if not len(table) or lacks(catalog, service, candidate, name) is not None:
                continue
            d = deployment(catalog, service, candidate, name)
            holds = held(catalog, service, d, table, service.length).concurrency >= 1
            fit += int(holds.sum())
            if not holds.any():
                continue
            least = int(table.gpus[holds].min())
            fewest = table.take(np.flatnonzero(holds & (table.gpus == least)))
            alone = np.ones_like(fewest.tp)
            here += [(least, tried.rank, tried) for tried in every(catalog, service, d, fewest, alone)]
        if here:
            best = min(here, key=lambda each: each[:2])[2].assignment(catalog)
            found.append((candidate.gpu.usable_memory, best.model_copy(update={"workload": METHOD, "method": METHOD})))
    found.sort(key=lambda each: (each[1].gpus, each[0], each[1].gpu))
    return [made for _, made in found], Search(layouts=legal + sum(removed.values()), legal=legal, fit=fit,
                                               removed=dict(removed))
