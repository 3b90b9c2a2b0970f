"""Of the columns of a candidate those that no other matches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from planner.jobs.columns import ReplicaColumn


def fronts(columns: Iterable[ReplicaColumn]) -> list[ReplicaColumn]:
    """Return the columns of one candidate and service that no other of the same format matches."""
    mine: dict[str, list[ReplicaColumn]] = defaultdict(list)
    for column in columns:
        mine[column.format].append(column)
    return [column for alike in mine.values() for column in undominated(alike)]


def plain_too(front: list[ReplicaColumn]) -> list[ReplicaColumn]:
    """Return what no other matches, and of the default settings what no other of them does: simple where enough."""
    least = min((column.settings.changed for column in front), default=0)
    best, usual = undominated(front), undominated([column for column in front if column.settings.changed == least])
    return best + [column for column in usual if column not in best]


def undominated(columns: list[ReplicaColumn]) -> list[ReplicaColumn]:
    """Return the columns of one candidate and service that no other of their role matches with no more GPUs."""
    kept: list[ReplicaColumn] = []
    for column in sorted(columns, key=lambda c: (c.gpus, -c.rate, c.plainness, c.format)):
        if not any(other.role == column.role and _replaces(other, column) for other in kept):
            kept.append(column)
    return kept


def _replaces(other: ReplicaColumn, column: ReplicaColumn) -> bool:
    """Say whether as many of `other` as the GPUs of `column` hold answer as much."""
    return column.gpus % other.gpus == 0 and other.rate * (column.gpus // other.gpus) >= column.rate
