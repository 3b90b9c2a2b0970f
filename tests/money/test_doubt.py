"""What doubt is worth, against simulation: draws of both choices, measured and decided one by one."""

from __future__ import annotations

import numpy as np
import pytest

from planner.money.doubt import Choices

DRAWS = 400_000


@pytest.mark.parametrize(("ours", "theirs", "own", "other", "shared"), [
    (100.0, 101.0, 0.10, 0.15, 0.0), (100.0, 120.0, 0.2, 0.1, 0.005), (1.0, 1.0, 0.05, 0.3, 0.002),
    (7.0, 5.0, 0.1, 0.1, 0.0)])
def test_chance_and_loss_are_those_of_draws(ours: float, theirs: float, own: float, other: float, shared: float
                                             ) -> None:
    choices = Choices(ours, theirs, own**2, other**2, shared)
    logs = np.random.default_rng(7).multivariate_normal([0, 0], [[own**2, shared], [shared, other**2]], DRAWS)
    one, two = ours * np.exp(logs[:, 0]), theirs * np.exp(logs[:, 1])
    assert choices.chance == pytest.approx(np.mean(two < one), abs=0.004)
    assert choices.loss == pytest.approx(np.mean(np.maximum(0, one - two)), rel=0.02, abs=1e-3 * ours)


@pytest.mark.parametrize(("noises", "shared"), [((0.03, 0.03), 0.0), ((0.2, 0.08), 0.0), ((0.3, 0.3), 0.01)])
def test_a_measurement_leaves_the_loss_of_those_who_decide_by_it(noises: tuple[float, float], shared: float) -> None:
    """Both are measured with noise, larger than what is not known or smaller, and the lower mean is chosen."""
    medians, spread = np.array([100.0, 103.0]), np.array([[0.12**2, shared], [shared, 0.16**2]])
    noise = np.diag(np.square(noises))
    rng = np.random.default_rng(11)
    truth = rng.multivariate_normal([0, 0], spread, DRAWS)
    measured = truth + rng.multivariate_normal([0, 0], noise, DRAWS)
    told = spread @ np.linalg.inv(spread + noise)
    costs = medians * np.exp(truth)
    means = medians * np.exp(measured @ told.T + np.diag(spread - told @ spread) / 2)
    chosen = costs[np.arange(DRAWS), means.argmin(axis=1)]
    choices = Choices(*medians, spread[0, 0], spread[1, 1], shared)
    assert choices.loss_after(*np.square(noises)) == pytest.approx(np.mean(chosen - costs.min(axis=1)), rel=0.03)


def test_what_is_known_needs_no_measurement() -> None:
    sure = Choices(100.0, 101.0, 0.04, 0.04, 0.04)
    assert (sure.chance, sure.loss, sure.loss_after(0.0, 0.0)) == (0.0, 0.0, 0.0)
    open_ = Choices(100.0, 101.0, 0.04, 0.04, 0.01)
    assert open_.loss_after(0.0, 0.0) == pytest.approx(0.0, abs=1e-12)
    assert open_.loss_after(1e9, 1e9) == pytest.approx(open_.loss)
