"""What whole runs take beyond their steps: evaluation, data stalls, restores, loss rewinds, a ramp of the batch."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from planner.catalog.ranges import Factor
from planner.catalog.sourced import Sourced
from planner.yaml_io import Frozen

Weight = Annotated[float, Field(gt=0, le=1e6)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Spread = Annotated[float, Field(ge=1e-3, le=3)]


class AddedShare(Frozen):
    """The share that a run adds to its steps and modeled failures: exponential, its mean known from a few runs.

    `weight` runs, those that the prior is worth included, added `total` together; what one more adds is then Lomax
    distributed.
    """

    weight: Weight
    total: Weight
    rows: Count = 0
    """Runs of which both the hours and the speed of steps were published."""

    def quantile(self, confidence: float) -> float:
        """Return hours over those of steps and modeled failures, which a share `confidence` of runs stays within."""
        return float(1 + self.total * ((1 - confidence) ** (-1 / self.weight) - 1))


class Published(Frozen):
    """Measured hours over computed ones of published runs of one class; log-normal."""

    factor: Factor
    """Median."""
    spread: Spread
    """Standard deviation of the logarithm."""
    rows: Count = 0

    def quantile(self, deviations: float) -> float:
        """Return the factor so many standard deviations above the median."""
        return self.factor * math.exp(deviations * self.spread)


class RunShares(Frozen):
    """How whole published runs compare with what is computed of them."""

    added: AddedShare
    """What runs add to steps and modeled failures."""
    framework_stated: Published
    """Of rows that name the framework: what they leave open of the layout is searched, and real ones are no faster."""
    framework_open: Published
    """Of rows that name none: the framework is one that was usual."""


class Believed(Frozen):
    """What was believed before any row of whole runs was read."""

    added: AddedShare
    framework_stated: Factor
    framework_open: Factor
    factor_spread: Spread
    """How far the logarithm of either factor may lie off."""
    run_spread: Spread
    """Standard deviation of the logarithm of runs about their factor."""
    run_weight: Weight
    """Runs that this is worth."""


class WholeRuns(RunShares, Sourced):
    """The same with its source, and what it was fitted from."""

    prior: Believed
