"""A question as the file that asks it."""

from __future__ import annotations

from typing import Any

from planner.scenario.portfolio import AnyQuestion, Portfolio
from planner.yaml_io import dump


def to_yaml(scenario: AnyQuestion) -> str:
    """Return `scenario` as a file that reads back to the same scenario; what is open or empty is left out."""
    return dump(_stated(scenario.model_dump(mode="json", exclude_none=True, by_alias=True,
                                            exclude_unset=isinstance(scenario, Portfolio))))


def _stated(data: Any) -> Any:  # noqa: ANN401 - what a file holds
    if isinstance(data, list):
        return [_stated(value) for value in data]
    if not isinstance(data, dict):
        return data
    return {key: _stated(value) for key, value in data.items() if value not in ({}, [], "")}
