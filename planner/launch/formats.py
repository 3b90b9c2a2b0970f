"""Settings as files: dotted keys become nested ones, each file in its own format, with the release at its head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.text_io import json_text
from planner.yaml_io import dump


def by_file(settings: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return the nested settings of each file: `ds.json:zero_optimization.stage` is one of `ds.json`."""
    files: dict[str, dict[str, Any]] = {}
    for place, value in settings.items():
        file, _, key = place.partition(":")
        at = files.setdefault(file, {})
        *outer, last = key.split(".")
        for part in outer:
            at = at.setdefault(part, {})
        at[last] = value
    return files


def as_text(file: str, head: str, data: object) -> str:
    """Return the text of a YAML file, or of a JSON file, which has no place for a head."""
    return json_text(data, indent=2) + "\n" if file.endswith(".json") else f"# {head}\n" + dump(data)
