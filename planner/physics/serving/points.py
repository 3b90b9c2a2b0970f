"""Lengths of prompts and answers stand for all of them at a few points, closer where the tail is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import numpy as np

from planner.layouts.table import Floats

SHARES = (*(0.1,) * 9, 0.05, 0.03, 0.01, 0.007, 0.003)
"""Of all requests, what each point stands for; the point is in the middle."""


def points_of(quantile: Callable[[float], float]) -> tuple[float, ...]:
    """Return the lengths at the points, of a distribution by its quantiles."""
    return tuple(quantile(end - share / 2) for share, end in zip(SHARES, accumulate(SHARES), strict=True))


def over_all(values: Floats) -> Floats:
    """Return the mean of figures that have a column for each point, or one for all."""
    if values.shape[1] == 1:
        return values[:, 0]
    found: Floats = values @ np.array(SHARES)
    return found
