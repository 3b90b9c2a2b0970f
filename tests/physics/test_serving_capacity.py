"""Tokens and concurrency of inference engines against what their logs print."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.physics.serving.capacity import CacheInput, Capacity, capacity, held_each
from planner.physics.serving.formats import format_named, format_of
from planner.physics.serving.sequences import Cut, Paging, printed_tokens, sequence_bytes, state_bytes, token_bytes
from planner.physics.serving.settings import EngineSettings
from planner.physics.serving.weights import weight_bytes
from planner.units import GIB

CATALOG = Catalog()
FORMATS = CATALOG.formats
HALF, BYTE = FORMATS.cache("bf16"), FORMATS.cache("fp8")
ONE = np.array([1])


def asked(model: str, name: str = "bf16", engine: str = "vllm", version: str | None = "0.19.0", gpu: str = "h100-sxm",
          cache: str = "bf16", **more: Any) -> CacheInput:
    held, found, card = CATALOG.model(model), CATALOG.engine(engine), CATALOG.gpu(gpu)
    weights = format_of(FORMATS, name, held)
    assert weights is not None
    return CacheInput(held, weights, FORMATS.cache(cache), found, found.release(version), card.usable_memory,
                 architecture=card.architecture, **{"settings": EngineSettings(0.95), "length": 8192} | more)


def of(one: CacheInput, tp: int = 1, pp: int = 1) -> Capacity:
    return capacity(one, Cut(np.array([tp]), np.array([pp])))


@pytest.mark.parametrize(("model", "name", "cache", "tp", "pp", "tokens", "concurrency"), [
    ("llama-3.1-8b", "bf16", "bf16", 1, 1, 476_000, 58.11), ("llama-3.1-8b", "bf16", "fp8", 1, 1, 952_032, 116.21),
    ("llama-3.1-8b", "bf16", "bf16", 1, 2, 1_075_312, 131.26),
    ("llama-3.1-8b", "bf16", "bf16", 1, 4, 2_257_264, 275.54),
    ("llama-3.1-8b", "bf16", "bf16", 4, 1, 2_209_792, 269.75), ("qwen2.5-7b", "bf16", "bf16", 2, 1, 2_390_592, 291.82),
    ("deepseek-v2-lite", "bf16", "bf16", 4, 1, 2_199_888, 268.54),
    ("gpt-oss-20b", "mxfp4", "bf16", 4, 1, 5_817_056, 709.4),
    ("granite-3.1-2b", "bf16", "bf16", 1, 1, 908_048, 110.85), ("kimi-vl-a3b", "bf16", "bf16", 2, 1, 1_890_896, 230.82),
    ("mistral-small-3.1-24b", "bf16", "bf16", 4, 1, 1_551_344, 189.37),
])
def test_tokens_and_concurrency_are_those_of_the_start_up_log(
        model: str, name: str, cache: str, tp: int, pp: int, tokens: int, concurrency: float) -> None:
    """vLLM 0.19 on H100 (llm-d-incubation/llm-d-planner, accuracy/results); the last stage samples and has least."""
    found = of(asked(model, name, cache=cache), tp, pp)
    assert found.tokens[0] == pytest.approx(tokens, rel=0.015)
    assert found.tokens[0] % 16 == 0
    assert found.concurrency[0] == pytest.approx(concurrency, rel=0.015)


@pytest.mark.parametrize(("model", "tp", "pool", "length", "tokens", "concurrency"), [
    ("gpt-oss-20b", 4, 66.57, 8192, 5_817_056, 709.4), ("llama-4-scout", 4, 16.75, 8192, 365_968, 44.68),
])
def test_layers_that_let_go_are_shared_out_in_groups(model: str, tp: int, pool: float, length: int, tokens: int,
                                                     concurrency: float) -> None:
    """vLLM 0.19 prints tokens as if every group held all, and a concurrency that knows windows and chunks."""
    held, cut, paging = CATALOG.model(model), Cut(np.array([tp])), Paging(16, True, 8192)
    assert printed_tokens(held, np.array([pool * GIB]), HALF, cut, paging)[0] == pytest.approx(tokens, rel=5e-4)
    each = sequence_bytes(held, length, HALF, cut, paging)
    assert pool * GIB / each[0] == pytest.approx(concurrency, rel=5e-4)


def test_recurrent_states_widen_the_blocks_of_attention() -> None:
    """vLLM issue 40691: Qwen3.5-27B prints 290,864 tokens, 371 blocks of 784, and 33.04 sequences of 32,768."""
    model, cut, paging = CATALOG.model("qwen3.5-27b"), Cut(ONE), Paging(16, True, 2048)
    pool = np.array([371 * 784 * 4 * 16 * 4096.0])
    assert printed_tokens(model, pool, HALF, cut, paging)[0] == 290_864
    assert pool[0] / sequence_bytes(model, 32_768, HALF, cut, paging)[0] == pytest.approx(33.04, rel=0.005)


def test_a_state_by_hand() -> None:
    """48 heads of 128 x 128 in fp32, three inputs of 10,240 channels in 16 bits."""
    (recurrence,) = {block.recurrence for block in CATALOG.model("qwen3.5-27b").blocks if block.recurrence}
    assert state_bytes(recurrence, FORMATS.cache_rules, Cut(ONE))[0] == 48 * 128 * 128 * 4 + 3 * 10_240 * 2


def test_states_lie_beside_the_pool_of_older_engines() -> None:
    """vLLM 0.5.5, issue 7992: Jamba 1.5 Mini with int8 experts has 112,557 blocks of fp8 cache on an A100."""
    found = of(asked("jamba-1.5-mini", "experts_int8", version="0.5.5", gpu="a100-pcie-80gb", cache="fp8",
                     settings=EngineSettings(0.9), length=16_384))
    assert found.tokens[0] / 16 == pytest.approx(112_557, rel=0.05)


def test_older_engines_hold_every_layer_whole() -> None:
    """Before windows were let go, a sequence of Gemma 3 took its length in each of 62 layers."""
    model, length = CATALOG.model("gemma-3-27b"), 16_384
    whole = sequence_bytes(model, length, HALF, Cut(ONE), Paging(16))
    assert whole[0] == length * 62 * 2 * 16 * 128 * 2
    assert sequence_bytes(model, length, HALF, Cut(ONE), Paging(16, True, 2048))[0] < 0.45 * whole[0]


def test_decode_context_parallelism_shares_the_latent_out() -> None:
    """vLLM with Kimi K2: 715,072 tokens become 5,721,088 at eight ranks (shared notes on serving evidence)."""
    model, tp = CATALOG.model("kimi-k2"), np.array([8])
    plain = token_bytes(model, HALF, tp, ONE)
    shared = token_bytes(model, HALF, tp, ONE, context=np.array([8]))
    assert plain[0] / shared[0] == pytest.approx(5_721_088 / 715_072, rel=1e-3)


def test_attention_data_parallelism_holds_attention_whole() -> None:
    model, tp, all_ranks = CATALOG.model("qwen3-235b-a22b"), np.array([8]), np.array([8])
    assert token_bytes(model, BYTE, tp, ONE, all_ranks)[0] == token_bytes(model, BYTE, ONE, ONE)[0]
    assert (weight_bytes(model, FORMATS.weights["fp8"], tp, ONE, all_ranks)[0]
            > 1.15 * weight_bytes(model, FORMATS.weights["fp8"], tp, ONE)[0])


def test_a_draft_head_adds_a_layer() -> None:
    """vLLM with EAGLE on Llama 3.1 8B: 51.63 GiB hold 410,128 tokens of 33 layers."""
    tokens = printed_tokens(CATALOG.model("llama-3.1-8b"), np.array([51.63 * GIB]), HALF, Cut(ONE), Paging(16), 1)
    assert tokens[0] == pytest.approx(410_128, rel=1e-3)


@pytest.mark.parametrize(("gpu", "tp", "data", "printed"), [
    ("h100-sxm", 1, 1, 1 - 13_440 / 81_080), ("h100-sxm", 8, 1, 1 - 14_848 / 81_080),
    ("l40s", 1, 1, 1 - 6_848 / 45_466),
    ("h100-sxm", 8, 8, 1 - 33_280 / 81_080), ("b200", 1, 1, 1 - 26_240 / 182_681),
])
def test_the_default_fraction_of_sglang_keeps_room_for_graphs_and_chunks(gpu: str, tp: int, data: int,
                                                                         printed: float) -> None:
    """By hand from server_args.py of 0.5.3 to 0.5.16 (as aiconfigurator sdk/backends/sglang_backend.py repeats it)."""
    engine, memory = CATALOG.engine("sglang"), CATALOG.gpu(gpu).usable_memory
    found = engine.default_fraction(engine.release("0.5.16"), memory, tp, 1, data)
    assert found == pytest.approx(printed, abs=0.002)


def test_older_sglang_takes_less_of_more_gpus() -> None:
    engine, memory = CATALOG.engine("sglang"), CATALOG.gpu("h100-sxm").usable_memory
    release = engine.release("0.4.6")
    assert [engine.default_fraction(release, memory, tp) for tp in (1, 2, 4, 8, 16)] == [0.88, 0.87, 0.85, 0.81, 0.79]


def test_tensorrt_llm_takes_a_share_of_what_is_left() -> None:
    one = asked("llama-3.1-8b", engine="tensorrt-llm", version=None, settings=EngineSettings(0.9))
    found = of(one)
    free = one.memory - found.weights[0] - found.activations[0] - found.apart[0]
    assert found.pool[0] == pytest.approx(0.9 * free)


def test_llama_cpp_has_no_fraction() -> None:
    found = of(asked("llama-3.1-8b", "Q4_K_M", "llama-cpp", None, "rtx-4090", settings=EngineSettings(None)))
    assert found.pool[0] / GIB == pytest.approx(CATALOG.gpu("rtx-4090").usable_memory / GIB - 4.58 - 0.35, abs=0.4)


@pytest.mark.parametrize(("kind", "bits"), [
    ("Q2_K", 3.1593), ("Q3_K_S", 3.6429), ("Q3_K_M", 3.996), ("Q3_K_L", 4.2979), ("Q4_K_S", 4.6672),
    ("gguf Q4_K_M", 4.8944), ("Q5_K_S", 5.5704), ("Q5_K_M", 5.7036), ("Q6_K", 6.5633), ("Q8_0", 8.5008),
    ("F16", 16.0005),
])
def test_gguf_kinds_take_the_bits_that_llama_cpp_prints(kind: str, bits: float) -> None:
    """Llama 3.1 8B (llama.cpp tools/quantize/README.md, bits a weight), which four bits of embedding are part of."""
    model, weights = CATALOG.model("llama-3.1-8b"), format_named(FORMATS, kind)
    assert weights is not None
    assert weight_bytes(model, weights, ONE, ONE)[0] * 8 / (model.parameters or 1) == pytest.approx(bits, rel=0.002)


@pytest.mark.parametrize(("model", "name", "tp", "printed", "within"), [
    ("qwen2-vl-7b", "bf16", 1, 15.51, 0.01), ("qwen2-vl-7b", "bf16", 2, 7.7541, 0.01),
    ("mistral-small-3.1-24b", "bf16", 4, 11.86, 0.01), ("kimi-vl-a3b", "bf16", 1, 30.74, 0.01),
    ("starcoder2-15b", "bf16", 2, 14.8672, 0.01), ("jamba-1.5-mini", "experts_int8", 1, 51.4723, 0.01),
    ("e5-mistral-7b", "nf4", 1, 3.9099, 0.01), ("gpt-oss-20b", "mxfp4", 4, 3.63, 0.03),
    ("deepseek-r1-distill-qwen-32b", "Q4_K_M", 1, 18.91, 0.03),
    ("llama-3.1-405b-16kv", "fp8-ffn", 8, 57.75, 0.02), ("llama-3.1-405b-16kv", "int4", 4, 51.1453, 0.02),
])
def test_weights_of_towers_and_formats_are_those_of_the_start_up_log(model: str, name: str, tp: int, printed: float,
                                                                     within: float) -> None:
    """vLLM 0.4 to 0.19, issues 12245, 4432, 7992, 19964, 15018, 6746, 16259 and llm-d-incubation/llm-d-planner."""
    found = of(asked(model, name), tp)
    assert found.weights[0] / GIB == pytest.approx(printed, rel=within)


def test_exl2_and_what_is_no_format() -> None:
    four = format_named(FORMATS, "exl2-4.0bpw")
    assert four is not None
    assert (four.matrix, four.head, four.other) == (0.5, 0.75, 2.0)
    assert format_named(FORMATS, "ternary") is None


def test_nvfp4_keeps_attention_of_mixtures() -> None:
    names = {model: format_of(FORMATS, "nvfp4", CATALOG.model(model)) for model in (
        "llama-3.1-70b", "qwen3-235b-a22b", "minimax-m2.5", "deepseek-v3", "qwen3.5-35b-a3b")}
    assert [found.of_attention if found else None for found in names.values()] == [0.5625, 0.5625, 2, 2, 1]


def test_cuts_are_answered_as_they_are_alone() -> None:
    one = asked("qwen3-235b-a22b", "fp8", "sglang", "0.5.16", settings=EngineSettings(None))
    tp, pp, data = np.array([4, 8, 8, 16]), np.array([1, 1, 2, 1]), np.array([1, 8, 1, 4])
    together = capacity(one, Cut(tp, pp, data))
    for at in range(len(tp)):
        alone = capacity(one, Cut(tp[at:at + 1], pp[at:at + 1], data[at:at + 1]))
        for field in Capacity.__slots__:
            assert np.broadcast_to(getattr(together, field), 4)[at] == getattr(alone, field)[0], field


def test_an_issue_dates_the_version() -> None:
    vllm = CATALOG.engine("vllm")
    assert vllm.version_at(27_508) == "0.11.0"
    assert vllm.version_at(16_348) == "0.8.0"
    assert vllm.version_at(12) is None


def test_smaller_chunks_and_batch_limits_leave_more_to_the_cache() -> None:
    """Sampling is profiled over as many sequences as may run, a forward pass over as many tokens."""
    one = asked("llama-3.3-70b", "int4", version="0.16.0", gpu="rtx-4090")
    choices = [EngineSettings(0.95, tokens, sequences) for tokens in (2048, 8192) for sequences in (64, 1024)]
    cut = Cut(np.array([2, 4, 8]))
    found = held_each(one, cut, (1000, 8192), choices)
    assert (found[1] <= found[0]).all()
    assert (found[3] <= found[2]).all()
    assert (found[2] < found[0]).any()
    for at, settings in enumerate(choices):
        for number, length in enumerate((1000, 8192)):
            each = capacity(replace(one, settings=settings, length=length), cut)
            assert found[at, number] == pytest.approx(each.concurrency)
