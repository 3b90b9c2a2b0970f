"""The gamma distribution function against its integral."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.physics.serving.gamma import FARTHEST, SKEWED, gamma_share


def integrated(shape: float, value: float) -> float:
    """Return the share up to a value at scale 1 by Simpson's rule, in u = x^power, in which the integrand is smooth."""
    power = shape if shape < 1 else 0.5
    u = np.linspace(0.0, value**power, 20_001)
    heights = u ** (shape / power - 1) * np.exp(-u ** (1 / power)) / power
    weights = np.where(np.arange(len(u)) % 2, 4.0, 2.0)
    weights[[0, -1]] = 1.0
    return float((heights * weights).sum() * (u[1] - u[0]) / 3) / math.gamma(shape)


@pytest.mark.parametrize(("shape", "most"), [
    (0.05, 1e-6), (0.1, 1e-6), (0.25, 1e-6), (0.49, 1e-6), (0.7, 1e-6), (1.0, 1e-6), (2.5, 1e-6), (SKEWED, 1e-6),
    (SKEWED * 1.01, 0.002), (8.0, 0.001), (30.0, 0.001)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_the_share_is_that_of_the_integral(shape: float, most: float, scale: float) -> None:
    values = np.concatenate([np.geomspace(1e-4, 0.5, 8), shape * np.linspace(0.1, 4, 30), [FARTHEST - 1]])
    found = gamma_share(values * scale, np.full(len(values), shape * scale), np.full(len(values), shape * scale**2))
    assert found == pytest.approx([integrated(shape, value) for value in values.tolist()], abs=most)


def test_it_starts_at_nothing_ends_at_one_and_never_falls() -> None:
    values = np.concatenate([[-1.0, 0.0], np.geomspace(1e-9, 1e9, 400)])[:, None]
    mean = np.array([1e-12, 1e-3, 1.0, 1.0, 1.0, 5.0, 50.0])
    found = gamma_share(values, mean, np.array([1e-24, 1.0, 1.0, 0.25, 0.2, 1.0, 1.0]))
    assert not found[:2].any()
    assert found[-1] == pytest.approx(1)
    assert (np.diff(found, axis=0) >= -1e-12).all()
