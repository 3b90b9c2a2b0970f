"""Lengths of prompts and answers at a few points that stand for all, closer where the tail is; and percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from statistics import NormalDist

import numpy as np

from planner.layouts.table import Floats

SHARES = (*(0.1,) * 9, 0.05, 0.03, 0.01, 0.007, 0.003)
"""Of all requests, what each point stands for; the point is in the middle."""
HALVINGS = 32
"""In the search for a percentile."""


def points_of(quantile: Callable[[float], float]) -> tuple[float, ...]:
    """Return the lengths at the points, of a distribution by its quantiles."""
    return tuple(quantile(end - share / 2) for share, end in zip(SHARES, accumulate(SHARES), strict=True))


def lognormal(cv: float, quantile: float) -> float:
    """Return a quantile of the lognormal distribution of mean 1 and that coefficient of variation."""
    sigma = math.sqrt(math.log1p(cv**2))
    return math.exp(sigma * NormalDist().inv_cdf(quantile) - sigma**2 / 2)


def over_all(values: Floats) -> Floats:
    """Return the mean of figures that have a column for each point, or one for all."""
    if values.shape[1] == 1:
        return values[:, 0]
    mean: Floats = values @ np.array(SHARES)
    return mean


def least(within: Callable[[Floats], Floats], share: float, most: Floats) -> Floats:
    """Return the least seconds, up to `most`, that a share of requests stay within, by halving."""
    low, high = np.zeros_like(most), most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        reached = within(middle) >= share
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def on_fullest(local: Floats, share: Floats, ranks: Floats) -> Floats:
    """Return the chosen experts of the rank that has most of them, as the largest of so many draws at random.

    local: experts of a rank; share: of all experts that are chosen.
    """
    mean = local * share
    most: Floats = np.minimum(mean + np.sqrt(2 * np.log(ranks) * mean * (1 - share)), local)
    return most
