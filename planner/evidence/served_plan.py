"""What a load test leaves open, from the plan beside it: the model, the GPUs and the layout of a replica."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from planner.answer.assignment import ServingAssignment
from planner.answer.schema import Plan
from planner.errors import InputError
from planner.text_io import read_text

PLAN, MANIFEST = "plan.json", "launch.json"
SHARED = ("concurrency", "output_tok_s_total", "request_rate")
"""Columns of a test that its replicas share: a row is of one of them."""


def as_one_replica(row: Mapping[str, str], path: Path, shared: Sequence[str] = SHARED) -> dict[str, str]:
    """Return a row with what the plan beside the file says; unchanged where there is no plan. Raises InputError.

    shared: columns that are of all replicas together.
    """
    beside = path.with_name(PLAN)
    if not beside.exists():
        return dict(row)
    placed = _alone(beside)
    layout, replicas = placed.layout, placed.serving.replicas if placed.serving else 1
    said: dict[str, object] = {
        "model": placed.model, "engine": placed.stack, "gpu": placed.gpu, "gpus": placed.gpus // replicas,
        "tp": layout.tp, "pp": layout.pp, "dp": layout.dp // replicas, "ep": layout.ep,
        "engine_version": row.get("engine_version") or _release(path.with_name(MANIFEST)),
        "weight_precision": layout.precision, "source": "own run", "source_detail": "planner launch"}
    parts = {name: f"{float(row[name]) / replicas:.6g}" for name in shared if row.get(name)}
    return {**row, **{name: str(value) for name, value in said.items() if value is not None}, **parts}


def _release(manifest: Path) -> str | None:
    """Return the release that the files of the folder are for."""
    if not manifest.exists():
        return None
    try:
        return str(json.loads(read_text(manifest))["release"])
    except (ValueError, KeyError, TypeError):
        raise InputError("not what planner launch writes", file=str(manifest)) from None


def _alone(beside: Path) -> ServingAssignment:
    text = read_text(beside)
    for read in (_only, ServingAssignment.model_validate_json):
        try:
            return read(text)
        except (ValidationError, IndexError):
            continue
    raise InputError("expected the plan of replicas of one kind, as planner launch writes it", file=str(beside))


def _only(text: str) -> ServingAssignment:
    every = Plan.model_validate_json(text).assignments
    if len(every) != 1:
        raise IndexError
    return ServingAssignment.model_validate(every[0].model_dump())
