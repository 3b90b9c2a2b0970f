"""How long a whole run takes over its computed duration: the error of the step, and what runs add beyond their steps.

The two are independent, so that the quantiles are those of their product, over a grid of equal shares.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from planner.catalog.residuals import Residual
from planner.catalog.whole_runs import AddedShare
from planner.layouts.table import Floats
from planner.physics.training.question import quantile

SHARES = 400
"""Equal shares into which either distribution is cut."""


@lru_cache(maxsize=1024)
def run_quantile(residual: Residual, added: AddedShare | None, confidence: float) -> float:
    """Return measured over computed duration that a share `confidence` of runs stays within.

    residual: of step time. added: what runs add to steps and failures; none where only the step may be off.
    """
    return quantile(residual, confidence) if added is None else float(np.quantile(_both(residual, added), confidence))


@lru_cache(maxsize=64)
def _both(residual: Residual, added: AddedShare) -> Floats:
    """Return as many equally likely products of the two."""
    shares = (np.arange(SHARES) + 0.5) / SHARES
    steps = np.array([quantile(residual, share) for share in shares.tolist()])
    runs = np.array([added.quantile(share) for share in shares.tolist()])
    return np.outer(steps, runs).ravel()
