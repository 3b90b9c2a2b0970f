"""The search of one candidate among several that are searched side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from planner.layouts.table import Ints, Layouts, Mask, joined
from planner.solver.search.job import Key, Keys, joined_keys
from planner.solver.search.leaders import Keeping

FIRST_BATCH = 256
"""Stems grown at once while the incumbent is young; more where the search goes deep."""
Heap = list[tuple[Key, int, int, int]]
"""Least key, batch, row, and how many rows from there on are not refined yet: 0 for a single one that is."""


@dataclass(slots=True)
class Run:
    """The search of one candidate: its stems, those not grown yet best first, and what awaits staging."""

    leaders: Keeping
    stems: Layouts
    keys: Keys
    order: Ints
    whole: Ints
    """The order at the start."""
    heap: Heap = field(default_factory=list)
    size: int = FIRST_BATCH
    ended: bool = False

    @property
    def ahead(self) -> Key | None:
        """The key of the best stem not grown yet."""
        return self.keys.entry(self.order[0]) if len(self.order) else None


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
