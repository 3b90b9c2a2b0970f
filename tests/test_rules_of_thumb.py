"""The claims of widely read articles: what is exact in them, what is not, and by how much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import rules
from benchmarks.formulas import Inputs, accelerate, deepspeed, four_times, megatron
from benchmarks.rules import estimate, gigabytes, nf4, recipe_bytes, saved, states


def test_the_page_is_what_the_program_says() -> None:
    assert rules.PAGE.read_text(encoding="utf-8") == rules.page(), "run python -m benchmarks.rules"


def test_exact_claims() -> None:
    """16 bytes a parameter: 112 GB of 7 G, 160 GB of 10 G; 14 GB of 7 G weights in 16 bits."""
    assert states("llama-2-7b", "fsdp2") == pytest.approx(112 * 6.738 / 7, rel=1e-3)
    assert 10 * recipe_bytes("deepspeed") == 160
    assert gigabytes(estimate("llama-1-7b", "inference"))["weights"] == pytest.approx(13.5, abs=0.1)


def test_70b_in_four_bits_is_what_litgpt_measured() -> None:
    assert nf4("llama-2-70b") == pytest.approx(37.2, rel=0.02)


def test_84_gb_holds_no_7b() -> None:
    assert sum(gigabytes(estimate("llama-2-7b", stack="deepspeed")).values()) > 120


def test_qlora_of_8b_is_mostly_logits_and_a_chunked_loss_would_do() -> None:
    """torchtune measured 7.4 GiB with a chunked loss at half the tokens; the Transformers loss takes 13.3 bytes."""
    parts = gigabytes(estimate("llama-3-8b", "qlora", "hf-peft", node="rtx-4090-1x", batch=4, recompute="full"))
    assert parts["logits"] > 2 * parts["weights"]
    assert sum(parts.values()) - parts["logits"] * (1 - 4 / 13.3) < 18


def test_recompute_saves_most_activations_and_less_of_the_peak() -> None:
    activations, peak = saved("llama-3-8b", 8192)
    assert activations > 0.9
    assert peak < 0.33


def test_reference_formulas_give_their_published_figures() -> None:
    """DeepSpeed's documentation: 2,851 M parameters on 8 GPUs; accelerate: twice the fp32 weights."""
    row = Inputs(parameters=2.851e9, layers=32, hidden=2560, ffn=10240, tokens=2048, tp=1, pp=1, shards=8, gpus=8,
                 zero=2, sequence_parallel=False)
    assert deepspeed(row) / 2**30 == pytest.approx(11.28, abs=0.01)
    assert accelerate(row) == 8 * 2.851e9
    assert four_times(row) == 2.851e9
    assert megatron(replace(row, zero=0, tokens=0)) == pytest.approx(1.05 * 18 * 2.851e9)
