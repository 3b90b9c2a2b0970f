"""How fast answers are read: in the headline, and pointed out where nobody asked and people would wait."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.render.serving import serving_sentence
from planner.units import show_seconds

ASKED = ["plan", "--model", "llama-3.1-70b", "--users", "200", "--ttft", "20s", "--on", "rtx-a6000-8x",
         "--engine", "vllm", "--quantization", "bf16"]


def test_the_headline_says_what_each_user_gets(capsys: pytest.CaptureFixture[str]):
    assert main(ASKED) == 0
    said = capsys.readouterr()
    plan = planner.plan(model="llama-3.1-70b", users=200, ttft="20 s", on="rtx-a6000-8x", engine="vllm",
                        quantization="bf16")
    level = plan.assignments[0].serving
    assert level is not None
    assert f"{1 / level.tpot_seconds.p50:,.2g} tokens/s to each" in " ".join(said.out.split())
    pace = Catalog().recipes.requests.pace
    assert level.tpot_seconds.p95 > pace == 0.2  # the first token's target bounds no other
    assert "slower than people read" in said.err
    assert main([*ASKED, "--tpot", "200ms"]) == 0
    assert "slower than people read" not in capsys.readouterr().err


def test_drafts_alone_have_the_usual_share_accepted(capsys: pytest.CaptureFixture[str]):
    asked = ["plan", "--model", "llama-3.1-8b", "--rate", "2", "--on", "l40s-1x", "-q", "--engine", "vllm",
             "--quantization", "bf16"]
    share = Catalog().recipes.drafts.acceptance
    assert main([*asked, "--speculative", "3"]) == 0
    usual = capsys.readouterr().out
    assert main([*asked, "--speculative", f"3:{share:g}"]) == 0
    assert capsys.readouterr().out == usual
    assert main([*asked, "--speculative", "3:0.1"]) == 0
    assert capsys.readouterr().out != usual


def test_commas_around_the_pace_are_single(capsys: pytest.CaptureFixture[str]):
    """Of a mixed fleet the price is set off by a comma too."""
    assert main(["plan", "--model", "llama-3.1-8b", "--users", "1000", "--on", "l4", "-q"]) == 0
    said = capsys.readouterr().out
    assert "tokens/s to each, " in said
    assert ",," not in said


def test_images_that_come_late_are_pointed_out_and_said_in_the_headline() -> None:
    asked: dict[str, Any] = {"model": "flux.1-dev", "rate": "2 images/s", "on": "rtx-4090-1x"}
    plan = planner.plan(**asked)
    assert any("at p95, as no latency target is given: --e2e" in note for note in plan.notes)
    level = plan.assignments[0].serving
    assert level is not None
    assert f"each after {show_seconds(level.ttft_seconds.p50)}" in serving_sentence(plan)
    held = planner.plan(**asked | {"on": "h100-sxm-1x", "e2e": "1 min"})
    assert not any("no latency target" in note for note in held.notes)
