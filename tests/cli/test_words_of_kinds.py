"""Each kind of work is told in its own words: images have no first token, and a batch ends."""

from __future__ import annotations

import pytest

SDXL = ("--model", "sdxl", "--on", "l40s-1x")
PRICED = (
    ((*SDXL, "--rate", "0.2"), "USD/1,000 images", "TTFT"),
    ((*SDXL, "--method", "inference", "--samples", "1000"), "USD/1,000 images", "TTFT"),
    (("--model", "llama-3.1-8b", "--documents", "10k", "--input", "500", "--output", "50", "--on", "l40s-1x"),
     "USD/1,000 documents", "TTFT"),
    (("--model", "llama-3.1-8b", "--rate", "1", "--input", "500", "--output", "50", "--on", "l40s-1x"),
     "USD/M output", "1,000"))


@pytest.mark.parametrize(("asked", "said", "never"), PRICED)
def test_a_comparison_says_what_its_costs_are_for(planner, asked, said, never):
    ran = planner("compare", *asked)
    assert ran.code == 0, ran.err
    assert said in ran.out
    assert never not in ran.out


@pytest.mark.parametrize("asked", [(*SDXL, "--rate", "0.2"),
                                   ("--model", "bge-large", "--rate", "9", "--input", "500", "--output", "0",
                                    "--on", "l40s-1x")])
def test_a_service_without_tokens_compares_in_full(planner, asked):
    ran = planner("compare", *asked, "-v")
    assert ran.code == 0, ran.err
    assert "per M tokens" not in " ".join(ran.out.split())
    assert "1,000" in ran.out
