"""Recompute by module, as a layout names it."""

from __future__ import annotations

import pytest

import planner
from planner import PlannerError
from planner.answer.assignment import Assignment

LAYOUT = {"tp": "2", "pp": "2", "dp": "2", "mbs": "1"}


def estimated(recompute: str, model: str = "llama-3.1-8b", stack: str = "megatron-core") -> Assignment:
    """Return the estimate with some recompute."""
    return planner.estimate(model, "dgx-h100", {**LAYOUT, "recompute": recompute}, gpus=8, stack=stack,
                            global_batch=64)


def test_each_module_frees_memory_and_takes_time() -> None:
    none, core, more = (estimated(text) for text in ("none", "core_attn", "core_attn+mlp"))
    assert none.memory.components.activations > core.memory.components.activations > more.memory.components.activations
    assert none.time.components.recompute < core.time.components.recompute < more.time.components.recompute
    assert core.memory.components == estimated("selective").memory.components  # which megatron-core means by it


def test_modules_of_a_mixture_are_recomputed_by_name() -> None:
    none, moe = (estimated(text, "deepseek-v2-lite") for text in ("none", "moe_act+mla_up_proj"))
    assert moe.memory.components.activations < none.memory.components.activations


@pytest.mark.parametrize(("recompute", "stack", "problem"), [
    ("core_attn+everything", "megatron-core", "'everything' is no module"),
    ("core_attn", "fsdp2", "recomputes no modules by name"), ("some", "megatron-core", "or modules: core_attn")])
def test_what_is_no_module_is_refused(recompute: str, stack: str, problem: str) -> None:
    with pytest.raises(PlannerError, match=problem):
        estimated(recompute, stack=stack)


def test_modules_need_the_number_of_gpus() -> None:
    with pytest.raises(PlannerError, match="needs a layout with a stated number of GPUs"):
        planner.estimate("llama-3.1-8b", "dgx-h100", {"recompute": "core_attn+mlp"}, stack="megatron-core")
