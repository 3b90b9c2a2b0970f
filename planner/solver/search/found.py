"""What a search finds: bounded batches of rows, staged layouts, and the account of everything else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from planner.layouts.table import Floats, Ints, Layouts
from planner.physics.training.estimate import TimeTerms
from planner.physics.training.memory import MemoryTerms
from planner.solver import staging
from planner.solver.column import Column
from planner.solver.search.keys import Key


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """Rows with their terms, kept while any of them may still be staged."""

    rows: Layouts
    time: TimeTerms
    memory: MemoryTerms
    step: Floats
    """Least step seconds with this memory."""
    known: Ints
    """Bit n is set where the row's variant at level n of the search is bounded already."""

    def take(self, rows: Ints) -> RowBatch:
        """Return the chosen rows as a batch of their own."""
        return RowBatch(self.rows.take(rows), self.time.take(rows), self.memory.take(rows), self.step[rows],
                        self.known[rows])


@dataclass(frozen=True, slots=True, eq=False)
class StagedLayout:
    """One staged layout: where its terms are, its split, its step time, and its column."""

    batch: RowBatch
    row: int
    staged: staging.Staged
    step_seconds: float
    goodput: float
    column: Column

    cents: int
    """Cost at the cheapest offer."""
    key: Key
    """What the objective sorts by, ties broken as in the fleet model."""


@dataclass(slots=True)
class Frontier:
    """What the search found: staged layouts by candidate, and the account of everything else."""

    found: list[StagedLayout] = field(default_factory=list)
    removed: Counter[str] = field(default_factory=Counter)
    fit: int = 0
    staged: int = 0
    interrupted: bool = False
    open_bound: Key | None = None
    """Least key among layouts not yet staged when time ran out; none where the search ended."""

    def note_open(self, key: Key) -> None:
        """Remember that nothing tighter than `key` is known of what was not staged."""
        self.open_bound = min(key, self.open_bound or key)
