"""The rows that a fit stands on, and the logarithm of predicted over measured time under changed constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from planner.catalog.load import Catalog
from planner.evidence.compare import PredictedRow, compare
from planner.evidence.kinds import EvidenceFile
from planner.evidence.prediction import predict
from planner.fit.knobs import FitConstant
from planner.layouts.table import Floats, Ints

STEP = "step_time"
STEP_SCALE = 0.06
"""Typical residual of a well-described training row: repeated runs and rounding."""


class Rows(Protocol):
    """Measured figures, each with its source, its weight beside the others and the typical size of its residual."""

    @property
    def sources(self) -> Sequence[str]:
        """Of each figure."""

    @property
    def quantities(self) -> Sequence[str]:
        """What each figure is of."""

    @property
    def weights(self) -> Floats:
        """Of each figure."""

    @property
    def scales(self) -> Floats:
        """Of each figure."""

    def count(self, figures: Ints) -> int:
        """Return how many rows some figures are of."""

    def acting(self, knob: FitConstant) -> Ints:
        """Return the places of the figures whose prediction a constant can change."""

    def residuals(self, catalog: Catalog, places: Ints | None = None) -> Floats:
        """Return the logarithm of predicted over measured time under `catalog` of every figure, or of some."""


@dataclass(frozen=True, slots=True)
class FitRow:
    """One training row: how it was predicted, its source, its measured steps a second, and its weight."""

    outcome: PredictedRow
    source: str
    speed: float
    weight: float


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Training rows, of one figure each: the time of a step."""

    rows: tuple[FitRow, ...]

    @property
    def sources(self) -> Sequence[str]:
        """Of each row."""
        return [row.source for row in self.rows]

    @property
    def quantities(self) -> Sequence[str]:
        """The time of a step."""
        return [STEP] * len(self.rows)

    @property
    def weights(self) -> Floats:
        """Of each row."""
        return np.array([row.weight for row in self.rows])

    @property
    def scales(self) -> Floats:
        """Alike for all."""
        return np.full(len(self.rows), STEP_SCALE)

    def count(self, figures: Ints) -> int:
        """Return how many there are: a row has one figure."""
        return len(figures)

    def acting(self, knob: FitConstant) -> Ints:
        """Return the rows whose prediction a constant can change."""
        return np.array([place for place, row in enumerate(self.rows) if knob.acts_on(row.outcome)], np.int64)

    def residuals(self, catalog: Catalog, places: Ints | None = None) -> Floats:
        """Return the logarithm of predicted over measured step time of every row, or of some."""
        return residuals(self.rows if places is None else [self.rows[int(place)] for place in places], catalog)


def rows_of(evidence: EvidenceFile, catalog: Catalog) -> list[FitRow]:
    """Return the rows of a file with a measured step, as `measured_rows` does."""
    return measured_rows(compare(evidence, catalog).outcomes)


def measured_rows(outcomes: Iterable[PredictedRow]) -> list[FitRow]:
    """Return the rows with a measured step: those that state everything where any row says so, else all."""
    held = [o for o in outcomes if o.measured_seconds is not None]
    stated = [o for o in held if o.row.stated] or held
    weights = source_weights([o.row.prefix for o in stated])
    return [FitRow(o, o.row.prefix, _speed(o), float(weight)) for o, weight in zip(stated, weights, strict=True)]


def source_weights(sources: Sequence[str]) -> Floats:
    """Return weights: a source of many rows counts less per row, as its own errors repeat."""
    counts = Counter(sources)
    return np.array([1 / np.sqrt(np.sqrt(counts[source])) for source in sources])


def _speed(outcome: PredictedRow) -> float:
    """Return measured steps a second."""
    seconds = outcome.measured_seconds
    assert seconds is not None
    return 1 / seconds


def residuals(rows: Sequence[FitRow], catalog: Catalog) -> Floats:
    """Return the logarithm of predicted over measured step time of every row under `catalog`."""
    logs = np.empty(len(rows))
    for place, row in enumerate(rows):
        step = predict(row.outcome.row.run, catalog, model=row.outcome.prediction.model).evaluation.step.seconds
        logs[place] = np.log(step * row.speed)
    return logs


def changed(catalog: Catalog, knobs: Sequence[FitConstant], coordinates: Floats) -> Catalog:
    """Return the catalog with every knob at its coordinate."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for knob, at in zip(knobs, coordinates, strict=True):
        values.setdefault((knob.kind, knob.entry), {})[knob.field] = knob.value(float(at))
    return catalog.changed(values)


def by_source(sources: Sequence[str]) -> Mapping[str, Ints]:
    """Return the places of each source's figures."""
    return {name: np.array([place for place, source in enumerate(sources) if source == name])
            for name in sorted(set(sources))}
