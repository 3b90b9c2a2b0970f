"""What a search sorts and prunes by: the least values of rows, in the solver's integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from planner.layouts.table import Ints

Key = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Keys:
    """Least values of each row with any number of spares: what the objective sorts by, cents, microseconds, watts."""

    first: Ints
    cents: Ints
    micros: Ints
    """Where time does not count, nodes and complexity, as `Pricing.key` has it."""
    uppers: Ints
    watts: Ints
    surplus: Ints
    """Nodes above what there is of the candidate."""
    gpus: Ints
    energy: Ints

    @property
    def measures(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """What an entry holds: the objective, cents, microseconds, GPUs, Wh."""
        return (self.first, self.cents, self.micros, self.gpus, self.energy)

    def entry(self, row: int) -> Key:
        """Return the least measures of one row."""
        return tuple(int(column[row]) for column in self.measures)

    def order(self, *before: Ints) -> Ints:
        """Return the rows by `before`, then objective, cost and time."""
        same = self.cents is self.first or np.array_equal(self.cents, self.first)
        parts = (self.micros, self.first) if same else (self.micros, self.cents, self.first)
        order: Ints = np.lexsort((*parts, *before))
        return order

    def take(self, rows: Ints | slice) -> Keys:
        """Return the keys of the chosen rows."""
        return Keys(*(getattr(self, name)[rows] for name in _KEYS))


_KEYS = tuple(f.name for f in fields(Keys))


def joined_keys(parts: Sequence[Keys]) -> Keys:
    """Return the keys of all parts, of which there is at least one."""
    return Keys(*(np.concatenate([getattr(part, name) for part in parts]) for name in _KEYS))
