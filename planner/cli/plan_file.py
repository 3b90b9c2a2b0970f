"""A plan read back from the file that `planner plan --json` was written to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from planner.errors import InputError
from planner.text_io import read_text

if TYPE_CHECKING:
    from planner.answer.schema import Plan

MAX_BYTES = 64 * 2**20
BLOCKS = ("workload", "hardware", "sourcing", "limits")
"""Parts of a question that have keys of their own."""


def read_plan(path: Path) -> Plan:
    """Return the plan of a file. Raises InputError."""
    from planner.answer.schema import Plan

    text = read_text(path, MAX_BYTES)
    try:
        plan = Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        raise InputError(f"{where}: {first['msg']}; expected the output of planner plan --json",
                         file=str(path)) from None
    _check_question(plan.provenance.scenario, path)
    return plan


def _check_question(asked: Mapping[str, Any], path: Path) -> None:
    """Refuse a question whose parts are not of the kind that a question has; its values are its own matter."""
    several = asked.get("workloads", [])
    if not isinstance(several, list):
        raise InputError(f"provenance.scenario.workloads: expected a list, got {several!r}", file=str(path))
    blocks = {name: asked[name] for name in BLOCKS if asked.get(name) is not None}
    for name, block in [*blocks.items(), *((f"workloads.{at}", one) for at, one in enumerate(several))]:
        if not isinstance(block, dict):
            raise InputError(f"provenance.scenario.{name}: expected keys and values, got {block!r}", file=str(path))
    texts = {"name": asked.get("name", ""), "sourcing.site": (asked.get("sourcing") or {}).get("site", "")}
    texts |= {"workload.model": asked["workload"].get("model")} if asked.get("workload") is not None else {}
    for where, value in texts.items():
        if not isinstance(value, str):
            raise InputError(f"provenance.scenario.{where}: expected text, got {value!r}", file=str(path))
