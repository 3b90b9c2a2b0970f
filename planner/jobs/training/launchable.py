"""Which layouts a target can be told, as values of axes that the search is held to."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalog.load import Catalog
from planner.catalog.stack import Stack
from planner.layouts.axes import RECOMPUTE, SCHEDULES
from planner.scenario.workload import Training

_WORDS = {"recompute": RECOMPUTE, "schedule": SCHEDULES}


def values_for(asked: Training, stack: Stack, catalog: Catalog) -> Mapping[str, tuple[float, ...]]:
    """Return axis -> values for the target that a plan has to be launchable with; none where it may be any."""
    if asked.launchable is None:
        return {}
    only = catalog.releases.target(asked.launchable).only
    return {axis: tuple(_place(axis, value) for value in values
                        if value != "selective" or stack.selective_recompute) for axis, values in only.items()}


def _place(axis: str, value: str | float) -> float:
    return _WORDS[axis].index(value) if isinstance(value, str) else value
