"""Layouts of replicas that are tried together come out as one by one, and so do levels of offload of a search."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import planner
from planner.jobs.serving.estimate import _on, every
from planner.jobs.serving.rates import layouts
from planner.scenario.load import load_any
from planner.scenario.serving import Serving
from planner.solver.search import bounding, holding
from tests.jobs.serving.cases import CATALOG

LOADS: tuple[dict[str, Any], ...] = ({"concurrency": 24, "ttft": "1 s"}, {"rate": 3, "tpot": "50 ms"}, {"users": 30})


@pytest.mark.parametrize("load", [*LOADS, {}], ids=lambda load: next(iter(load), "offline"))
@pytest.mark.parametrize("model", ["llama-3.1-70b", "qwen3-30b-a3b"])
def test_layouts_tried_together_are_as_one_by_one(load: dict[str, Any], model: str) -> None:
    scenario, _ = load_any({"workload": {"kind": "serving", "model": model, "input": 1000, "output": 300, **load}},
                           {}, CATALOG)
    asked = scenario.workload
    assert isinstance(asked, Serving)
    service, d = _on(asked, CATALOG, "dgx-h100")
    table = layouts(service.model, d.candidates[0], Counter())
    table = table.take(np.flatnonzero(8 % table.gpus == 0))
    together = every(CATALOG, service, d, table, 8 // table.gpus)
    assert len(together) > 3
    for at, tried in enumerate(together):
        rows = table.take(np.array([at]))
        (alone,) = every(CATALOG, service, d, rows, 8 // rows.gpus)
        assert tried.rank == alone.rank
        assert tried.assignment(CATALOG) == alone.assignment(CATALOG)


@pytest.mark.parametrize("asked", [{"model": "llama-3.1-8b", "method": "lora", "on": "l4-1x,rtx-4090-1x"},
                                   {"model": "llama-3.1-70b", "method": "full", "on": "dgx-h100", "max_gpus": 16}])
def test_levels_of_offload_bounded_together_are_found_and_counted_as_one_by_one(
        asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> object:
        plan = planner.plan(tokens="100 M", **asked)
        return plan.model_copy(update={"search": plan.search.model_copy(update={"wall_seconds": 0.0})})

    together = made()
    monkeypatch.setattr(bounding, "AT_ONCE", 0)
    monkeypatch.setattr(holding, "FEW", 0)
    assert made() == together
