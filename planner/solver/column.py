"""What a column of the fleet carries, once: read by dominance and by the fleet model, nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One way to do one workload. Less is better in every field but `key` and `candidate`."""

    key: int
    """Tells layouts apart whatever order they come in; the last tie-break."""
    candidate: int
    """Which hardware: an offer serves the columns of its candidate."""
    nodes: int
    spare_nodes: int
    gpus: int
    duration_us: int
    upper_us: int
    """Upper quantile of the duration."""
    energy_wh: int
    power_w: int
    checkpoint_bytes: int
    complexity: int
    """How much there is to set up."""

    @property
    def rented_nodes(self) -> int:
        """Nodes paid for: those of the layout and the spares."""
        return self.nodes + self.spare_nodes


def _measures(column: Column) -> tuple[int, ...]:
    return (column.nodes, column.spare_nodes, column.gpus, column.duration_us, column.upper_us, column.energy_wh,
            column.power_w, column.checkpoint_bytes, column.complexity)


def dominates(a: Column, b: Column) -> bool:
    """Say whether `a` is as good as `b` in every measure on the same hardware; equal columns: the lower key."""
    if a.candidate != b.candidate or any(x > y for x, y in zip(_measures(a), _measures(b), strict=True)):
        return False
    return _measures(a) != _measures(b) or a.key < b.key


def undominated(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the columns that no other one dominates, in the order given."""
    kept: list[Column] = []
    for column in columns:
        if not any(dominates(other, column) for other in kept):
            kept = [other for other in kept if not dominates(column, other)]
            kept.append(column)
    return tuple(kept)
