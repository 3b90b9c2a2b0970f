"""What whole runs add to their steps, and how published ones compare with the computed: fitted from a prior.

What a run adds is exponential with a Gamma prior of its rate, so that rows only add to a count and a total. The factor
of a class is normal in its logarithm; rows of one family of models count less than as many of different ones.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.whole_runs import AddedShare, Believed, Published, RunShares, WholeRuns
from planner.evidence.whole_rows import WholeRow
from planner.evidence.whole_runs import WholePrediction
from planner.yaml_io import dump

SHARED = 0.5
"""Correlation of the residuals of one family."""
WHOLE = "whole-runs"
DIGITS = 3
ROUNDS = 20
_FAMILY = re.compile(r"[a-z]{1,99}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WholeSample:
    """One published run: the family of its model, its class, and its hours over computed ones."""

    id: str
    family: str
    is_open: bool
    ratio: float
    """Measured hours over those of steps and modeled failures, or of steps alone where that is what was counted."""
    is_whole: bool
    """Whether what runs add is in the measured hours."""
    added: float | None
    """Hours over those of its steps, at the speed that was printed, and modeled failures, less one."""


def whole_samples(predicted: Sequence[tuple[WholeRow, WholePrediction, object]]) -> list[WholeSample]:
    """Return the runs that a fit reads."""
    samples = []
    for row, prediction, _ in predicted:
        measured, ideal = row.measured.gpu_hours, row.measured.ideal_hours_over_actual
        assert measured is not None
        family = _FAMILY.match(row.id)
        samples.append(WholeSample(
            row.id, (family[0] if family else row.id).lower(), prediction.is_open,
            measured * prediction.goodput / prediction.step_hours, prediction.added > 1,
            None if ideal is None else max(0.0, prediction.goodput / ideal - 1)))
    return samples


def fit_whole(samples: Sequence[WholeSample], prior: Believed) -> RunShares:
    """Return what the runs make of the prior."""
    shares = [sample.added for sample in samples if sample.added is not None]
    added = AddedShare(weight=prior.added.weight + len(shares), total=round(prior.added.total + sum(shares), DIGITS),
                  rows=len(shares))
    samples = [replace(sample, ratio=sample.ratio / added.quantile(0.5)) if sample.is_whole else sample
               for sample in samples]
    return RunShares(
        added=added,
        framework_stated=_published([sample for sample in samples if not sample.is_open],
                                    prior.framework_stated, prior),
        framework_open=_published([sample for sample in samples if sample.is_open], prior.framework_open, prior))


def _published(samples: Sequence[WholeSample], factor: float, prior: Believed) -> Published:
    """Return median and spread of a class; the spread holds what is left of the rows and what the median may be off."""
    many = Counter(sample.family for sample in samples)
    weights = np.array([1 / (1 + SHARED * (many[sample.family] - 1)) for sample in samples])
    logs, known = np.log([sample.ratio for sample in samples]), prior.factor_spread**-2
    each = prior.run_spread**2
    for _ in range(ROUNDS):  # the spread weighs the rows, about whose median it is taken
        precision = known + float(weights.sum()) / each
        median = (math.log(factor) * known + float(weights @ logs) / each) / precision
        left = prior.run_spread**2 * prior.run_weight + float(weights @ (logs - median) ** 2)
        each = left / (prior.run_weight + float(weights.sum()))
    return Published(factor=round(math.exp(median), DIGITS), spread=round(math.sqrt(each + 1 / precision), DIGITS),
                     rows=len(samples))


def whole_file(shares: RunShares, before: WholeRuns, source: str, as_of: str) -> str:
    """Return the text of whole-runs.yaml, with the prior of the entry before."""
    head = {"name": WHOLE, "source": source, "as_of": as_of, "kind": "fitted"}
    kept = before.model_dump(include={"prior", "facts"}, exclude_none=True)
    return dump(head | shares.model_dump() | kept)
