"""What a search finds: bounded batches of rows, staged layouts, and the account of everything else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from planner.layouts.table import Ints, Layouts
from planner.physics.training.estimate import TimeTerms
from planner.physics.training.memory import MemoryTerms
from planner.solver import staging
from planner.solver.column import Column
from planner.solver.search.job import Key

Nearest: TypeAlias = tuple[float, dict[str, float]]
"""By what share something is short, and the layout."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows with their terms, kept while any of them may still be staged."""

    rows: Layouts
    time: TimeTerms
    memory: MemoryTerms
    known: Ints
    """Bit n is set where the row's variant at level n of the search is bounded already."""

    def take(self, rows: Ints) -> Batch:
        """Return the chosen rows as a batch of their own."""
        return Batch(self.rows.take(rows), self.time.take(rows), self.memory.take(rows), self.known[rows])


@dataclass(frozen=True, slots=True, eq=False)
class StagedLayout:
    """One staged layout: where its terms are, its split, its step time, and its column."""

    batch: Batch
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
    nearest_memory: Nearest | None = None
    """By what share memory of GPUs is short, and the layout that misses by least."""
    nearest_host: Nearest | None = None
    """The same of layouts that GPUs hold, where host memory or flash is short."""

    def note_open(self, key: Key) -> None:
        """Remember that nothing tighter than `key` is known of what was not staged."""
        self.open_bound = min(key, self.open_bound or key)

    def note_memory(self, short: float, layout: dict[str, float]) -> None:
        """Remember the layout that misses memory of GPUs by least."""
        self.nearest_memory = _nearer(self.nearest_memory, (short, layout))

    def note_host(self, short: float, layout: dict[str, float]) -> None:
        """Remember the layout that GPUs hold and the host misses by least."""
        self.nearest_host = _nearer(self.nearest_host, (short, layout))


def _nearer(held: Nearest | None, found: Nearest) -> Nearest:
    """Return what misses by less; of equals on several candidates, that of the first."""
    return found if held is None or (found[0], found[1]["candidate"]) < (held[0], held[1]["candidate"]) else held
