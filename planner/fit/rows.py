"""The rows that a fit stands on, and the logarithm of predicted over measured step time under changed constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.catalog.load import Catalog
from planner.evidence.compare import Outcome, compare
from planner.evidence.prediction import predict
from planner.evidence.rows import Evidence
from planner.fit.knobs import Knob
from planner.layouts.table import Floats, Ints


@dataclass(frozen=True, slots=True)
class Measured:
    """One row: how it was predicted, its source, its measured speed, and its weight beside the other rows."""

    outcome: Outcome
    source: str
    speed: float
    weight: float


def rows_of(evidence: Evidence, catalog: Catalog) -> list[Measured]:
    """Return the rows of a file with a measured step, as `measured_rows` does."""
    return measured_rows(compare(evidence, catalog).outcomes)


def measured_rows(outcomes: Iterable[Outcome]) -> list[Measured]:
    """Return the rows with a measured step: those that state everything where any row says so, else all.

    A source of many rows counts less per row, as the square root of their number: its own errors repeat.
    """
    held = [o for o in outcomes if o.measured_seconds is not None]
    stated = [o for o in held if o.row.stated] or held
    sources = Counter(o.row.prefix for o in stated)
    return [Measured(o, o.row.prefix, _speed(o), 1 / np.sqrt(np.sqrt(sources[o.row.prefix]))) for o in stated]


def _speed(outcome: Outcome) -> float:
    """Return measured steps a second."""
    seconds = outcome.measured_seconds
    assert seconds is not None
    return 1 / seconds


def residuals(rows: Sequence[Measured], catalog: Catalog) -> Floats:
    """Return the logarithm of predicted over measured step time of every row under `catalog`."""
    found = np.empty(len(rows))
    for place, row in enumerate(rows):
        step = predict(row.outcome.row.run, catalog, model=row.outcome.prediction.model).evaluation.step.seconds
        found[place] = np.log(step * row.speed)
    return found


def changed(catalog: Catalog, knobs: Sequence[Knob], coordinates: Floats) -> Catalog:
    """Return the catalog with every knob at its coordinate."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for knob, at in zip(knobs, coordinates, strict=True):
        values.setdefault((knob.kind, knob.entry), {})[knob.field] = knob.value(float(at))
    return catalog.changed(values)


def weights(rows: Sequence[Measured]) -> Floats:
    """Return the weight of every row."""
    return np.array([row.weight for row in rows])


def by_source(rows: Sequence[Measured]) -> Mapping[str, Ints]:
    """Return the places of each source's rows."""
    names = sorted({row.source for row in rows})
    return {name: np.array([place for place, row in enumerate(rows) if row.source == name]) for name in names}
