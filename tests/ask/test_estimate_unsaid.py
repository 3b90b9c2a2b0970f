"""What an estimate without a method or load says of what was taken, by `planner estimate` itself."""

from __future__ import annotations

import pytest

from planner.cli.main import main

Captured = pytest.CaptureFixture[str]


def said(capsys: Captured, *args: str) -> str:
    """Return what the command prints, on one line."""
    main(args)
    printed = capsys.readouterr()
    return " ".join(f"{printed.out} {printed.err}".split())


@pytest.mark.parametrize(("model", "node", "tells"), [
    ("deepseek-v3.1", "8xh20", True),  # weights on NVMe: legal, and hardly what was meant
    ("llama-3.1-8b", "dgx-h100", False)])
def test_weights_off_the_gpus_lead_to_serving(model: str, node: str, tells: bool, capsys: Captured) -> None:
    out = said(capsys, "estimate", "--model", model, "--node", node)
    assert "That is pre-training, as no --method is given" in out
    assert ("to ask whether it can be served: --method inference" in out) == tells


def test_one_number_for_a_day_is_told_to_be_left_out(capsys: Captured) -> None:
    assert "the same all day needs no day" in said(
        capsys, "plan", "--model", "llama-3.1-8b", "--on", "h100", "--day", "24")
    assert "needs no day" not in said(capsys, "plan", "--model", "llama-3.1-8b", "--on", "h100", "--day", "1,2,3")


@pytest.mark.parametrize(("model", "tells"), [("qwen3-coder-30b", True), ("qwen3-30b-a3b", False)])
def test_an_alias_is_said(model: str, tells: bool, capsys: Captured) -> None:
    out = said(capsys, "estimate", "--model", model, "--node", "dgx-h100", "--method", "lora")
    assert ("qwen3-coder-30b stands for qwen3-30b-a3b" in out) == tells


def test_a_size_alone_is_said_to_be_no_model(capsys: Captured) -> None:
    out = said(capsys, "estimate", "--model", "32b", "--node", "4090", "--method", "qlora")
    assert "32b names a size and no model: taken as a dense decoder" in out


@pytest.mark.parametrize(("method", "tells"), [("dapo", True), ("gspo", False)])
def test_answers_that_a_method_drops_are_said_not_to_be_counted(method: str, tells: bool, capsys: Captured) -> None:
    out = said(capsys, "estimate", "--model", "qwen2.5-7b", "--node", "dgx-h100", "--method", method)
    assert (f"answers that {method} draws and drops" in out) == tells
    assert f"{method} stands for grpo" in out
