"""Releases of engines: what a year changes, and what is left out of their fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.engines import EAGER, GAPS, IN_STEP, TYPICAL, UNHURRIED, Place, matrix, typical
from benchmarks.releases import FAR, About
from planner.simulate.steps import Mode, ReplicaKind
from planner.simulate.trace import Lengths
from tests.simulate.closed_loop import closed_loop


def test_an_engine_without_rows_is_quicker_today_than_it_was_as_others_are() -> None:
    """Its host's times come down as those of others do; what its kernels reach does not."""
    known = (("vllm", "0.2.7", "hopper"), ("vllm", "0.18", "hopper"), ("tensorrt-llm", "0.1", "hopper"))
    asked = (("sglang", "0.1", "hopper"), ("sglang", "0.5.9", "hopper"))
    old, new = {}, {}
    for name in ("layer", "products"):
        seen = typical(name, known) + np.array([1.0, 0.0, 1.0])
        over = np.linalg.solve(matrix(name, known, known), seen - typical(name, known))
        old[name], new[name] = matrix(name, asked, known) @ over
    assert old["layer"] > new["layer"] + 0.2
    assert abs(old["products"] - new["products"]) < abs(old["layer"] - new["layer"])


@pytest.mark.parametrize(("name", "one", "other", "times"), [
    ("layer", ("vllm", "0.1", "ampere"), ("vllm", "0.2.7", "ampere"), EAGER),
    ("layer", ("vllm", "0.2.7", "cdna3"), ("vllm", "0.2.7", "hopper"), GAPS["layer"]),
    ("sequence", ("vllm", "0.6", "hopper"), ("vllm", "0.8", "hopper"), UNHURRIED),
    ("sequence", ("sglang", "0.1", "hopper"), ("sglang", "0.5", "hopper"), 1.0)])
def test_what_a_release_lacks_is_known_before_any_row(name: str, one: Place, other: Place, times: float) -> None:
    """CUDA graphs, gaps as short as NVIDIA's, a scheduler that runs ahead."""
    assert np.exp(typical(name, (one,)) - typical(name, (other,))) == pytest.approx(times)


def test_kernels_launched_one_by_one_tell_nothing_of_those_in_graphs() -> None:
    eager, graphs, later = ("vllm", "0.1", "ampere"), ("vllm", "0.2.7", "ampere"), ("vllm", "0.6", "ampere")
    assert matrix("layer", (eager,), (graphs, later)).tolist() == [[0, 0]]
    assert matrix("layer", (graphs,), (later,)) > 0 < matrix("step", (eager,), (graphs,))


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


class Steps:
    """Steps of a replica that decodes 64 sequences in 20 ms and reads 33 prompt tokens in 1 ms."""

    def fixed(self, sequences: int) -> float:
        return 0.01 * (1 + sequences / 64)

    def per_token(self, sequences: int) -> float:
        return 0.0

    def prefill(self, tokens: int, context: int) -> float:
        return 3e-5 * tokens

    def empty(self) -> float:
        return 0.005


@pytest.mark.parametrize(("mode", "cv", "ahead"), [
    ("mixed", 0.064, 1.0), ("prefill first", 0.064, 1.0), ("prefill first", 0.0, IN_STEP**2 * 0.7)])
def test_prompts_ahead_in_a_closed_loop_are_those_of_its_start_and_of_answers_that_end_together(
        mode: Mode, cv: float, ahead: float) -> None:
    """Ten requests a client. What is typical where prompts go first is half way between those in step and not."""
    clients, lengths = 64, (Lengths(4000, cv), Lengths(1000, cv))
    seen = closed_loop(clients, *lengths, 10 * clients, ReplicaKind(Steps(), 10**8, 1024, chunk=8192, mode=mode))
    prompt, half_a_step = 4000 * 3e-5, Steps().fixed(clients) / 2
    share = (seen.ttft.mean() - prompt - Steps().empty() - half_a_step) / ((clients - 1) * prompt)
    assert share == pytest.approx(TYPICAL["burst"][0] * ahead, rel=0.15)
    places = ("vllm", "0.18", "hopper"), ("sglang", "0.5", "hopper")
    assert np.diff(typical("burst", places)) == pytest.approx(np.log(IN_STEP))
    assert matrix("burst", places, places)[0, 1] == 0
