"""All legal layouts of a space, with the count of grid points that each rule removed.

Axes are multiplied in one after the other and every rule is applied as soon as the axes it reads are present,
so the grid is never built whole; a removed row counts for all grid points it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.layouts.axes import AXES, Axis, column_type
from planner.layouts.offload import OFFLOAD_AXES, levels
from planner.layouts.rules import RULES, Facts
from planner.layouts.table import Ints, Layouts, constant, micro_batches

LAZY_AXES = frozenset(OFFLOAD_AXES)
"""Axes multiplied in by the search only where a layout without them could still win."""


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The legal layouts and the account of the rest."""

    layouts: Layouts
    grid: int
    removed: dict[str, int]
    domains: dict[str, list[float]]


def enumerate_layouts(facts: Facts) -> Enumeration:
    """Return every legal layout of `facts.space`; `grid` = legal + removed, lazy axes at their first value."""
    axes = [axis for axis in AXES if axis.name not in LAZY_AXES]
    domains = {axis.name: [*axis.domain(facts.space)] for axis in AXES}
    tried = levels(facts.space, facts.stack)
    for at, name in enumerate(OFFLOAD_AXES):
        domains[name] = [value for value in domains[name] if value in {level.values[at] for level in tried}]
    leader, members = _alike(facts)
    weight = np.bincount(leader, minlength=len(leader))
    removed: dict[str, int] = {}
    rows, done = 1, set[str]()
    columns: dict[str, Ints] = {}
    for at, axis in enumerate(axes):
        searched = domains[axis.name] if axis.name != "candidate" else sorted(members)
        values = np.array(searched, column_type(axis.name))
        if len(values) > 1:
            columns = {name: np.repeat(column, len(values)) for name, column in columns.items()}
        columns[axis.name] = np.tile(values, rows)
        done.add(axis.name)
        rest = int(np.prod([len(domains[later.name]) for later in axes[at + 1:]], dtype=np.int64))
        for rule in _ready(axis, done):
            keep = RULES[rule].passes(columns, facts)
            lost = int(weight[columns["candidate"][~keep]].sum())
            if lost:
                removed[rule] = removed.get(rule, 0) + lost * rest
                columns = {name: column[keep] for name, column in columns.items()}
        rows = len(columns[axis.name])
    columns = _expand(columns, members)
    grid = int(np.prod([len(domains[axis.name]) for axis in axes], dtype=np.int64))
    # every legal layout starts with nothing offloaded; what has one value is held once
    legal = len(columns["dp"])
    columns |= {name: constant(0.0, column_type(name), legal) for name in LAZY_AXES}
    columns |= {name: constant(domain[0], column_type(name), legal) for name, domain in domains.items()
                if len(domain) == 1 and name not in LAZY_AXES}
    count = micro_batches(facts.space.global_batch, columns["dp"], columns["micro_batch"])
    return Enumeration(Layouts(**columns, micro_batches=count), grid, removed, domains)  # type: ignore[arg-type]


def _alike(facts: Facts) -> tuple[Ints, dict[int, list[int]]]:
    """Return the first candidate alike in what rules read for every candidate, and the candidates of each such one."""
    traits = list(zip(facts.node_gpus.tolist(), facts.clustered.tolist(), map(tuple, facts.precisions.tolist()),
                      strict=True))
    leader = np.array([traits.index(trait) for trait in traits], np.int64)
    return leader, {int(first): [i for i, of in enumerate(leader) if of == first] for first in set(leader.tolist())}


def _expand(columns: dict[str, Ints], members: dict[int, list[int]]) -> dict[str, Ints]:
    """Repeat the rows of each leading candidate for all candidates alike."""
    parts: list[dict[str, Ints]] = []
    for first, alike in members.items():
        rows = columns["candidate"] == first
        mine = {name: column[rows] for name, column in columns.items()}
        parts += [mine | {"candidate": np.full(int(rows.sum()), one, np.int64)} for one in alike]
    return {name: np.concatenate([part[name] for part in parts]) for name in columns}


def _ready(axis: Axis, done: set[str]) -> Iterator[str]:
    """Yield the rules whose last missing axis is `axis`."""
    return (name for name, rule in RULES.items() if axis.name in rule.axes and done.issuperset(rule.axes))


def violations(columns: dict[str, Ints], facts: Facts) -> list[str]:
    """Return the names of the rules that the single layout in `columns` breaks."""
    return [name for name, rule in RULES.items() if not bool(np.all(rule.passes(columns, facts)))]
