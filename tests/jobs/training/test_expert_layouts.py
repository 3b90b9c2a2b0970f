"""Experts over tensor-parallel ranks and multi-query attention: what a GPU holds, by hand, and what is refused."""

from __future__ import annotations

import json

import pytest

from planner.cli.main import main

QWEN = ["estimate", "--json", "--model", "qwen3-235b-a22b", "--node", "dgx-h100", "--gpus", "256", "--seq-len", "4096",
        "--global-batch", "2048", "--layout"]


def asked(args: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(args) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def weights(found: dict[str, object]) -> float:
    memory = found["memory"]
    assert isinstance(memory, dict)
    return float(memory["components"]["weights"])


def test_the_published_recipe_of_qwen3_235b(capsys: pytest.CaptureFixture[str]) -> None:
    """NVIDIA's recipe: TP 2, PP 8, EP 32 over the TP ranks; each GPU holds four whole experts a layer of twelve."""
    found = asked([*QWEN, "tp=2,pp=8,ep=32,expert_tp=1"], capsys)
    assert (found["layout"]["ep"], found["layout"]["expert_tp"]) == (32, 1)  # type: ignore[index]
    hidden, experts = 4096, 12 * (128 // 32) * 3 * 4096 * 1536
    queries, keys = 64 * 128, 4 * 128
    attention = 12 * (hidden * (2 * queries + 2 * keys) // 2 + hidden * 128 + 2 * hidden + 2 * 128)
    stage = 2 * (experts + attention)
    table = 2 * 151936 * hidden // 2
    assert stage <= weights(found) <= 1.001 * (stage + table)
    # 32 ranks hold experts only where they are those of tensor parallelism too
    assert asked([*QWEN, "tp=2,pp=8,ep=32"], capsys)["layout"] == found["layout"]
    split = asked([*QWEN, "tp=2,pp=8,ep=16"], capsys)
    assert split["layout"]["expert_tp"] == 2  # type: ignore[index]
    assert weights(split) == pytest.approx(weights(found), rel=1e-3)


@pytest.mark.parametrize(("layout", "stack", "problem"), [
    ("tp=2,pp=8,ep=64,expert_tp=1", "megatron-core", "ep_divides_shards"),
    ("tp=2,pp=8,ep=16,expert_tp=4", "megatron-core", "expert_tp_supported"),
    ("zero=3,ep=8", "litgpt", "the stack has no expert parallelism (ep_supported"),
    ("zero=3,ep=8", "axolotl", "ep_supported"), ("zero=3,ep=8", "hf-peft", "ep_supported")])
def test_what_no_stack_or_this_one_does_not_run(layout: str, stack: str, problem: str,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QWEN, layout, "--stack", stack, "--method", "full"]) == 2
    assert problem in capsys.readouterr().err


def test_every_rank_holds_the_one_key_value_head(capsys: pytest.CaptureFixture[str]) -> None:
    """StarCoder at TP 8: an eighth of everything but keys and values of one head, norms and biases."""
    base = ["estimate", "--json", "--model", "starcoder", "--node", "dgx-h100", "--gpus", "8", "--seq-len", "4096",
            "--global-batch", "8", "--method", "full", "--stack", "megatron-core", "--layout"]
    found = asked([*base, "tp=8"], capsys)
    hidden, layers, ffn = 6144, 40, 24576
    split = layers * (2 * hidden**2 + 2 * hidden * ffn) + (49152 + 8192) * hidden
    shared = layers * (hidden * 2 * 128 + (2 * hidden + 2 * 128) + (hidden + ffn) + 2 * 2 * hidden) + 2 * hidden
    assert weights(found) == pytest.approx(2 * (split / 8 + shared), rel=2e-3)
    base[base.index("8")] = "5"
    assert main([*base, "tp=5"]) == 2
    assert "tp_divides_kv_heads" in capsys.readouterr().err


@pytest.mark.parametrize(("precision", "stack", "node", "problem"), [
    ("fp8", "litgpt", "dgx-h100", "the stack does not train in this precision"),
    ("fp8", "megatron-core", "dgx-a100", "fp8 rate")])
def test_precisions_that_stack_or_gpu_lack(precision: str, stack: str, node: str, problem: str,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    args = ["estimate", "--model", "llama-3.1-8b", "--node", node, "--method", "full", "--stack", stack, "--precision",
            precision, "--seq-len", "4096", "--global-batch", "64", "--layout", "dp=8"]
    assert main(args) == 2
    assert problem in capsys.readouterr().err
