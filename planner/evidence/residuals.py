"""Residual classes: quantiles of measured over predicted, by what the evidence rows have in common.

A class stands on at least a dozen rows of its own; what has fewer falls back to its stack, then to everything.
Only rows that leave nothing important open count, and a reading before a failure is no measurement of a need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.catalog.calibration import Residual
from planner.evidence.compare import Comparison, Outcome, kind_of
from planner.evidence.degrees import FULL_LENGTH

LEAST_ROWS = 12
DIGITS = 3
LEVELS = {"q05": 5, "q10": 10, "q50": 50, "q90": 90, "q95": 95}


@dataclass(frozen=True, slots=True)
class Sample:
    """Measured over predicted of one row, its source, and the traits by which classes are told apart."""

    source: str
    traits: Mapping[str, str]
    ratio: float


def step_samples(outcomes: Sequence[Outcome]) -> list[Sample]:
    """Return measured over predicted step time of every stated row; of all where no row says that it states all."""
    samples = []
    some = any(outcome.row.stated for outcome in outcomes)
    for outcome in outcomes:
        measured, prediction = outcome.measured_seconds, outcome.prediction
        if (outcome.row.stated or not some) and measured is not None:
            traits = {"stack": prediction.family, "architecture": prediction.architecture}
            samples.append(Sample(outcome.row.prefix, traits, measured / prediction.evaluation.step.seconds))
    return samples


def memory_samples(outcomes: Iterable[Outcome]) -> list[Sample]:
    """Return measured over predicted peak memory of every stated row that ran; repeated readings count once.

    Where only the cap of the sample lengths is known the need is not, so such rows do not count.
    """
    samples: dict[tuple[str | float, ...], Sample] = {}
    for outcome in outcomes:
        measured, prediction = outcome.row.measured, outcome.prediction
        known = outcome.row.stated and not any(a.startswith(FULL_LENGTH) for a in prediction.assumed)
        if known and measured.peak_mem_gib is not None and measured.fits is not False:
            ratio = measured.peak_mem_gib / prediction.memory_gib(kind_of(measured, prediction))
            traits = {"stack": prediction.family, "model": prediction.model_is, "method": prediction.method}
            samples.setdefault((*traits.values(), ratio), Sample(outcome.row.prefix, traits, ratio))
    return list(samples.values())


def speed_samples(comparison: Comparison) -> list[Sample]:
    """Return measured over predicted of every quantity of serving speed, told apart by its name among other traits."""
    found = {row.id: (row, speed) for row, speed in comparison.speeds}
    samples = []
    for entry in comparison.served:
        if entry.id in found:
            row, speed = found[entry.id]
            traits = {"quantity": entry.quantity, **speed.traits}
            samples.append(Sample(row.run.source or row.prefix, traits, float(entry.measured) / float(entry.predicted)))
    return samples


def classes(samples: Sequence[Sample], *traits: str) -> list[Residual]:
    """Return the residual classes: by all `traits`, by the first alone, then one for everything."""
    result: list[Residual] = []
    for count in range(len(traits), -1, -1):
        groups: dict[tuple[str, ...], list[float]] = {}
        for sample in samples:
            groups.setdefault(tuple(sample.traits[t] for t in traits[:count]), []).append(sample.ratio)
        for key in sorted(groups):
            if len(groups[key]) >= LEAST_ROWS or not key:
                result.append(_residual(dict(zip(traits, key, strict=False)), groups[key]))
    return result


def _residual(traits: Mapping[str, str], ratios: Sequence[float]) -> Residual:
    levels = {name: round(float(np.percentile(ratios, level)), DIGITS) for name, level in LEVELS.items()}
    return Residual(rows=len(ratios), **traits, **levels)
