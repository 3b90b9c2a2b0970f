"""The search of one candidate among several that are searched side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from planner.layouts.table import Ints, Layouts, Mask, joined
from planner.solver.search.keys import Key, Keys, joined_keys
from planner.solver.search.leaders import Keeping

FIRST_BATCH = 1024
"""Stems whose bounds are sharpened at once while the incumbent is young; more where the search goes deep."""
LEAST_SHARE = 2
"""Of that number this part at least, however few are hopeful."""
MARGIN = 1.01
"""How far above the least sharp bound a search often ends."""
FIRST_GROWN = 64
"""Stems grown at once, alike."""
FEW = (64, 8)
"""Both where time does not count, as the first that fits is the best."""
LARGEST_BATCH = 8192
"""Stems of a candidate sharpened or grown in one round at most."""
Heap = list[tuple[Key, int, int, int]]
"""Least key, batch, row, and how many rows from there on are not refined yet: 0 for a single one that is."""


@dataclass(slots=True)
class Stems:
    """The search of one candidate: its stems, best first by their bounds, of which the sharper ones take memory into
    account, and what awaits staging.
    """

    leaders: Keeping
    stems: Layouts
    keys: Keys
    order: Ints
    """Stems whose bounds are not sharpened yet."""
    ready: Layouts
    """Stems whose bounds are, with their keys."""
    sharp: Keys
    heap: Heap = field(default_factory=list)
    size: int = FIRST_BATCH
    grown: int = FIRST_GROWN
    ended: bool = False

    @classmethod
    def start(cls, leaders: Keeping, stems: Layouts, keys: Keys, *, timed: bool = True) -> Stems:
        """Return the search of a candidate with these stems and their least keys; timed: whether time counts."""
        none, (size, grown) = slice(0, 0), (FIRST_BATCH, FIRST_GROWN) if timed else FEW
        return cls(leaders, stems, keys, keys.order(), stems.take(none), keys.take(none), size=size, grown=grown)

    @property
    def ahead(self) -> Key | None:
        """The key of the best stem not grown yet."""
        keys = [self.keys.entry(self.order[0])] if len(self.order) else []
        return min([*keys, self.sharp.entry(0)] if len(self.ready) else keys, default=None)

    @property
    def left(self) -> int:
        """Stems not grown yet."""
        return len(self.order) + len(self.ready)

    def blunt(self) -> Layouts:
        """Take out the stems whose bounds are to be sharpened next; none where one that is sharp is ahead of all."""
        if not len(self.order) or (len(self.ready) and self.sharp.entry(0) < self.keys.entry(self.order[0])):
            return self.stems.take(slice(0, 0))
        count = max(self.size // LEAST_SHARE, min(self.size, self._hopeful))
        rest, self.order = self.order[:count], self.order[count:]
        self.size = min(2 * self.size, LARGEST_BATCH)
        return self.stems.take(rest)

    @property
    def _hopeful(self) -> int:
        """Stems, best first, whose bounds lie about where the search is to end: by its leaders, or by its best bound
        that is sharp.
        """
        end = self.leaders.end[0] if self.leaders.end else np.inf
        if len(self.ready):
            end = min(end, MARGIN * self.sharp.first[0])
        return int(np.searchsorted(self.keys.first[self.order], end, side="right"))

    def sharpened(self, stems: Layouts, keys: Keys) -> None:
        """Put in stems with sharper keys."""
        stems, keys = joined([self.ready, stems]), joined_keys([self.sharp, keys])
        order = keys.order()
        self.ready, self.sharp = stems.take(order), keys.take(order)

    def next(self) -> tuple[Layouts, int]:
        """Take out the stems to grow next, and count those of them that the leaders exclude by now."""
        ahead = len(self.ready)
        if len(self.order):
            ahead = int(np.searchsorted(self.sharp.first, self.keys.first[self.order[0]], side="right"))
        count = max(1, min(ahead, self.grown))
        near = np.flatnonzero(self.leaders.near(self.sharp.take(slice(0, count))))
        stems = self.ready.take(near)
        self.ready, self.sharp = self.ready.take(slice(count, None)), self.sharp.take(slice(count, None))
        self.grown = min(2 * self.grown, LARGEST_BATCH)
        return stems, count - len(near)


def by_candidate(parts: Sequence[tuple[Layouts, Keys]]) -> Iterator[tuple[int, Layouts, Keys]]:
    """Yield every candidate with all its rows; in a part those of a candidate lie together."""
    found: dict[int, list[tuple[Layouts, Keys]]] = {}
    for stems, keys in parts:
        starts = np.flatnonzero(np.diff(stems.candidate, prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(stems)]):
            mine = slice(start, end)
            found.setdefault(int(stems.candidate[start]), []).append((stems.take(mine), keys.take(mine)))
    for candidate, tables in found.items():
        stems, keys = tables[0]
        if len(tables) > 1:
            stems, keys = joined([one for one, _ in tables]), joined_keys([one for _, one in tables])
        yield candidate, stems, keys


def near_leaders(leaders: Mapping[int, Keeping], rows: Layouts, keys: Keys) -> Mask:
    """Say which rows are still of interest to the search of their candidate; of one without leaders all are."""
    near = np.ones(len(rows), bool)
    for candidate, kept in leaders.items():
        mine = np.flatnonzero(rows.candidate == candidate)
        if len(mine):
            near[mine] = kept.near(keys.take(mine))
    return near
