"""Plans of the first edition (planner.plan/1) as ones of the second: what they say in prose becomes fields.

What a plan of the first edition does not say stays none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

FIRST, SECOND = "planner.plan/1", "planner.plan/2"
_NOT_SAID = "not recorded in the first edition"
_MEASURES = {"cost": "cost_usd", "days": "duration_days", "gpus": "gpus", "energy": "energy_kwh"}
_FIELDS = ("sequence_parallel", "schedule", "no_sync", "context_parallel", "prefer", "pareto", "not_held")
"""Names of defaults that are fields now."""


def upgraded(data: object) -> object:
    """Return the JSON data of a plan of the first edition as one of the second; anything else as it is."""
    if not isinstance(data, dict) or data.get("schema") != FIRST:
        return data
    provenance, lists = data.get("provenance", {}), ("assignments", "alternatives")
    if not isinstance(provenance, dict) or not all(isinstance(data.get(key, []), list) for key in lists):
        return {**data, "schema": SECOND}  # what is wrong is refused by its name
    said = [_default(text) for text in _list(provenance.get("defaults")) if isinstance(text, str)]
    by_name = {default["name"]: default["value"] for default in said if default["name"] in _FIELDS}
    kept = [default for default in said if default["name"] not in _FIELDS]
    scenario = _mapping(provenance.get("scenario"))
    placed = {key: [_placed(_mapping(part), scenario, by_name if key == "assignments" else None)
                    for part in data[key]] for key in lists if key in data}
    notes = [by_name["not_held"]] if "not_held" in by_name else []
    return {**data, **placed, "schema": SECOND, "notes": notes,
            "provenance": {**provenance, "defaults": kept, **_asked_beside(by_name)}}


def _default(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        name, _, value = text.partition(" of ")
    return {"name": name, "value": value, "why": _NOT_SAID}


def _asked_beside(said: Mapping[str, str]) -> dict[str, Any]:
    """Return what was asked beside the scenario."""
    beside: dict[str, Any] = {"prefer": "simple"} if "prefer" in said else {}
    if "pareto" in said:
        beside["pareto"] = [_MEASURES[name] for name in said["pareto"].split(", ")[0].split(",") if name in _MEASURES]
    return beside


def _placed(assigned: dict[str, Any], scenario: Mapping[str, Any], said: Mapping[str, str] | None) -> dict[str, Any]:
    """Return an assignment with what the defaults said of it; of alternatives nothing was said."""
    asked, layout = _asked(scenario, assigned.get("workload")), _mapping(assigned.get("layout"))
    known: dict[str, Any] = {name: asked[name] for name in ("model", "method") if name in asked}
    if assigned.get("offer"):
        owned = " owned " in f" {assigned['offer']}"
        known["sourcing"] = "buy" if "purchase" in assigned else "owned" if owned else "rent"
    if asked.get("kind") == "training" and "tokens" not in asked:
        # what only holds a model was called by its method, and by its model where several were asked for
        known["method"], _, model = str(assigned.get("workload")).partition(" ")
        known["model"] = model or asked.get("model")
    if assigned.get("kind") != "training":
        return {**assigned, **known}
    if said is not None:
        layout = {**layout, "schedule": said.get("schedule", "1f1b"), "no_sync": "no_sync" in said,
                  **({"sequence_parallel": False} if "sequence_parallel" in said else {}),
                  **({"cp_method": "all-to-all"} if "context_parallel" in said else {})}
    parts = [part for name in ("dp", "micro_batch", "micro_batches") if isinstance(part := layout.get(name), int)]
    known["global_batch"] = math.prod(parts) if len(parts) == 3 else None
    return {**assigned, **known, "sequence_length": asked.get("sequence_length"), "layout": layout}


def _asked(scenario: Mapping[str, Any], label: object) -> dict[str, Any]:
    """Return the workload that an assignment is of; empty where the scenario does not tell which."""
    several = [_mapping(workload) for workload in _list(scenario.get("workloads"))]
    named = (workload for workload in several if label in (workload.get("name"), workload.get("model")))
    return next(named, {}) if several else _mapping(scenario.get("workload"))


def _mapping(data: object) -> dict[str, Any]:
    return data if isinstance(data, dict) else {}


def _list(data: object) -> list[Any]:
    return data if isinstance(data, list) else []
