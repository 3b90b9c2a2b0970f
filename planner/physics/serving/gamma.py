"""The gamma and the normal distribution functions, one value a row."""

from __future__ import annotations

import math

import numpy as np

from planner.layouts.table import Floats

SKEWED = 4.0
"""Shape up to which the series is summed; above, Wilson and Hilferty (1931) are within 0.002."""
FARTHEST = 40.0
"""Of the scale, beyond which nothing is left of a skewed distribution."""
_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


def gamma_share(value: Floats, mean: Floats, variance: Floats) -> Floats:
    """Return the share of a gamma distribution up to a value, from 0 to 1; mean and variance are above 0."""
    shape = mean**2 / variance
    with np.errstate(under="ignore"):
        cube = np.cbrt(np.maximum(value, 0.0) / mean)
        share = _normal_of(cube, shape)
    skewed = np.broadcast_to((shape <= SKEWED) & (value > 0), share.shape)
    if skewed.any():
        at, of = (np.broadcast_to(part, share.shape)[skewed] for part in (value * mean / variance, shape))
        share[skewed] = _series(of, at)
    return share


def _normal_of(cube: Floats, shape: Floats) -> Floats:
    share: Floats = np.where(cube > 0, normal_share((cube - 1 + 1 / (9 * shape)) * 3 * np.sqrt(shape)), 0.0)
    return share


def _series(shape: Floats, value: Floats) -> Floats:
    """Return the incomplete gamma function of each shape up to a value, over the whole, by its series."""
    x = np.minimum(value, FARTHEST)
    most = float(x.max())
    term = np.ones_like(x)
    total = term.copy()
    for at in range(1, int(most + 9 * math.sqrt(most)) + 12):
        term *= x / (shape + at)
        total += term
    scale = np.exp(shape * np.log(np.maximum(x, 1e-300)) - x - _log_gamma(shape + 1))
    share: Floats = np.where(value >= FARTHEST, 1.0, np.clip(total * scale, 0.0, 1.0))
    return share


def normal_share(z: Floats) -> Floats:
    """Return the standard normal distribution function, to 1e-7 (Abramowitz and Stegun 26.2.17)."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    upper = np.exp(-np.minimum(z**2, 1400.0) / 2) / np.sqrt(2 * np.pi) * series
    share: Floats = np.where(z >= 0, 1 - upper, upper)
    return share
