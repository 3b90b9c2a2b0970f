"""Rows that whole nodes keep and parts of nodes do not: capacity divided by a number and rounded, period by period.

Where a pool has c nodes and r = c mod d, nodes taken n times keep
sum of (floor(n/d) (d - r) + max(0, n mod d - r)) <= floor(c/d) (d - r) + nodes of lots
(mixed-integer rounding): of 14 nodes, jobs of 8 take place for one, jobs of 4 for three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.solver.fleet.program import Ints, MixedProgram
from planner.solver.fleet.schedule import Problem

Floats = NDArray[np.float64]
MOST_NEW = 400
"""Rows added at a time, those that are kept least."""
LEAST_MISSED = 0.02
"""Nodes by which a row is not kept, to be added."""
Used = Mapping[tuple[int, int], Floats]
"""By pool and nodes: how many ways with so many nodes run in each period, in parts."""


class Rounded:
    """The rows of this kind that are stated: by pool and divisor, in which periods."""

    def __init__(self, problem: Problem, held: Sequence[tuple[int, int]]) -> None:
        """Start with none; held: pools and nodes of all ways."""
        self.capacity = {at: np.array(pool.capacity, dtype=np.int64) for at, pool in enumerate(problem.pools)
                         if pool.capacity}
        self.lots = {at: problem.pools[at].lots for at in self.capacity}
        self.sizes = {at: sorted({nodes for pool, nodes in held if pool == at}) for at in self.capacity}
        self.stated: list[tuple[int, int, int]] = []
        """Pool, divisor and period."""

    def weights(self, pool: int, divisor: int, nodes: int) -> Ints:
        """Return what so many nodes take of each period's row."""
        left = self.capacity[pool] % divisor
        return nodes // divisor * (divisor - left) + np.maximum(0, nodes % divisor - left)

    def most(self, pool: int, divisor: int) -> Ints:
        """Return what each period's row has without lots."""
        return self.capacity[pool] // divisor * (divisor - self.capacity[pool] % divisor)

    def find(self, used: Used, there: Mapping[int, Floats]) -> int:
        """State rows that a relaxation keeps least; return how many. there: nodes of lots, by pool and period."""
        known, missed = set(self.stated), list[tuple[float, tuple[int, int, int]]]()
        for pool, sizes in self.sizes.items():
            for divisor in sizes:
                if divisor < 2:
                    continue
                taken = np.sum([self.weights(pool, divisor, nodes) * used[pool, nodes] for nodes in sizes], axis=0)
                over = (taken - self.most(pool, divisor) - there[pool]) / (divisor - self.capacity[pool] % divisor)
                over[self.capacity[pool] % divisor == 0] = 0
                missed += [(-float(over[at]), (pool, divisor, int(at))) for at in np.flatnonzero(over > LEAST_MISSED)
                           if (pool, divisor, int(at)) not in known]
        new = [one for _, one in sorted(missed)[:MOST_NEW]]
        self.stated += new
        return len(new)

    def put(self, program: MixedProgram, lots: Sequence[Sequence[tuple[int, list[int]]]],
            ways: Sequence[tuple[Ints, Ints, Ints, Ints, Ints]]) -> range:
        """Add all stated rows to a program; return them. ways: pools, nodes, variables, first periods, first after."""
        rows = program.rows(len(self.stated))
        at_row = {kind: np.full(len(self.capacity[kind[0]]), -1, dtype=np.int64)
                  for kind in {(pool, divisor) for pool, divisor, _ in self.stated}}
        for row, (pool, divisor, period) in zip(rows, self.stated, strict=True):
            at_row[pool, divisor][period] = row
            program.most[row] = int(self.most(pool, divisor)[period])
            for lot, (nodes, _) in zip(self.lots[pool], lots[pool], strict=True):
                if lot.start <= period < lot.end:
                    program.put(row, nodes, -1)
        for (kind, divisor), by_period in sorted(at_row.items(), key=lambda one: one[0]):
            table = np.array([self.weights(kind, divisor, size) for size in self.sizes[kind]])
            for pools, taken, variables, start, end in ways:
                mine = pools == kind
                length = (end - start)[mine]
                steps = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
                period = np.repeat(start[mine], length) + steps
                sizes = np.repeat(np.searchsorted(self.sizes[kind], taken[mine]), length)
                factors, here = table[sizes, period], by_period[period]
                kept = (here >= 0) & (factors > 0)
                program.put_all(here[kept], np.repeat(variables[mine], length)[kept], factors[kept])
        return rows

    def prices(self, rows: range, prices: Floats) -> dict[int, dict[int, Floats]]:
        """Return what the rows of a program charge for a unit of what is taken in each period, by pool and divisor;
        rows that were found since come with the next one.
        """
        found = dict[int, dict[int, Floats]]()
        for row, (pool, divisor, period) in zip(rows, self.stated[:len(rows)], strict=True):
            mine = found.setdefault(pool, {}).setdefault(divisor, np.zeros(len(self.capacity[pool])))
            mine[period] -= min(0.0, prices[row])
        return found
