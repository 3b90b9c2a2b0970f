"""What runs were predicted to reach before anything of them was known: the only rows whose facts nobody fitted to them.

Facts of stacks were written knowing the other rows, so that those look nearer than the next source will be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field, model_validator

from planner.catalog.ranges import Share
from planner.catalog.residuals import Ratio
from planner.catalog.sourced import AsOf, Sourced
from planner.yaml_io import Frozen


class Arrival(Frozen):
    """Runs that came in together."""

    of: str = Field(min_length=3)
    day: AsOf
    over: dict[str, dict[str, Ratio]]
    """File of residuals -> id of a row -> measured over predicted."""
    logits: dict[str, Share] = Field(default_factory=dict)
    """Share of a predicted peak that was logits, where it is another today."""
    aside: dict[str, dict[str, str]] = Field(default_factory=dict)
    """File of residuals -> source by the letters of its rows -> why its rows decide no interval."""

    @model_validator(mode="after")
    def _aside_of_its_rows(self) -> Arrival:
        for name, out in self.aside.items():
            known = {row.rpartition("-")[0] for row in self.over.get(name, {})}
            if missing := sorted(set(out) - known):
                raise ValueError(f"aside: {name} has no row of {', '.join(missing)} in this batch")
        return self


@dataclass(frozen=True, slots=True)
class First:
    """What a row was first predicted to be."""

    since: int
    """Number of its batch, from 1 on: rows of sources before it are what there was to compare with."""
    over: float
    """Measured over predicted."""
    logits: float | None = None
    """Share of the predicted peak that was logits; none where it is today's."""

    def parts(self, today: Mapping[str, float]) -> Mapping[str, float]:
        """Return the shares of parts as they were first predicted."""
        return today if self.logits is None else {**today, "logits": self.logits}


class FirstPredictions(Sourced):
    """Batches of runs in the order in which they came in."""

    batches: tuple[Arrival, ...]

    @cached_property
    def _of(self) -> Mapping[str, Mapping[str, First]]:
        found: dict[str, dict[str, First]] = {}
        for since, batch in enumerate(self.batches, 1):
            for name, rows in batch.over.items():
                found.setdefault(name, {}).update({row: First(since, over, batch.logits.get(row))
                                                   for row, over in rows.items()})
        return found

    def of(self, name: str) -> Mapping[str, First]:
        """Return what rows of a file of residuals were first predicted to be, by id."""
        return self._of.get(name, {})

    def decides(self, name: str, row: str) -> bool:
        """Say whether a row by its id decides intervals of a file of residuals."""
        return not any(row.rpartition("-")[0] in batch.aside.get(name, {}) for batch in self.batches)
