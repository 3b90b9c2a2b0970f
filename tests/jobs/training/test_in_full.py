"""A plan's layout, stated in full: an estimate of it says what the plan says."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner import PlannerError

SHAPES: dict[str, tuple[dict[str, Any], bool]] = {
    "stages of unlike layers": ({"model": "llama-3.1-70b", "tokens": "1T", "on": "dgx-h100",
                                 "deadline": "120d"}, False),
    "interleaved, by layer": ({"model": "gpt-3-175b", "tokens": "300G", "on": "dgx-a100", "stack": "megatron-core",
                               "sequence_length": 2048, "global_batch": 1536}, True),
    "layers before a mixture": ({"model": "deepseek-v3", "tokens": "1T", "on": "dgx-h100", "stack": "hai-llm"}, True),
    "a quantized base": ({"model": "llama-2-13b", "tokens": "50M", "method": "qlora", "on": "rtx-3090-2x"}, False)}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_estimate_of_a_plan_says_what_the_plan_says(shape: str) -> None:
    asked, mixed = SHAPES[shape]
    planned = planner.plan(**asked).assignments[0]
    layout = planned.layout.in_full
    assert ("stages" in layout) == (mixed or len({stage.layers for stage in planned.layout.stages}) > 1)
    assert not mixed or planned.layout.recompute == "mixed"
    work = {key: value for key, value in asked.items() if key in ("method", "sequence_length")}
    found = planner.estimate(asked["model"], planned.node, layout, gpus=planned.gpus, stack=planned.stack,
                             global_batch=planned.global_batch, **work)
    assert found.layout.by_stage == planned.layout.by_stage
    assert found.memory.components == planned.memory.components
    parts, planned_parts = found.time.components.model_dump(), planned.time.components.model_dump()
    # staging rounds times up, which is in the rest
    assert parts.pop("other") <= planned_parts.pop("other") * (1 + 1e-9)
    assert parts == pytest.approx(planned_parts)


@pytest.mark.parametrize(("stages", "problem"), [
    ("16/0/0", "expected 2 of none/selective/full, 32 layers in all, got 1 with 16"),
    ("16/0/0 15/0/0", "got 2 with 31"), ("sixteen 16/0/0", "expected 2 of none/selective/full"),
    ("8/8/0*2", "does not recompute layers in none and selective together")])
def test_stages_that_are_none_are_refused(stages: str, problem: str) -> None:
    with pytest.raises(PlannerError, match=problem):
        planner.estimate("llama-3.1-8b", "dgx-h100", {"tp": "2", "pp": "2", "dp": "2", "stages": stages}, gpus=8,
                         stack="megatron-core", global_batch=64)


def test_stages_need_the_number_of_gpus() -> None:
    with pytest.raises(PlannerError, match="needs a layout with a stated number of GPUs"):
        planner.estimate("llama-3.1-8b", "dgx-h100", {"stages": "32/0/0"}, stack="megatron-core", global_batch=64)
