"""Adapters on weights of four bits: shared with the engine, or merged into 16-bit weights of its own."""

from __future__ import annotations

import pytest

import planner
from planner.catalog.load import Catalog
from planner.physics.shapes import parameters

SMALL = {"method": "grpo", "tuning": "qlora", "prompts": 4, "samples_per_prompt": 8, "input": 256, "output": 512,
         "max_model_len": 1024}


def test_an_engine_that_shares_the_weights_holds_them_once() -> None:
    four, sixteen = (planner.estimate("qwen2.5-7b", "rtx-4090-1x", stack="unsloth", **{**SMALL, "tuning": tuning})
                     for tuning in ("qlora", "lora"))
    own = parameters(Catalog().model("qwen2.5-7b"))
    drawing = next(phase for phase in four.phases if phase.phase == "generation").parts
    assert drawing["rollout weights"] < 0.45 * 2 * own
    # the adapters are the trainer's, what they lie on is the engine's
    assert drawing["policy"] < 0.05 * 2 * own
    assert four.memory.fits == "fits"
    assert four.memory.peak_bytes < sixteen.memory.peak_bytes
    assert four.memory.host_bytes_per_node < 2 * own + 2e10


def test_an_engine_with_merged_weights_holds_sixteen_bits_of_its_own() -> None:
    assert planner.estimate("qwen2.5-7b", "rtx-4090-1x", stack="trl", **SMALL).memory.fits == "does not fit"
    made = planner.estimate("qwen2.5-7b", "h100-sxm-1x", stack="trl", **SMALL)
    drawing = next(phase for phase in made.phases if phase.phase == "generation").parts
    assert drawing["rollout weights"] > 1.9 * parameters(Catalog().model("qwen2.5-7b"))
    many = planner.estimate("qwen2.5-7b", "dgx-h100", stack="trl", **SMALL)
    # merging fails on weights that FSDP shards
    assert (many.layout.zero, many.layout.dp) == (0, 8)


def test_the_published_length_of_32b_on_one_gpu_is_where_it_becomes_tight() -> None:
    """Unsloth: 6,144 tokens of Qwen3-32B with 16-bit adapters on one H100 of 80 GB."""
    at = {length: planner.estimate("qwen3-32b", "h100-sxm-1x", stack="unsloth", **{
        **SMALL, "tuning": "lora", "prompts": 1, "samples_per_prompt": 4, "output": 1024, "max_model_len": length})
          for length in (6144, 16384)}
    assert at[6144].memory.fits == "tight"
    assert at[16384].memory.fits == "does not fit"


def test_what_has_no_weights_of_four_bits_says_what_would() -> None:
    with pytest.raises(planner.InputError, match="stack trl or unsloth would"):
        planner.estimate("qwen2.5-7b", "rtx-4090-1x", stack="verl", **SMALL)
    with pytest.raises(planner.InputError, match="no way to run"):
        planner.estimate("qwen2.5-7b", "dgx-h100", stack="unsloth", **SMALL)
