"""The hours of a day as the fleet sees them: which are alike, and what their changes are paid for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from planner.solver.fleet.covering import NodeSupply, moving, nodes_while_changing
from planner.units import HOUR

HOURS = 24
Factors: TypeAlias = tuple[float, ...]
"""Of the rates of all demands in an hour."""


def factors_of(days: Sequence[Sequence[float] | None]) -> tuple[Factors, ...]:
    """Return a row an hour; one row where every hour is alike."""
    if not any(days):
        return ((1.0,) * len(days),)
    return tuple(tuple(day[hour] if day else 1.0 for day in days) for hour in range(HOURS))


def periods_of(hours: Sequence[Factors], *, in_order: bool) -> tuple[list[Factors], list[int]]:
    """Return the different hours, and which of them each hour is; `in_order`: only neighbors are the same."""
    if not in_order:
        known = sorted(set(hours))
        return known, [known.index(row) for row in hours]
    runs = [(row, len(list(alike))) for row, alike in groupby(hours)]
    return [row for row, _ in runs], [at for at, (_, alike) in enumerate(runs) for _ in range(alike)]


def changing_hours(supply: NodeSupply, nodes: Sequence[int], replicas: Mapping[int, tuple[int, Sequence[int]]],
                   seconds: int) -> dict[int, float]:
    """Return node-hours a day that a supply is paid for besides, as its fleet changes, shared out by column.

    replicas: of each column the GPUs of one, and the count in each period. seconds: of a node that a period adds.
    """
    moved = {key: gpus * moving(counts) for key, (gpus, counts) in replicas.items()}
    both = nodes_while_changing(supply, replicas.values()) if seconds else nodes
    more = (sum(both) - sum(nodes)) * seconds / HOUR / max(1, sum(moved.values()))
    return {key: more * part for key, part in moved.items()}
