"""What holds memory in reinforcement learning: states that wait or are updated on the host, and rollouts elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.evidence.rl_rows import RlRun
from planner.evidence.rl_runs import fewest
from planner.physics.shapes import parameters as parameters_of

CATALOG = Catalog()
ASKED: dict[str, Any] = {"method": "grpo", "input": 130, "output": 600, "max_model_len": 1536, "steps": 1}


def run(model: str, gpu: str, gpus: int, engine: str) -> RlRun:
    return RlRun.model_validate({
        "kind": "min_gpus", "framework": "verl", "algorithm": "GRPO", "model": model, "gpu": gpu, "gpus": gpus,
        "prompt_len_mean": 130, "response_len_mean": 600, "max_len": "512+1024", "samples_per_step": 640,
        "method": "full", "train_engine": engine})


@pytest.mark.parametrize(("model", "billion", "gpu", "room"), [
    ("Qwen2.5-7B", 7.6, "h800-sxm", 79), ("Qwen2.5-14B", 14.8, "h800-sxm", 79), ("Qwen2.5-72B", 72.7, "h20", 95)])
def test_states_that_come_back_to_the_gpu_need_its_memory(model: str, billion: float, gpu: str, room: float) -> None:
    """Fp32 weights, gradients and moments are 16 bytes a parameter; the next power of two holds the rest besides."""
    found = fewest(run(model, gpu, 8, "FSDP"), CATALOG, "verl")
    least = billion * 16e9 / 2**30 / room
    assert found is not None
    assert least <= found <= 2 * least


def test_states_updated_on_the_host_do_not() -> None:
    kept, moved = (fewest(run("Qwen2.5-14B", "h800-sxm", 4, engine), CATALOG, "verl") for engine in ("FSDP", "FSDP2"))
    assert kept is not None
    assert moved is not None
    assert moved < kept


def test_rollouts_on_a_larger_gpu_are_no_part_of_the_trainers_memory() -> None:
    found = planner.plan(model="qwen2.5-1.5b", on="l40s-8x", rollouts_on="dgx-h200", **ASKED)
    assert isinstance(found, Plan)
    (placed,) = found.assignments
    assert placed.memory is not None
    assert placed.memory.peak_bytes <= placed.memory.usable_bytes


def test_host_memory_is_that_of_its_parts_by_hand() -> None:
    """Two processes of 6 GB a GPU, the engine's 16-bit weights in each replica, 16 bytes a parameter that wait."""
    made = planner.estimate(model="qwen2.5-7b", node="dgx-h100", stack="verl",
                            layout={"swap": "1", "offload_optimizer": "0", "rollout_tp": "2", "dp": "8"}, **ASKED)
    parts, parameters = made.memory.host_parts, parameters_of(CATALOG.model("qwen2.5-7b"))
    assert parts["processes"] == 8 * 2 * 6e9
    assert parts["weights of the engine asleep"] == pytest.approx(8 / 2 * 2 * parameters, rel=0.02)
    # sharded over all: weights and gradients of 2 bytes, weights and two moments of 4
    assert parts["states of the policy"] == pytest.approx((2 + 2 + 4 + 2 * 4) * parameters, rel=0.02)
    assert parts["answers of a step"] == (5 * 8 + 8 * 4) * 3 * made.prompts * made.samples_per_prompt * 1536
    assert sum(parts.values()) == pytest.approx(made.memory.host_bytes_per_node, abs=len(parts))


def test_a_critic_updated_on_the_host_takes_as_much_of_it_as_the_policy() -> None:
    held = {method: planner.estimate(model="qwen2.5-7b", node="dgx-h100", stack="verl", layout={
        "swap": "0", "offload_optimizer": "1", "tp": "1", "cp": "1"}, **{
        **ASKED, "method": method, "samples_per_prompt": 8}).memory
            for method in ("grpo", "ppo")}
    alone, both = (held[method].host_parts["states updated there"] for method in ("grpo", "ppo"))
    assert both == pytest.approx(2 * alone, rel=0.02)
    assert both <= held["ppo"].host_bytes_per_node


def test_micro_batches_hold_every_answer_of_a_step() -> None:
    made = planner.estimate(model="qwen2.5-7b", method="grpo", prompts=64, samples_per_prompt=8, input=512, output=2048,
                            node="dgx-h100", layout="tp=4")
    layout = made.layout
    held = layout.micro_batch * layout.micro_batches * layout.dp
    assert 512 <= held < 512 + layout.micro_batches * layout.dp
    # as many as fit: 16,384 tokens hold six of 512 + 2,048
    assert layout.micro_batch == 16384 // 2560


def test_what_a_critic_works_with_is_told_apart() -> None:
    """It stood under the framework, 56 of 78 GiB, and the margin was none."""
    made = planner.estimate(model="llama-3.1-8b", method="ppo", node="dgx-a100", prompts=512, samples_per_prompt=8)
    assert max(made.phases, key=lambda phase: phase.gpu_bytes).phase == "critic_update"
    held = made.memory.components
    assert held.framework < held.activations
    assert held.reserve > 0
    assert sum(held.model_dump().values()) == pytest.approx(made.memory.peak_bytes, abs=8)
