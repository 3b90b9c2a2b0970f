"""A plan read back from the file that `planner plan --json` was written to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from planner.errors import InputError
from planner.text_io import read_text

if TYPE_CHECKING:
    from planner.answer.schema import Plan

MAX_BYTES = 64 * 2**20


def read_plan(path: Path) -> Plan:
    """Return the plan of a file. Raises InputError."""
    from planner.answer.schema import Plan

    text = read_text(path, MAX_BYTES)
    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        raise InputError(f"{where}: {first['msg']}; expected the output of planner plan --json",
                         file=str(path)) from None
