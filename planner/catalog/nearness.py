"""How far a question is from the evidence: the rows most alike, what none of them has, how many sources have such."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from pydantic import Field

from planner.catalog.ranges import Rows
from planner.yaml_io import Frozen

Sd = Annotated[float, Field(ge=1e-4, le=10)]
"""Standard deviation of the logarithm of measured over predicted."""
Size = Annotated[float, Field(gt=0, le=1e18)]
"""Of a question, in its own unit; its logarithm is taken."""


class Cell(Frozen):
    """Rows alike in all of some traits."""

    traits: dict[str, str]
    rows: Rows
    sources: tuple[str, ...] = Field(min_length=1)
    spread: Sd
    """Robust standard deviation of the logarithm, drawn to that of the cell that this one is part of."""
    error: float = Field(ge=0, le=1e6)
    """Median of the relative error."""
    own: bool = False
    """Whether they are of the cluster that is asked about, to whose rows the constants are fitted."""
    sizes: dict[str, tuple[Size, Size]] = Field(default_factory=dict)
    """Least and most of each size."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a question is from the rows there are."""

    cell: Cell
    """Of the rows most alike."""
    same: bool
    """Whether those have its head."""
    among: int
    """Sources whose rows have its head; 1 where none has."""
    unseen: tuple[str, ...]
    """Traits whose value no row of the same head has."""
    past: Mapping[str, float]
    """Doublings of each size past those of the rows of the same head."""
    backing: int
    """Sources of rows that have what the law calls alike."""


@dataclass(frozen=True)
class Nearness:
    """Cells of evidence, by which a question finds the rows most like it."""

    traits: tuple[str, ...]
    head: int
    cells: tuple[Cell, ...]
    like: tuple[str, ...] = ()

    @cached_property
    def _places(self) -> Mapping[frozenset[tuple[str, str]], Cell]:
        return {frozenset(cell.traits.items()): cell for cell in self.cells}

    @cached_property
    def _whole(self) -> Sequence[Cell]:
        return [cell for cell in self.cells if len(cell.traits) == len(self.traits)]

    @cached_property
    def _looked_up(self) -> dict[tuple[tuple[str, str], ...], tuple[Distance, Sequence[Cell]]]:
        """What is known of traits whatever the sizes: many questions differ in these alone."""
        return {}

    def distance(self, traits: Mapping[str, str], sizes: Mapping[str, float]) -> Distance:
        """Return how far a question is; a trait or size that is not known is left out of both."""
        key = tuple(traits.items())
        if key not in self._looked_up:
            self._looked_up[key] = self._by_traits(traits)
        distance, near = self._looked_up[key]
        return replace(distance, past={name: _doublings(size, [c.sizes[name] for c in near if name in c.sizes])
                                       for name, size in sizes.items()})

    def _by_traits(self, traits: Mapping[str, str]) -> tuple[Distance, Sequence[Cell]]:
        """Return how far a question of any size is, and the cells whose sizes are near."""
        near, unseen = self._whole, list[str]()
        for place, name in enumerate(self.traits):
            having = [cell for cell in near if cell.traits[name] == traits.get(name)]
            if name in traits and not having:
                unseen.append(name)
            if place < self.head and having:
                near = having
        among = len({source for cell in near for source in cell.sources})
        cell = self._most_alike(traits)
        asked = [(name, traits[name]) for name in self.like if name in traits]
        backing = {source for one in self._whole if all(one.traits[name] == value for name, value in asked)
                   for source in one.sources}
        return Distance(cell=cell, backing=len(backing), same=set(self.traits[:self.head]) <= set(cell.traits),
                        among=1 if self.traits[self.head - 1] in unseen else among, unseen=tuple(unseen), past={}), near

    def _most_alike(self, traits: Mapping[str, str]) -> Cell:
        for names in alike(self.traits, self.head):
            key = frozenset((name, traits[name]) for name in names if name in traits)
            if len(key) == len(names) and key in self._places:
                return self._places[key]
        return self.cells[-1]


def alike(traits: Sequence[str], head: int) -> list[tuple[str, ...]]:
    """Return what rows are grouped by, the most alike first: with the whole head, then without its last trait."""
    ahead, rest = tuple(traits[:head]), tuple(traits[head:])
    return [*((*ahead, *rest[:n]) for n in range(len(rest), -1, -1)),
            *((*ahead[:-1], *rest[:n]) for n in range(len(rest), -1, -1))]


def _doublings(size: float, ranges: Sequence[tuple[float, float]]) -> float:
    """Return by how many doublings a size lies outside of all ranges."""
    if not ranges:
        return 0.0
    least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    return max(0.0, math.log2(least / size), math.log2(size / most))
