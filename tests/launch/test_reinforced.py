"""What frameworks of reinforcement learning are told, and what they refuse by its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.answer.layout import Offload
from planner.ask.estimate import estimating
from planner.catalog.load import Catalog
from planner.launch.axes import CannotExpress, settings_of
from planner.launch.check import differences
from planner.launch.emitter import ReinforcedEmitter
from planner.launch.folder import launched
from planner.launch.given import Given, estimated
from planner.launch.reinforced import VALUES, Reinforced, reinforced_of
from tests.launch.emitters import axes_of, emitters_of

EMITTERS = emitters_of(ReinforcedEmitter)
CATALOG = Catalog()


@pytest.fixture(scope="module")
def given() -> dict[str, Given]:
    def placed(framework: str) -> Given:
        ask = estimating("qwen2.5-7b-grpo-8xh100", {"workload.stack": framework, "workload.prompts": "64",
                                                    "workload.max_model_len": "3000"}, CATALOG, node="dgx-h100",
                         labels={}, layout={})
        found = ask.answer().assignment
        return estimated(found)
    return {target: placed(CATALOG.releases.target(target).stacks[0]) for target in EMITTERS}


def work_of(given: dict[str, Given], target: str, **changed: Any) -> Reinforced:
    work = reinforced_of(given[target].placed, given[target].asked, CATALOG, target)
    layout = {name: changed.pop(name) for name in ("tp", "dp", "zero", "recompute") if name in changed}
    if "offload" in changed:
        layout["offload"] = Offload(optimizer=changed.pop("offload"), to="host")
    there = {name.removeprefix("rollout_"): changed.pop(name) for name in list(changed) if name.startswith("rollout_")}
    placed = work.placed.model_copy(update={
        "layout": work.placed.layout.model_copy(update=layout),
        "rollouts": work.placed.rollouts.model_copy(update=there), **changed})
    return replace(work, placed=placed)


@pytest.mark.parametrize("target", sorted(EMITTERS))
def test_every_axis_is_named_and_written(given: dict[str, Given], target: str) -> None:
    assert set(axes_of(EMITTERS[target].table)) == set(VALUES)
    made = launched(given[target], CATALOG, target, "slurm")
    assert {"train.sh", "job.sbatch", "install.sh", "variables.sh", "README.md", "plan.json"} <= set(made.files)
    settings = settings_of(work_of(given, target), EMITTERS[target].table)
    assert {8, 3000} <= {value for value in settings.values() if isinstance(value, int)}


@pytest.mark.parametrize(("target", "changed", "told"), [
    ("verl", {"recompute": "full"}, {"enable_gradient_checkpointing": True, "recompute_granularity": "full"}),
    ("verl", {"placement": "disaggregated", "policy_lag": 2, "trainer_gpus": 8, "rollout_gpus": 16},
     {"trainer_mode": "separate_async", "num_warmup_batches": 2, "rollout.nnodes": 2, "trainer.nnodes": 1}),
    ("verl", {"swapped": True}, {"param_offload": True, "optimizer_offload": True}),
    ("verl", {"stack": "verl-fsdp", "tp": 1, "dp": 8, "zero": 3, "offload": 1.0},
     {"fsdp_config.offload_policy": True, "fsdp_config.param_offload": False}),
    ("verl", {"offload": 1.0, "stack": "megatron-core"}, {"optimizer_cpu_offload": True, "optimizer_offload": False}),
    ("openrlhf", {"swapped": True}, {"ds.enable_sleep": True}),
    ("openrlhf", {"rollout_tp": 4, "rollout_gpus": 8}, {"vllm.num_engines": 2, "vllm.tensor_parallel_size": 4}),
])
def test_a_framework_is_told_in_its_own_keys(given: dict[str, Given], target: str, changed: dict[str, Any],
                                             told: dict[str, object]) -> None:
    settings = settings_of(work_of(given, target, **changed), EMITTERS[target].table)
    found = {end: value for key, value in settings.items() for end in told if key.endswith(end)}
    assert found
    assert all(told[end] == value for end, value in found.items())


@pytest.mark.parametrize(("target", "changed", "why"), [
    ("verl", {"rollout_node": "l40s-8x"}, "all its nodes are of one type"),
    ("verl", {"recompute": "selective"}, "every layer whole, or none"),
    ("openrlhf", {"rollout_engine": "sglang"}, "it draws with vLLM"),
    ("openrlhf", {"placement": "disaggregated"}, "wait for every update"),
])
def test_what_a_framework_cannot_be_told_is_refused_by_name(given: dict[str, Given], target: str,
                                                            changed: dict[str, Any], why: str) -> None:
    with pytest.raises(CannotExpress, match=why):
        settings_of(work_of(given, target, **changed), EMITTERS[target].table)


def test_a_value_that_is_not_the_plans_is_named(given: dict[str, Given]) -> None:
    work = work_of(given, "verl")
    assert list(differences(work, {"prompts": 64})) == []
    assert list(differences(work, {"prompts": 65})) == ["prompts is 65, the plan has 64"]


@pytest.mark.parametrize("framework", ["openrlhf", "trl-grpo"])
def test_a_plan_of_deepspeed_is_not_told_to_verl_as_one_of_fsdp(given: dict[str, Given], framework: str) -> None:
    planned = given[framework].placed.model_copy(update={"stack": "deepspeed"})
    with pytest.raises(CannotExpress, match="trainer: deepspeed"):
        launched(replace(given[framework], placed=planned), CATALOG, "verl", "slurm")
