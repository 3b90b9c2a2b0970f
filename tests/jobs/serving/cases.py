"""Small serving questions, each planned once."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from planner.answer.schema import Plan
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.jobs.kinds import question_of
from planner.jobs.serving import replay
from planner.jobs.solved import Solved, solve
from planner.scenario.load import load_any
from planner.scenario.scenario import ServingScenario

CATALOG = Catalog()
SMALL: dict[str, Any] = {
    "workload": {"kind": "serving", "model": "llama-3.1-8b", "rate": 50, "input": 1000, "output": 100, "ttft": "2 s",
                 "tpot": "80 ms", "quantization": ["bf16"]},
    "hardware": {"candidates": ["h100-sxm-1x"]}}
"""An 8B model on single GPUs."""


def question(**changes: Any) -> dict[str, Any]:
    """Return the small question changed: blocks by name, and keys of the service beside them."""
    blocks = {name: changes.pop(name) for name in ("hardware", "sourcing", "limits", "objective", "workloads", "name")
              if name in changes}
    asked = {**SMALL, **blocks}
    if "workloads" in blocks:
        del asked["workload"]
    else:
        asked["workload"] = {key: value for key, value in ({**SMALL["workload"], **changes}).items()
                             if value is not None}
    return asked


def write(folder: Path, **changes: Any) -> Path:
    """Write a question to a file."""
    path = folder / "question.yaml"
    # what several services share is written out, as no question has anchors
    path.write_text(yaml.safe_dump(json.loads(json.dumps(question(**changes)))), encoding="utf-8")
    return path


def resolved(**changes: Any) -> ServingScenario:
    """Return a question as the planner reads it."""
    with TemporaryDirectory() as folder:
        scenario, _ = load_any(str(write(Path(folder), **changes)), {}, CATALOG)
    assert isinstance(scenario, ServingScenario)
    return scenario


@cache
def _plan(text: str, requests: int) -> Plan:
    """Return a plan, once for each number of requests that are replayed."""
    return make_plan(resolved(**json.loads(text)), CATALOG)


def solved(**changes: Any) -> Solved:
    """Return a changed question with its fleet."""
    return solve(question_of(resolved(**changes), CATALOG))


def plan(**changes: Any) -> Plan:
    """Return the plan of a changed question."""
    return _plan(json.dumps(changes), replay.REQUESTS)


@cache
def _value(text: str) -> float:
    found = solved(**json.loads(text)).objective
    assert found.value is not None
    assert found.value == found.bound
    return found.value


def value(**changes: Any) -> float:
    """Return the proven objective of a changed question, without the plan around it."""
    return _value(json.dumps(changes))
