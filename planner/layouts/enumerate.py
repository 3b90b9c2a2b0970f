"""All legal layouts of a space, with the count of grid points that each rule removed.

Axes are multiplied in one after the other and every rule is applied as soon as the axes it reads are present, so the
grid is never built whole; a removed row counts for all grid points it stands for. The early axes give *stems*, which
decide GPUs and the time of a layer; a stem grows into its layouts by the late axes, where the search asks for them.
Stems come in blocks, each made when it is asked for, so that memory does not grow with the grid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from planner.layouts.axes import AXES, LATE_AXES, STAGED, Axis, column_type, domain, micro_batches
from planner.layouts.offload import OFFLOAD_AXES, levels
from planner.layouts.rules import SPLIT_BY, Columns, Facts, Rule, rules_of
from planner.layouts.table import Ints, Layouts, Mask, constant

Wanted: TypeAlias = Callable[[int, Columns], Iterator[tuple[Mask, bool]]]
"""Yields the parts of rows that a candidate has use for, one after the other has been used, and whether more follow."""
LAZY_AXES = frozenset(OFFLOAD_AXES)
"""Axes multiplied in by the search only where a layout without them could still win."""
PIECE = 500_000
"""Rows made at once, before rules thin them out."""
BLOCK = 250_000
"""Rows that are enough for the next axis."""
FEW, GROWN = 8, 1024
"""Stems grown at once where one layout is enough, at first and at most."""
MANY = 256
"""Data-parallel degrees above which those that divide the global batch come first: near the best, and few."""
EARLY = tuple(axis for axis in AXES if axis.name not in LATE_AXES | LAZY_AXES)
LATE = tuple(axis for axis in AXES if axis.name in LATE_AXES)


class Grid:
    """The grid of a question and the account of what was removed from it so far, in grid points.

    Every grid point ends in one place: removed by a rule, among the `grown` layouts, or dropped by whoever asked for
    stems and did not grow them all. Lazy axes count at their first value.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.rules = rules_of(facts.stack)
        self.domains = {axis.name: domain(axis.name, facts.space) for axis in AXES}
        tried = levels(facts.space, facts.stack)
        for at, name in enumerate(OFFLOAD_AXES):
            held = {level.values[at] for level in tried}
            self.domains[name] = [value for value in self.domains[name] if value in held]
        self.removed: Counter[str] = Counter()
        self.grown = 0
        self.size = self._points((*EARLY, *LATE))
        self.points_per_stem = self._points(LATE)
        self.points_per_candidate = self._points((*EARLY[1:], *LATE))

    def _points(self, axes: tuple[Axis, ...], domains: Mapping[str, Sequence[float]] | None = None) -> int:
        return int(np.prod([len((domains or self.domains)[axis.name]) for axis in axes], dtype=np.int64))

    def stems(self, check: Callable[[], None] = lambda: None, wanted: Wanted | None = None,
              dropped: Collection[int] = ()) -> Iterator[StemBlock]:
        """Yield the legal stems of candidates alike in what rules read, with late axes at rest.

        `check` is called before each piece of work; it may end the enumeration by raising. wanted: of rows without the
        last early axis; where given, candidates come one by one, and what one has no use for counts as removed by a
        bound. dropped: candidates that have use for nothing, and are not counted.
        """
        last = self._points(EARLY[-1:]) * self.points_per_stem
        for alike in _alike(self.facts, dropped):
            first = {"candidate": np.array(alike[:1], np.int64)}
            for domains in self._in_turn():
                rules, inner = self._ready(EARLY[0], {EARLY[0].name}), EARLY[1:-1]
                start = self._kept(rules, dict(first), len(alike) * last * self._points(inner, domains))
                for columns in self._blocks(start, EARLY[:1], inner, len(alike) * last, domains, check):
                    for mine, part, more in _parts(alike, columns, wanted, self.removed, last):
                        for stems in self._blocks(part, EARLY[:-1], EARLY[-1:], len(mine) * self.points_per_stem,
                                                  domains, check):
                            yield StemBlock(mine, self._table(stems | {name: constant(value, np.int64, len(stems["dp"]))
                                                                   for name, value in _AT_REST.items()}), more)

    def _in_turn(self) -> Iterator[dict[str, list[float]]]:
        """Yield the domains in parts that make up the whole: of many data-parallel degrees the likely ones first."""
        ranks = self.domains["dp"]
        likely = [rank for rank in ranks if self.facts.space.global_batch % rank == 0]
        parts = [likely, sorted(set(ranks) - set(likely))] if len(ranks) > MANY else [ranks]
        yield from ({**self.domains, "dp": part} for part in parts if part or len(parts) == 1)

    def grow(self, stems: Layouts) -> Layouts:
        """Return the legal layouts of the stems."""
        start = {axis.name: getattr(stems, axis.name) for axis in EARLY}
        parts = list(self._blocks(start, EARLY, LATE, 1, self.domains, lambda: None))
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        self.grown += len(columns["dp"])
        return self._table(columns)

    def zero_stages(self, stems: Layouts) -> Iterator[tuple[int, Mask]]:
        """Yield the ZeRO stages, each with the stems that may have it."""
        known = {axis.name for axis in EARLY} | {"zero"}
        rules = [rule for rule in self.rules.values() if "zero" in rule.axes and known.issuperset(rule.axes)
                 and rule.name not in self.facts.skipped]
        for stage in map(int, self.domains["zero"]):
            columns = stems.columns | {"zero": np.full(len(stems), stage)}
            yield stage, np.logical_and.reduce([rule.passes(columns, self.facts) for rule in rules])

    def is_empty(self, check: Callable[[], None]) -> bool:
        """Say whether no layout is legal; `check` is that of `stems`."""
        for _, stems, _ in self.stems(check):
            start, count = 0, FEW
            while start < len(stems):
                check()
                if len(self.grow(stems.take(slice(start, start + count)))):
                    return False
                start, count = start + count, min(2 * count, GROWN)
        return True

    def _blocks(self, columns: dict[str, Ints], present: tuple[Axis, ...], axes: tuple[Axis, ...], weight: int,
                domains: Mapping[str, Sequence[float]], check: Callable[[], None]) -> Iterator[dict[str, Ints]]:
        """Multiply `axes` into the rows and yield them in blocks; apply every rule once it can be, and count.

        `weight` is how many grid points a row stands for once all of `axes` are in.
        """
        if not axes:
            yield columns
            return
        axis, rest = axes[0], axes[1:]
        present = (*present, axis)
        rules, points = self._ready(axis, {other.name for other in present}), weight * self._points(rest, domains)
        values = np.array(domains[axis.name], column_type(axis.name))
        parts: list[dict[str, Ints]] = []
        pieces = list(_pieces(columns, max(1, PIECE // max(1, len(values)))))
        for at, piece in enumerate(pieces):
            check()
            parts.append(self._kept(rules, _times(axis.name, values, piece), points))
            if at == len(pieces) - 1 or sum(len(part["candidate"]) for part in parts) >= BLOCK:
                block = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
                parts = []
                yield from self._blocks(block, present, rest, weight, domains, check)

    def _ready(self, axis: Axis, done: set[str]) -> list[Rule]:
        """Return the rules whose last missing axis is `axis`, those that only grow with what is missing included."""
        return [rule for rule in self.rules.values() if axis.name in rule.axes
                and {*done, rule.grows_with}.issuperset(rule.axes)]

    def _kept(self, rules: Sequence[Rule], columns: dict[str, Ints], points: int) -> dict[str, Ints]:
        """Return the rows that pass every rule; those that do not count for `points` each, under their first rule."""
        for rule in rules:
            if rule.name in self.facts.skipped:
                continue
            more = [name for name in (rule.grows_with,) if name is not None and name not in columns]
            least = {name: np.full(len(columns["candidate"]), min(self.domains[name])) for name in more}
            keep = np.flatnonzero(passes := rule.passes(columns | least, self.facts))
            lost = len(passes) - len(keep)
            if lost:
                self.removed[rule.name] += lost * points
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


class StemBlock(NamedTuple):
    """Stems of candidates that are alike, and whether others of them follow that these may show to be of no use."""

    candidates: list[int]
    stems: Layouts
    more: bool


def _parts(alike: list[int], columns: dict[str, Ints], wanted: Wanted | None, removed: Counter[str], points: int
           ) -> Iterator[tuple[list[int], dict[str, Ints], bool]]:
    """Yield candidates with the parts of the rows that they want; what is not wanted counts for `points` a row."""
    if wanted is None:
        yield alike, columns, False
        return
    for candidate in alike:
        left = len(columns["candidate"])
        for mask, more in wanted(candidate, columns):
            mine = np.flatnonzero(mask)
            left -= len(mine)
            yield [candidate], {name: column[mine] for name, column in columns.items()}, more
        removed["bound"] += left * points


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


def _alike(facts: Facts, dropped: Collection[int]) -> list[list[int]]:
    """Return the candidates but the `dropped` in groups that are alike in what rules read."""
    groups: dict[object, list[int]] = {}
    candidate, rest = np.divmod(facts.whole_sequences, 1024 ** (len(SPLIT_BY) - 1))
    for at, traits in enumerate(zip(facts.node_gpus.tolist(), facts.clustered.tolist(),
                                    map(tuple, facts.precisions.tolist()), strict=True)):
        if at in facts.space.only.get("candidate", (at,)) and at not in dropped:
            groups.setdefault((traits, tuple(rest[candidate == at].tolist())), []).append(at)
    return list(groups.values())


def violations(columns: Columns, facts: Facts) -> list[str]:
    """Return the names of the rules that the single layout in `columns` breaks."""
    return [name for name, rule in rules_of(facts.stack).items() if not bool(np.all(rule.passes(columns, facts)))]
