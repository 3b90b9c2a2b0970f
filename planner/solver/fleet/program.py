"""A linear program in integers: what both CP-SAT and the relaxation read, as numpy columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
FREE = 2**60
"""No limit."""


class MixedProgram:
    """Variables with bounds and a price each, and rows that a sum of them keeps between two limits."""

    def __init__(self) -> None:
        """Start without anything."""
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.price: list[int] = []
        self.least: list[int] = []
        self.most: list[int] = []
        self._entries: list[tuple[Ints, Ints, Ints]] = []
        """Rows, variables and factors."""
        self._pending: tuple[list[int], list[int], list[int]] = ([], [], [])

    def variables(self, count: int, upper: int = 1, price: int | Ints = 0) -> range:
        """Add variables from 0 to `upper`."""
        first = len(self.lower)
        self.lower += [0] * count
        self.upper += [upper] * count
        self.price += [price] * count if isinstance(price, int) else price.tolist()
        return range(first, first + count)

    def variable(self, upper: int = 1, price: int = 0) -> int:
        """Add one variable from 0 to `upper`."""
        return self.variables(1, upper, price)[0]

    def row(self, terms: Iterable[tuple[int, int]], least: int = -FREE, most: int = FREE) -> int:
        """Add a row: pairs of a variable and its factor."""
        at = len(self.least)
        self.least.append(least)
        self.most.append(most)
        self.put_each(at, terms)
        return at

    def rows(self, count: int, least: int = -FREE, most: int = FREE) -> range:
        """Add rows without terms."""
        first = len(self.least)
        self.least += [least] * count
        self.most += [most] * count
        return range(first, first + count)

    def put(self, row: int, variable: int, factor: int) -> None:
        """Add a variable to a row."""
        rows, variables, factors = self._pending
        rows.append(row)
        variables.append(variable)
        factors.append(factor)

    def put_each(self, row: int, terms: Iterable[tuple[int, int]]) -> None:
        """Add pairs of a variable and its factor to a row."""
        pairs = list(terms)
        rows, variables, factors = self._pending
        rows += [row] * len(pairs)
        variables += [variable for variable, _ in pairs]
        factors += [factor for _, factor in pairs]

    def put_all(self, rows: Ints, variables: Ints, factors: Ints) -> None:
        """Add many variables to rows."""
        self._entries.append((rows, variables, factors))

    def entries(self) -> tuple[Ints, Ints, Ints]:
        """Return rows, variables and factors of all terms, by row and variable, each pair once and none zero."""
        self._entries.append(tuple(np.array(one, dtype=np.int64) for one in self._pending))  # type: ignore[arg-type]
        self._pending = [], [], []
        rows, variables, factors = (np.concatenate([part[at] for part in self._entries])
                                    for at in range(3))
        width = len(self.lower) or 1
        keys, where = np.unique(rows * width + variables, return_inverse=True)
        total = np.zeros(len(keys), dtype=np.int64)
        np.add.at(total, where, factors)
        kept = total != 0
        return keys[kept] // width, keys[kept] % width, total[kept]
