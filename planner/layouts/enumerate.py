"""All legal layouts of a space, with the count of grid points that each rule removed.

Axes are multiplied in one after the other and every rule is applied as soon as the axes it reads are present, so the
grid is never built whole; a removed row counts for all grid points it stands for. The early axes give *stems*, which
decide GPUs and the time of a layer; a stem grows into its layouts by the late axes, where the search asks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.layouts.axes import AXES, LATE_AXES, STAGED, Axis, column_type, domain, micro_batches
from planner.layouts.offload import OFFLOAD_AXES, levels
from planner.layouts.rules import RULES, SPLIT_BY, Columns, Facts
from planner.layouts.table import Ints, Layouts, constant, joined

LAZY_AXES = frozenset(OFFLOAD_AXES)
"""Axes multiplied in by the search only where a layout without them could still win."""
PIECE = 1_000_000
"""Rows made at once, before rules thin them out."""
EARLY = tuple(axis for axis in AXES if axis.name not in LATE_AXES | LAZY_AXES)
LATE = tuple(axis for axis in AXES if axis.name in LATE_AXES)


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The legal layouts and the account of the rest."""

    layouts: Layouts
    grid: int
    removed: dict[str, int]
    domains: dict[str, list[float]]


class Grid:
    """The grid of a question and the account of what was removed from it so far, in grid points.

    Every grid point ends in one place: removed by a rule, among the `grown` layouts, or dropped by whoever asked for
    stems and did not grow them all. Lazy axes count at their first value.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.domains = {axis.name: domain(axis.name, facts.space) for axis in AXES}
        tried = levels(facts.space, facts.stack)
        for at, name in enumerate(OFFLOAD_AXES):
            held = {level.values[at] for level in tried}
            self.domains[name] = [value for value in self.domains[name] if value in held]
        self.removed: Counter[str] = Counter()
        self.grown = 0
        self.size = self._points((*EARLY, *LATE))
        self.points_per_stem = self._points(LATE)

    def _points(self, axes: tuple[Axis, ...]) -> int:
        return int(np.prod([len(self.domains[axis.name]) for axis in axes], dtype=np.int64))

    def stems(self) -> Iterator[tuple[list[int], Layouts]]:
        """Yield candidates alike in what rules read, and the legal stems of each: rows with late axes at rest."""
        for alike in _alike(self.facts):
            first = {"candidate": np.array(alike[:1], np.int64)}
            searched = [a for a in EARLY if a.name != "candidate"]
            columns = self._multiplied(first, (EARLY[0],), searched, len(alike) * self.points_per_stem)
            yield alike, self._table(columns | {name: constant(value, np.int64, len(columns["dp"]))
                                                for name, value in _AT_REST.items()})

    def grow(self, stems: Layouts) -> Layouts:
        """Return the legal layouts of the stems."""
        columns = self._multiplied({axis.name: getattr(stems, axis.name) for axis in EARLY}, EARLY, LATE, 1)
        self.grown += len(columns["dp"])
        return self._table(columns)

    def _multiplied(self, columns: dict[str, Ints], present: tuple[Axis, ...], axes: tuple[Axis, ...] | list[Axis],
                    weight: int) -> dict[str, Ints]:
        """Multiply `axes` into the rows and apply every rule once it can be; count what it removes.

        `weight` is how many grid points a row stands for once all of `axes` are in.
        """
        done, columns = {axis.name for axis in present}, dict(columns)
        rules = list(_ready(present[-1], done)) if len(present) == 1 else []
        columns = self._kept(rules, columns, weight * self._points(tuple(axes)))
        for at, axis in enumerate(axes):
            done.add(axis.name)
            rules, rest = list(_ready(axis, done)), weight * self._points(tuple(axes[at + 1:]))
            values = np.array(self.domains[axis.name], column_type(axis.name))
            piece = max(1, PIECE // max(1, len(values)))
            parts = [self._kept(rules, _times(axis.name, values, part), rest) for part in _pieces(columns, piece)]
            columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return columns

    def _kept(self, rules: Sequence[str], columns: dict[str, Ints], points: int) -> dict[str, Ints]:
        """Return the rows that pass every rule; those that do not count for `points` each, under their first rule."""
        for rule in rules:
            if rule in self.facts.skipped:
                continue
            keep = RULES[rule].passes(columns, self.facts)
            lost = len(keep) - int(np.count_nonzero(keep))
            if lost:
                self.removed[rule] += lost * points
                columns = {name: column[keep] for name, column in columns.items()}
        return columns

    def _table(self, columns: dict[str, Ints]) -> Layouts:
        """Return the columns as a table: nothing offloaded, and what has one value held once."""
        rows = len(columns["dp"])
        whole = columns | {name: constant(0.0, column_type(name), rows) for name in LAZY_AXES}
        whole |= {name: constant(values[0], column_type(name), rows) for name, values in self.domains.items()
                  if len(values) == 1 and name not in LAZY_AXES | {"candidate"}}
        count = micro_batches(self.facts.space.global_batch, columns["dp"], columns["micro_batch"])
        return Layouts(**whole, micro_batches=count)  # type: ignore[arg-type]


_AT_REST = {"vpp": 1, "schedule": 0, "zero": 0, "hsdp": 1, "no_sync": 0, "recompute": STAGED}


def _pieces(columns: dict[str, Ints], size: int) -> Iterator[dict[str, Ints]]:
    """Yield the rows in pieces of at most `size`; one piece where there are none."""
    for start in range(0, max(1, len(columns["candidate"])), size):
        yield {name: column[start:start + size] for name, column in columns.items()}


def _times(name: str, values: Ints, columns: dict[str, Ints]) -> dict[str, Ints]:
    """Return every row with every value of one more axis."""
    rows = len(columns["candidate"])
    if len(values) != 1:
        columns = {other: np.repeat(column, len(values)) for other, column in columns.items()}
    return columns | {name: np.tile(values, rows)}


def enumerate_layouts(facts: Facts) -> Enumeration:
    """Return every legal layout of `facts.space`; `grid` = legal + removed, lazy axes at their first value."""
    grid = Grid(facts)
    tables = [grid.grow(stems.replace(candidate=np.full(len(stems), one, np.int64)))
              for alike, stems in grid.stems() for one in alike]
    return Enumeration(joined(tables), grid.size, dict(grid.removed), grid.domains)


def _alike(facts: Facts) -> list[list[int]]:
    """Return the candidates in groups that are alike in what rules read."""
    groups: dict[object, list[int]] = {}
    candidate, rest = np.divmod(facts.whole_sequences, 1024 ** (len(SPLIT_BY) - 1))
    for at, traits in enumerate(zip(facts.node_gpus.tolist(), facts.clustered.tolist(),
                                    map(tuple, facts.precisions.tolist()), strict=True)):
        if at in facts.space.only.get("candidate", (at,)):
            groups.setdefault((traits, tuple(rest[candidate == at].tolist())), []).append(at)
    return list(groups.values())


def _ready(axis: Axis, done: set[str]) -> Iterator[str]:
    """Yield the rules whose last missing axis is `axis`."""
    return (name for name, rule in RULES.items() if axis.name in rule.axes and done.issuperset(rule.axes))


def violations(columns: Columns, facts: Facts) -> list[str]:
    """Return the names of the rules that the single layout in `columns` breaks."""
    return [name for name, rule in RULES.items() if not bool(np.all(rule.passes(columns, facts)))]
