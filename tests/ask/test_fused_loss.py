"""Logits that a fused loss never holds: told as a lever of an estimate, and as a change that makes a "no" a plan."""

from __future__ import annotations

import pytest

import planner
from planner.catalog.load import Catalog
from planner.cli.main import main

LONG = {"model": "llama-3.1-8b", "method": "qlora", "seq_len": 16384, "stack": "hf-peft"}
TOLD = ["--model", "llama-3.1-8b", "--method", "qlora", "--seq-len", "16384", "--stack", "hf-peft"]


def test_the_largest_lever_of_a_long_sequence_is_the_loss(capsys: pytest.CaptureFixture[str]):
    layout = ["--layout", "tp=1,dp=1,recompute=full", "--global-batch", "8"]
    assert main(["estimate", *TOLD, "--node", "h100", *layout]) == 0
    assert "Largest lever: a fused loss (--loss fused) saves 26.6 GiB" in " ".join(capsys.readouterr().out.split())
    plain, fused = (planner.estimate(**LONG, node="h100", layout="tp=1,dp=1,recompute=full", global_batch=8, loss=loss)
                    for loss in (None, "fused"))
    # without a loss of its own the stack holds all logits, several bytes of each
    assert plain.memory.components.logits > 4 * 16384 * Catalog().model("llama-3.1-8b").vocab
    assert plain.memory.peak_bytes - fused.memory.peak_bytes == pytest.approx(26.6 * 2**30, rel=0.002)


def test_a_no_tells_that_a_fused_loss_is_enough(capsys: pytest.CaptureFixture[str]):
    asked = ["plan", *TOLD, "--on", "rtx-4090-1x", "--tokens", "10M"]
    assert main(asked) == 3
    assert "  loss              as the stack has it   fused" in capsys.readouterr().out
    assert main([*asked, "--loss", "fused"]) == 0
    capsys.readouterr()
    assert main(["estimate", *TOLD, "--node", "rtx-4090"]) == 0
    assert "With --loss fused (Liger, cut cross entropy) it fits" in capsys.readouterr().out
    assert main(["estimate", *TOLD, "--node", "rtx-4090", "--loss", "fused"]) == 0
    assert capsys.readouterr().out.startswith("Fits: ")
