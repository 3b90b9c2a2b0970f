"""Weights and cache of inference engines against what their logs and papers print."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.engine import Engine
from planner.catalog.load import Catalog
from planner.physics.serving.cache import CacheFacts, pool_bytes
from planner.physics.serving.sequences import token_bytes
from planner.physics.serving.weights import weight_bytes
from planner.units import GIB

CATALOG = Catalog()
FORMATS = CATALOG.formats.weights
HALF = CATALOG.formats.cache("bf16")
ONE = np.array([1])


def weights(model: str, name: str, tp: int = 1, pp: int = 1) -> float:
    return float(weight_bytes(CATALOG.model(model), FORMATS[name], np.array([tp]), np.array([pp]))[0]) / GIB


def pool(model: str, name: str, version: str, tp: int = 1, pp: int = 1, fraction: float = 0.95) -> float:
    engine = CATALOG.engine("vllm")
    memory = CATALOG.gpu("h100-sxm").usable_memory
    asked = CacheFacts(CATALOG.model(model), engine, engine.release(version), memory, fraction)
    held = np.array([weights(model, name, tp, pp) * GIB])
    return float(pool_bytes(asked, held, np.array([tp]), np.array([pp]))[0]) / GIB


@pytest.mark.parametrize(("model", "name", "tp", "pp", "printed"), [
    ("llama-3.1-8b", "bf16", 1, 1, 14.99), ("llama-3.1-8b", "fp32", 1, 1, 29.98), ("llama-3.1-8b", "int8", 1, 1, 8.49),
    ("llama-3.1-8b", "w4a16", 1, 1, 5.38), ("llama-3.1-8b", "bf16", 1, 2, 7.51), ("llama-3.3-70b", "fp8", 2, 1, 33.88),
    ("mixtral-8x7b", "bf16", 4, 1, 21.76), ("deepseek-v2-lite", "bf16", 1, 1, 29.43),
    ("qwen3-14b", "bf16", 1, 1, 27.52),
])
def test_weights_are_those_of_the_start_up_log(model: str, name: str, tp: int, pp: int, printed: float) -> None:
    """vLLM 0.15 to 0.19 on H100 (llm-d-incubation/llm-d-planner, accuracy/results)."""
    assert weights(model, name, tp, pp) == pytest.approx(printed, rel=0.015)


@pytest.mark.parametrize(("model", "name", "version", "tp", "pp", "printed"), [
    ("llama-3.1-8b", "bf16", "0.19.0", 1, 1, 58.11), ("llama-3.1-8b", "bf16", "0.19.0", 1, 2, 66.53),
    ("qwen3-14b", "bf16", "0.16.0", 1, 1, 41.94), ("qwen3-14b", "bf16", "0.17.0", 1, 1, 45.34),
    ("deepseek-v2-lite", "bf16", "0.19.0", 2, 1, 56.45), ("qwen3-30b-a3b", "bf16", "0.19.0", 1, 1, 15.41),
])
def test_the_pool_is_that_of_the_start_up_log(model: str, name: str, version: str, tp: int, pp: int,
                                              printed: float) -> None:
    """The same logs; at 0.17 the sampler of vLLM came to copy the logits less often, 3.4 GiB for this model."""
    assert pool(model, name, version, tp, pp) == pytest.approx(printed, rel=0.02)


@pytest.mark.parametrize(("model", "kind", "tp", "printed"), [
    ("llama-3.1-8b", "bf16", 1, 131_072), ("llama-3.1-8b", "fp8", 1, 65_536), ("llama-3.1-70b", "bf16", 8, 40_960),
    ("llama-3.1-70b", "bf16", 16, 40_960), ("deepseek-v3", "bf16", 1, 70_272), ("deepseek-v3", "bf16", 16, 70_272),
])
def test_bytes_of_a_token_by_hand(model: str, kind: str, tp: int, printed: float) -> None:
    """Layers x heads x 2 x head width; more ranks than heads hold copies, and every rank the latent of MLA."""
    assert token_bytes(CATALOG.model(model), CATALOG.formats.cache(kind), np.array([tp]), ONE)[0] == printed


def test_nvfp4_holds_16_ninths_of_the_tokens_of_fp8() -> None:
    """vLLM prints 1.779 times as many."""
    cached = CATALOG.formats.cached
    assert cached["fp8"] / cached["nvfp4"] == pytest.approx(16 / 9)


def test_rows_are_computed_as_they_are_alone() -> None:
    model, tp, pp = CATALOG.model("qwen2.5-72b"), np.array([1, 2, 4, 8, 16]), np.array([1, 1, 2, 4, 1])
    together = weight_bytes(model, FORMATS["fp8"], tp, pp), token_bytes(model, HALF, tp, pp)
    for at in range(len(tp)):
        alone = slice(at, at + 1)
        assert together[0][at] == weight_bytes(model, FORMATS["fp8"], tp[alone], pp[alone])[0]
        assert together[1][at] == token_bytes(model, HALF, tp[alone], pp[alone])[0]


def test_an_engine_shares_what_is_free() -> None:
    """SGLang on one H200: 106.36 GiB for Llama 3 8B at mem_fraction_static 0.8718."""
    engine = CATALOG.engine("sglang")
    memory = CATALOG.gpu("h200-sxm").usable_memory
    asked = CacheFacts(CATALOG.model("llama-3-8b"), engine, engine.release(None), memory, 0.8718)
    held = np.array([weights("llama-3-8b", "bf16") * GIB])
    assert pool_bytes(asked, held, ONE, ONE)[0] / GIB == pytest.approx(106.36, rel=0.01)


def test_a_version_has_the_entry_before_it() -> None:
    vllm = CATALOG.engine("vllm")
    assert vllm.release("0.8.5").version == "0.8"
    assert vllm.release("0.9.2").version == "0.9"
    assert vllm.release("0.16.0").version == "0.10"
    assert vllm.release("0.3").version == "0.1"
    assert vllm.release(None) is vllm.releases[-1]


def test_releases_rise() -> None:
    vllm = CATALOG.engine("vllm").model_dump(mode="json", exclude_none=True)
    with pytest.raises(ValueError, match="releases must rise"):
        Engine.model_validate(vllm | {"releases": vllm["releases"][::-1]})
