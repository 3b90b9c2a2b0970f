"""What fine-tuning costs beside its products: adapters, casts, expanded weights, units of sharding, waiting hosts."""

from __future__ import annotations

import pytest

from planner.catalog.stack import Stack
from planner.layouts.table import from_rows
from planner.physics.training.evaluate import evaluate_fixed
from planner.physics.training.question import Question, question_of
from tests.search_cases import candidate, catalog


def question(method: str, stack: Stack, *, length: int = 4096, model: str = "llama-3-8b") -> Question:
    return question_of(catalog(), catalog().model(model), (candidate("dgx-h100"),), stack, sequence_length=length,
                       global_batch=8, precisions=("bf16",), method=method, confidence=0.95)


def seconds(method: str, *, stack: str = "hf-peft", length: int = 4096, model: str = "llama-3-8b", zero: int = 3,
            **changes: object) -> float:
    changed = catalog().stack(stack).model_copy(update=changes)
    asked = question(method, changed, length=length, model=model)
    return evaluate_fixed(asked, from_rows([{"dp": 8, "zero": zero, "recompute": 2}], 8), 0).step.seconds


@pytest.mark.parametrize(("field", "less", "acts_on"), [
    ("adapter_passes", 1.0, {"lora", "qlora"}), ("adapter_casts", 0.0, {"lora"}), ("upcast", 1.0, {"qlora"}),
    ("dequantize", {}, {"qlora"}), ("elementwise", 1.0, {"full", "lora", "qlora"})])
def test_each_cause_costs_the_methods_that_have_it(field: str, less: object, acts_on: set[str]) -> None:
    for method in ("full", "lora", "qlora"):
        saved = seconds(method) - seconds(method, **{field: less})
        assert (saved > 0) == (method in acts_on), method


def test_expanding_weights_takes_as_long_whatever_the_tokens() -> None:
    """Three times a layer: forward, its repeat, backward."""
    short, long = (seconds("qlora", length=length, zero=0) - seconds("qlora", length=length, zero=0, dequantize={})
                   for length in (4096, 16384))
    base = catalog().recipes.bases["nf4-dq"] + 2
    layers = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    gpu = candidate("dgx-h100").gpu
    slower = catalog().stack("hf-peft").dequantize["nf4-dq"] - 1
    rate = gpu.memory_bandwidth * catalog().rates(gpu.architecture).memory
    assert long == pytest.approx(short, rel=1e-6)
    assert short == pytest.approx(3 * slower * base * layers / rate * catalog().stack("hf-peft").slowdown, rel=1e-3)


def test_adapters_of_llama_are_seven_matrices_of_which_each_is_a_unit_of_fsdp() -> None:
    """PEFT's fsdp_auto_wrap_policy: a layer's unit is gathered twice, each adapter's two matrices thrice."""
    stack = catalog().stack("hf-peft")
    assert question("lora", stack).adapted == 7
    assert question("lora", stack).units == 2 * 1 + 3 * 2 * 7
    assert question("full", stack).units == 3
    assert question("full", catalog().stack("deepspeed")).units == 3 * 7


def test_units_cost_nothing_on_states_that_are_not_gathered() -> None:
    assert seconds("lora") > seconds("lora", gather_unit=0.0, launch_unit=0.0)
    assert seconds("lora", zero=0) == seconds("lora", zero=0, gather_unit=0.0, launch_unit=0.0)


def test_a_host_that_sees_to_every_unit_bounds_a_short_step() -> None:
    short = seconds("lora", length=64, launch_unit=2e-3)
    assert short > 32 * (2 + 42) * 2e-3
    assert seconds("lora", length=16384, launch_unit=2e-3) == pytest.approx(seconds("lora", length=16384), rel=0.2)


def test_experts_under_zero_3_are_gathered_one_by_one() -> None:
    """ms-swift docs: Qwen3-30B-A3B in full at 8,192 tokens takes 91 s a step under ZeRO-3, 9.6 s in Megatron."""
    mixture = {"stack": "deepspeed", "length": 8192, "model": "qwen3-30b-a3b"}
    assert 60 < seconds("full", **mixture) < 130  # type: ignore[arg-type]
    assert seconds("full", **{**mixture, "stack": "hf-peft"}) < 15  # type: ignore[arg-type]


def test_a_cache_spares_kernels_that_run_one_by_one() -> None:
    """An L2 of 50 MB holds 1,024 tokens of 4,096 elements, and no 32,768."""
    def kept(length: int) -> float:
        stack = catalog().stack("hf-peft")
        found = []
        for fused in (False, True):
            asked = question("full", stack.model_copy(update={"fused_norm_and_activation": fused}), length=length)
            found.append(evaluate_fixed(asked, from_rows([{"dp": 8, "recompute": 0}], 8), 0).step.seconds)
        return 1 - found[0] / found[1]

    assert kept(1024) > 2 * kept(32768) >= 0


@pytest.mark.parametrize(("method", "gflops"), [("full", 148.1), ("lora", 133.1), ("inference", 49.4)])
def test_a_frozen_base_has_no_products_for_gradients_of_weights(method: str, gflops: float) -> None:
    """At 131,072 tokens of Llama 3.1 8B: 7.505e9 weights in products, 34.36 GFLOP of causal attention a token, forward.

    All weights: 6 x 7.505 + 3 x 34.36; adapters: 4 x 7.505 + 3 x 34.36, as attention has no weights; forward: a third.
    """
    asked = question(method, catalog().stack("hf-peft"), length=131072)
    found = evaluate_fixed(asked, from_rows([{"dp": 8, "zero": 3, "recompute": 2}], 8), 0)
    assert found.model_flops_per_gpu / found.tokens_per_second_per_gpu / 1e9 == pytest.approx(gflops, rel=1e-3)
