"""The best layouts of one candidate so far, and the key from which on another one is of no interest."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

import numpy as np

from planner.layouts.table import Ints, Mask
from planner.solver.job import Key

_ENDLESS = 2**62


@dataclass(slots=True)
class Leaders:
    """Keeps the `count` best keys, of which at most `each` of one size; a size is a number of GPUs."""

    count: int = 1
    each: int = 1
    by_size: dict[int, list[Key]] = field(default_factory=dict)
    best: list[Key] = field(default_factory=list)

    def offer(self, size: int, key: Key) -> None:
        """Take a staged layout into account."""
        mine = self.by_size.setdefault(size, [])
        insort(mine, key)
        del mine[self.each:]
        self.best = sorted(one for keys in self.by_size.values() for one in keys)[:self.count]

    @property
    def end(self) -> Key | None:
        """The key behind which nothing is of interest, whatever its size; none while all is."""
        return self.best[-1][:2] if len(self.best) >= self.count else None

    def passes(self, size: int, entry: Key) -> bool:
        """Say whether a layout whose least key is `entry` may still be a leader."""
        end, mine = self.end, self.by_size.get(size, [])
        return not (end is not None and entry > end) and not (len(mine) >= self.each and entry > mine[-1][:2])

    def near(self, sizes: Ints, first: Ints) -> Mask:
        """Say which rows may still be leaders, by the first part of their least keys."""
        end = self.end
        limit = np.full(len(sizes), _ENDLESS if end is None else end[0], np.int64)
        for size, mine in self.by_size.items():
            if len(mine) >= self.each:
                limit[sizes == size] = np.minimum(limit[sizes == size], mine[-1][0])
        near: Mask = first <= limit
        return near
