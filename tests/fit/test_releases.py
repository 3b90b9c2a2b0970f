"""Releases of engines: what a year changes, and what is left out of their fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.engines import TYPICAL, matrix, typical
from benchmarks.releases import FAR, About


def test_an_engine_without_rows_is_quicker_today_than_it_was_as_others_are() -> None:
    """Its host's times come down as those of others do; what its kernels reach does not."""
    known = (("vllm", "0.1", "hopper"), ("vllm", "0.18", "hopper"), ("tensorrt-llm", "0.1", "hopper"))
    asked = (("sglang", "0.1", "hopper"), ("sglang", "0.5.9", "hopper"))
    old, new = {}, {}
    for name in ("layer", "products"):
        seen = typical(name, known) + np.array([1.0, 0.0, 1.0])
        over = np.linalg.solve(matrix(name, known, known), seen - typical(name, known))
        old[name], new[name] = matrix(name, asked, known) @ over
    assert old["layer"] > new["layer"] + 0.2
    assert abs(old["products"] - new["products"]) < abs(old["layer"] - new["layer"])


def about(slope: float) -> About:
    """Return two figures of two releases about a law that is no line: twice the logarithm of the first constant,
    squared.
    """
    constants = len(TYPICAL)

    def residuals(at: Any, some: Any) -> Any:
        return 2 * (at[np.array(some) * constants])**2

    rows = SimpleNamespace(each=lambda move: move.reshape(2, constants), residuals=residuals,
                           least=np.full(2 * constants, -np.inf))
    design = np.zeros((2, 2 * constants))
    design[0, 0] = design[1, constants] = slope
    held = About(cast(Any, rows), np.zeros(2 * constants), np.zeros(2), design, np.ones(2), np.eye(2), np.zeros(2))
    held.__dict__["parts"] = np.array([0, 1]), np.array([0, 1]), np.ones(2)
    return held


@pytest.mark.parametrize(("by", "expected"), [(FAR / 2, 3 * FAR / 2), (1.5, 2 * 1.5**2)])
def test_figures_of_a_release_that_moves_far_are_predicted_anew(by: float, expected: float) -> None:
    move = np.zeros(2 * len(TYPICAL))
    move[len(TYPICAL)] = by
    assert about(3.0).under(move, np.array([0, 1])).tolist() == pytest.approx([0.0, expected])
