"""Models that keep a state for each sequence and nothing for its tokens."""

from __future__ import annotations

import pytest

import planner


@pytest.mark.parametrize("engine", ["vllm", "tensorrt-llm", "llama-cpp"])
def test_a_model_of_states_alone_is_answered(engine: str) -> None:
    """Its cache has no bytes of a token to divide by, which ended as a bug."""
    found = planner.estimate(model="mamba2-2.7b", node="h100-sxm-1x", input=1000, output=200, concurrency=8,
                             engine=engine)
    assert found.serving is not None
    assert found.serving.max_batch >= 8
    # a decode step reads the weights, 5.4 GB in 16 bits at 3.35 TB/s, and eight states
    assert 5.4e9 / 3.35e12 < found.serving.tpot_seconds.p50 < 20 * 5.4e9 / 3.35e12


@pytest.mark.parametrize("engine", ["vllm", "tensorrt-llm", "llama-cpp"])
def test_a_model_of_states_alone_is_planned(engine: str) -> None:
    """Its layouts are held by the same count as an estimate's."""
    found = planner.plan(model="mamba2-2.7b", on=["h100-sxm-1x"], rate=1, input=1000, output=200, tpot="100 ms",
                         engine=engine)
    assert found.assignments[0].serving is not None
    assert 1 <= found.assignments[0].serving.max_batch < 10**6
