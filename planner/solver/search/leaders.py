"""The best layouts of one candidate so far, and the key from which on another one is of no interest."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from planner.layouts.table import Ints, Mask
from planner.solver.search.found import StagedLayout
from planner.solver.search.keys import Key, Keys

SORTED = 3
"""Parts of a key that a search sorts by: objective, cost and time. Under a commitment many layouts cost the same."""
EACH_SIZE = 2
"""Layouts of one number of GPUs among the best, where there are several numbers."""
LAST = 2**62
"""Above every measure."""


class Keeping(Protocol):
    """What decides which layouts a search is interested in. Entries and keys are lower bounds."""

    @property
    def end(self) -> Key | None:
        """The first parts of a key behind which nothing is of interest; none while something may be."""

    def offer(self, staged: StagedLayout) -> None:
        """Take a staged layout into account."""

    def passes(self, size: int, entry: Key) -> bool:
        """Say whether a layout on `size` GPUs is of interest."""

    def near(self, keys: Keys) -> Mask:
        """Say which rows are of interest."""


def leading(count: int, sizes: Ints, end: Key | None = None) -> Keeping:
    """Return what keeps the `count` best of a candidate whose stems have these numbers of GPUs, none behind `end`."""
    return Leaders(count, count if len(np.unique(sizes)) == 1 else min(count, EACH_SIZE), end)


@dataclass(slots=True)
class Leaders:
    """Keeps the `count` best keys, of which at most `each` of one size; a size is a number of GPUs.

    `most` is the key behind which nothing is of interest from the start.
    """

    count: int = 1
    each: int = 1
    most: Key | None = None
    by_size: dict[int, list[Key]] = field(default_factory=dict)
    best: list[Key] = field(default_factory=list)

    def offer(self, staged: StagedLayout) -> None:
        """Take a staged layout into account."""
        mine = self.by_size.setdefault(staged.column.gpus, [])
        insort(mine, staged.key)
        del mine[self.each:]
        self.best = sorted(key for keys in self.by_size.values() for key in keys)[:self.count]

    @property
    def end(self) -> Key | None:
        """The key behind which nothing is of interest, whatever its size; none while all is."""
        ends = [] if self.most is None else [self.most[:SORTED]]
        return min([*ends, self.best[-1][:SORTED]] if len(self.best) >= self.count else ends, default=None)

    def passes(self, size: int, entry: Key) -> bool:
        """Say whether a layout with the least measures in `entry` may still be a leader."""
        end, mine = self.end, self.by_size.get(size, [])
        return not (end is not None and entry[:SORTED] > end) and not (
            len(mine) >= self.each and entry[:SORTED] > mine[-1][:SORTED])

    def near(self, keys: Keys) -> Mask:
        """Say which rows may still be leaders, by the first parts of their least keys."""
        end = self.end
        near = np.ones(len(keys.gpus), bool) if end is None else _at_most(keys, end)
        for size, mine in self.by_size.items():
            if len(mine) >= self.each:
                near &= (keys.gpus != size) | _at_most(keys, mine[-1])
        return near


def _at_most(keys: Keys, key: Key) -> Mask:
    """Say which rows' objective, cost and time do not lie behind those of a key."""
    first, cents, micros = key[:SORTED]
    level = (keys.first == first) & ((keys.cents < cents) | ((keys.cents == cents) & (keys.micros <= micros)))
    passes: Mask = (keys.first < first) | level
    return passes


def beaten_by_fewer(staged: StagedLayout) -> StagedLayout:
    """Return a layout as one that only fewer GPUs beat, where nothing else counts."""
    return replace(staged, key=(staged.key[0] - 1, LAST, *staged.key[2:]))
