"""The kernel of the loss, as configs of pre-training state it."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner
from planner.scenario.configs.read import read_config

MEGATRON = ("torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
            "--tensor-model-parallel-size 1 --seq-length 8192 --micro-batch-size 2 --global-batch-size 128 --bf16 "
            "--tokenizer-model meta-llama/Llama-3.1-8B --use-distributed-optimizer ")
TITAN = Path(__file__).parent / "configs" / "tt70.toml"


@pytest.mark.parametrize(("flags", "loss"), [
    ("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te", "chunked"),
    ("--cross-entropy-loss-fusion --cross-entropy-fusion-impl native", None), ("--cross-entropy-loss-fusion", None),
    ("", None)])
def test_transformer_engines_loss_keeps_no_wide_logits(flags: str, loss: str | None) -> None:
    assert read_config(MEGATRON + flags).reading.values.get("workload.loss") == loss


@pytest.mark.parametrize(("table", "loss"), [
    ("[compile]\nenable = true\n", "chunked"),
    ('[compile]\nenable = true\ncomponents = ["model", "loss"]\n', "chunked"),
    ('[compile]\nenable = true\ncomponents = ["model"]\n', None), ("[compile]\nenable = false\n", None), ("", None)])
def test_torchtitan_compiles_its_loss_with_the_model(table: str, loss: str | None, tmp_path: Path) -> None:
    path = tmp_path / "llama3_70b.toml"
    path.write_text(TITAN.read_text(encoding="utf-8") + "\n" + table, encoding="utf-8")
    assert read_config(str(path)).reading.values.get("workload.loss") == loss


def test_a_loss_in_place_takes_less_memory() -> None:
    plain, fused = (planner.estimate(node="mi300x-platform", from_=MEGATRON + flags) for flags in (
        "", "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"))
    assert fused.memory.components.logits < plain.memory.components.logits / 3


def test_long_sequences_train_in_tiles_and_over_heads() -> None:
    """ArcticTraining's run-h100-sp8-llama-8b.yml: 3.8 million tokens on eight H100."""
    asked = {"method": "full", "loss": "fused", "sequence_length": 3_800_000, "global_batch": 1, "gpus": 8}
    layout = {"cp": 8, "dp": 1, "zero": 3, "recompute": "full", "offload_optimizer": 1, "offload_activations": 1}
    found = planner.estimate("llama-3.1-8b", "dgx-h100", layout, stack="arctic-training", **asked)
    assert found.memory.fits != "does not fit"
    assert found.layout.cp_method == "all-to-all"


def test_primus_runs_zero_bubble() -> None:
    found = planner.estimate("llama-2-7b", "mi300x-platform", {"pp": 8, "schedule": "zero-bubble"}, stack="primus",
                             gpus=8, global_batch=64)
    assert found.layout.schedule == "zero-bubble"
