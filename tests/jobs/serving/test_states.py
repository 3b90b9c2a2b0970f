"""Models that keep a state for each sequence and nothing for its tokens."""

from __future__ import annotations

import numpy as np
import pytest

import planner
from planner.catalog.load import Catalog
from planner.physics.serving.capacity import CacheInput, capacity
from planner.physics.serving.formats import format_of
from planner.physics.serving.sequences import Cut, sequence_bytes, slot_bytes
from planner.physics.serving.settings import EngineSettings

CATALOG = Catalog()


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama-cpp"])
def test_a_model_of_states_alone_is_answered(engine: str) -> None:
    """Its cache has no bytes of a token to divide by, which ended as a bug."""
    found = planner.estimate(model="mamba2-2.7b", node="h100-sxm-1x", input=1000, output=200, concurrency=8,
                             engine=engine)
    assert found.serving is not None
    assert found.serving.max_batch >= 8
    # a decode step reads the weights, 5.4 GB in 16 bits at 3.35 TB/s, and eight states
    assert 5.4e9 / 3.35e12 < found.serving.tpot_seconds.p50 < 20 * 5.4e9 / 3.35e12


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama-cpp"])
def test_a_model_of_states_alone_is_planned(engine: str) -> None:
    """Its layouts are held by the same count as an estimate's."""
    found = planner.plan(model="mamba2-2.7b", on=["h100-sxm-1x"], rate=1, input=1000, output=200, tpot="100 ms",
                         engine=engine)
    assert found.assignments[0].serving is not None
    assert 1 <= found.assignments[0].serving.max_batch < 10**6


@pytest.mark.parametrize("name", ["falcon-h1-7b", "nemotron-nano-9b-v2", "kimi-linear-48b-a3b", "lfm2-2.6b"])
def test_sglang_shares_its_pool_out_to_states_and_tokens(name: str) -> None:
    """States have 0.9 of what tokens have (mamba_full_memory_ratio), three of them for each request that runs."""
    engine, model, gpu = CATALOG.engine("sglang"), CATALOG.model(name), CATALOG.gpu("h200-sxm")
    weights, cache, cut = format_of(CATALOG.formats, "bf16", model), CATALOG.formats.cache("bf16"), Cut(np.array([1]))
    assert weights is not None
    release = engine.release(None)
    held = capacity(CacheInput(model, weights, cache, engine, release, gpu.usable_memory, EngineSettings(0.85), 4096,
                               gpu.architecture), cut)
    rest = 0.85 * (gpu.usable_memory - held.apart[0]) - held.weights[0]
    of_tokens = rest / 1.9 / sequence_bytes(model, 4096, cache, cut)[0]
    of_states = rest * 0.9 / 1.9 / (3 * slot_bytes(model, cache, cut)[0])
    assert held.concurrency[0] == pytest.approx(min(of_tokens, of_states), abs=1)
