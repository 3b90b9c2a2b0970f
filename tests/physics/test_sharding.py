"""What sharding holds besides the shards, under FSDP's ways to reshard and to accumulate; frozen layers; 32 bits."""

from __future__ import annotations

import pytest

from planner.layouts.table import from_rows
from planner.physics.training.evaluate import Evaluation, evaluate_fixed
from planner.physics.training.question import question_of
from tests.search_cases import candidate, catalog

GIB = 2**30


def run(stack: str, batch: int = 8, *, precision: str = "bf16", method: str = "pretrain", trained: int | None = None,
        **row: float) -> Evaluation:
    question = question_of(catalog(), catalog().model("llama-3-8b"), (candidate("dgx-h100"),), catalog().stack(stack),
                           sequence_length=8192, global_batch=batch, precisions=(precision,), method=method,
                           confidence=0.95, trained_layers=trained)
    return evaluate_fixed(question, from_rows([{"dp": 8, "zero": 3, "recompute": 2, **row}], batch), 0)


def test_never_resharding_holds_a_16_bit_copy_of_the_weights() -> None:
    """torchtitan commit 5940ddeb5, Llama 3 8B on 8 GPUs: 12.6 to 12.8 GiB more than resharding, of 15.0 GiB in all."""
    always, never = (run("fsdp2", zero=stage).memory for stage in (3, 2))
    assert always.components["weights"] == never.components["weights"]
    assert (never.reserved - always.reserved) / GIB == pytest.approx(12.7, rel=0.1)


def test_accumulating_without_a_reduction_holds_whole_gradients() -> None:
    """Accelerate's gradient synchronization guide: FSDP keeps the gradients of every layer; time is saved instead."""
    each, late = (run("hf-peft", batch=32, method="full", no_sync=value) for value in (0, 1))
    whole = 8.03e9 * 2
    held = late.memory.components["communication_buffers"] - each.memory.components["communication_buffers"]
    assert held == pytest.approx(whole, rel=0.1)
    assert late.step.seconds < each.step.seconds


def test_flat_parameters_accumulate_gradients_of_frozen_weights_too() -> None:
    """LitGPT's table of LoRA on several GPUs: Llama 2 7B takes 18.8 to 20.7 GiB on two, W(1 + 1/N) and more."""
    whole, none = (run("litgpt", batch=16, method="lora", no_sync=value).memory.allocated for value in (1, 0))
    assert whole - none > 0.9 * 2 * 8.03e9


def test_frozen_layers_hold_weights_alone() -> None:
    """Of 32 layers 8 train: a quarter of gradients, states and activations of the layers; backward takes less."""
    every, some = run("megatron-core"), run("megatron-core", trained=8)
    assert some.memory.components["weights"] == every.memory.components["weights"]
    assert some.memory.components["activations"] < 0.5 * every.memory.components["activations"]
    assert some.memory.components["optimizer"] < 0.5 * every.memory.components["optimizer"]
    assert 1 / 3 < some.step.seconds / every.step.seconds < 0.8


def test_fp32_takes_four_bytes_for_everything() -> None:
    """Weights, gradients and two moments in 32 bits: 16 bytes a parameter; activations are twice those in 16 bits."""
    half, full = (run("fsdp2", precision=p, dp=1, zero=0).memory.components for p in ("bf16", "fp32"))
    assert full["weights"] + full["gradients"] + full["optimizer"] == pytest.approx(
        4 * 8.03e9 + 8 * 8.03e9 + (full["gradients"] > 0) * 4 * 8.03e9, rel=1e-3)
    assert full["activations"] == pytest.approx(2 * half["activations"], rel=0.02)


def test_shards_inside_the_node_spare_the_network_a_broadcast_each() -> None:
    """InternEvo, 7B on 1,024 A100 with 4 x 100 Gbit/s: 7.21 s with states over all ranks, 4.52 s inside nodes."""
    stack = catalog().stack("internevo")
    question = question_of(catalog(), catalog().model("llama-2-7b"), (candidate("dgx-a100"),), stack,
                           sequence_length=2048, global_batch=8192, precisions=("bf16",), method="pretrain",
                           confidence=0.95)
    row = {"dp": 1024, "zero": 1, "micro_batch": 2}
    everywhere, local = (evaluate_fixed(question, from_rows([row | {"hsdp": copies}], 8192), 0).step.seconds
                         for copies in (1, 128))
    assert everywhere - local == pytest.approx(stack.shard_broadcast * (1024 - 8), rel=0.4)
