"""What frameworks of reinforcement learning are told, and what they refuse by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planner.answer.layout import Offload
from planner.ask.estimate import estimating
from planner.catalog.load import Catalog
from planner.jobs.posttraining.held import AXES as HELD
from planner.launch.axes import CannotExpress, settings_of
from planner.launch.check import differences
from planner.launch.emitter import ReinforcedEmitter
from planner.launch.folder import launched
from planner.launch.given import Given, estimated
from planner.launch.nearest import typed
from planner.launch.reinforced import VALUES, Reinforced, reinforced_of
from planner.scenario.configs.read import read_config
from planner.scenario.flags import NAMES
from planner.scenario.posttraining import Reward
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


LAYOUT = ("tp", "pp", "cp", "ep", "expert_tp", "dp", "zero", "recompute", "micro_batch", "sequence_parallel")
ASKED = ("tuning", "lora_rank", "max_model_len", "reward")


def work_of(given: dict[str, Given], target: str, **changed: Any) -> Reinforced:
    return otherwise(reinforced_of(given[target].placed, given[target].asked, CATALOG, target), **changed)


def otherwise(work: Reinforced, **changed: Any) -> Reinforced:
    """Return the work with parts of it changed, unchecked."""
    layout = {name: changed.pop(name) for name in LAYOUT if name in changed}
    if "offload" in changed:
        layout["offload"] = Offload(optimizer=changed.pop("offload"), to="host")
    there = {name.removeprefix("rollout_"): changed.pop(name) for name in list(changed) if name.startswith("rollout_")}
    asked = {name: changed.pop(name) for name in ASKED if name in changed}
    asked |= {name: changed[name] for name in ("prompts", "samples_per_prompt") if name in changed}
    framework = CATALOG.posttraining_law.frameworks[changed.get("framework", work.placed.framework)]
    if "reference" in changed:
        phases = [one for one in work.placed.phases if one.phase != "reference"]
        own = [phases[0].model_copy(update={"phase": "reference"})] if changed.pop("reference") else []
        changed["phases"] = (*phases, *own)
    placed = work.placed.model_copy(update={
        "layout": work.placed.layout.model_copy(update=layout),
        "rollouts": work.placed.rollouts.model_copy(update=there), **changed})
    return replace(work, placed=placed, asked=work.asked.model_copy(update=asked), framework=framework)


@pytest.mark.parametrize("target", sorted(EMITTERS))
def test_every_axis_is_named_and_written(given: dict[str, Given], target: str) -> None:
    assert set(axes_of(EMITTERS[target].table)) == set(VALUES)
    made = launched(given[target], CATALOG, target, "slurm")
    assert {"train.sh", "job.sbatch", "install.sh", "variables.sh", "README.md", "plan.json"} <= set(made.files)
    settings = settings_of(work_of(given, target), EMITTERS[target].table)
    assert {8, 3000} <= {value for value in settings.values() if isinstance(value, int)}


APART = {"placement": "disaggregated", "policy_lag": 1, "rollout_gpus": 8, "gpus": 16, "nodes": 2, "swapped": False}
MEGATRON = {"framework": "skyrl", "stack": "megatron-core", "zero": 1, "offload": 0.0}
SPLIT = {**MEGATRON, "tp": 2, "dp": 4, "sequence_parallel": True}
OTHER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "trainer": (MEGATRON, {"stack": "deepspeed"}),
    "trainer_gpus": ({}, {"trainer_gpus": 4, "gpus": 4, "rollout_gpus": 4}),
    "tp": (MEGATRON, {"tp": 8, "dp": 1}), "sp": (SPLIT, {"sequence_parallel": False}), "pp": ({}, {"pp": 2}),
    "cp": ({"cp": 1}, {"cp": 2}), "ep": ({}, {"ep": 2}), "expert_tp": ({**SPLIT, "ep": 2}, {"expert_tp": 1}),
    "zero": ({}, {"zero": 2}), "recompute": ({"recompute": "full"}, {"recompute": "selective"}),
    "offload": ({"offload": 0.0}, {"offload": 0.5}), "swapped": ({"swapped": True}, {"swapped": False}),
    "placement": ({}, APART), "policy_lag": (APART, {"policy_lag": 2}), "method": ({}, {"method": "ppo"}),
    "lora_rank": ({}, {"tuning": "lora", "lora_rank": 32}),
    "quantized": ({"tuning": "lora"}, {"tuning": "qlora"}), "prompts": ({}, {"prompts": 32}),
    "samples_per_prompt": ({}, {"samples_per_prompt": 16}), "max_model_len": ({}, {"max_model_len": 4000}),
    "packed": ({"micro_batch": 1, "micro_batch_tokens": 3000}, {"micro_batch": 2, "micro_batch_tokens": 6000}),
    "reference": ({"reference": False}, {"reference": True}), "reward": ({}, {"reward": Reward(by="model")}),
    "rollouts_node": ({}, {"rollout_node": "l40s-8x"}), "engine": ({}, {"rollout_engine": "sglang"}),
    "rollout_gpus": (APART, {"rollout_gpus": 16, "gpus": 24, "nodes": 3}),
    "rollout_tp": ({"rollout_tp": 1}, {"rollout_tp": 4}),
    "rollout_pp": ({}, {"rollout_pp": 2}), "rollout_ep": ({"rollout_tp": 4}, {"rollout_ep": 2}),
    "rollout_dp": ({"rollout_tp": 1}, {"rollout_dp": 2}), "memory_fraction": ({}, {"rollout_memory_fraction": 0.33}),
    "concurrency": ({}, {"rollout_concurrency": 77})}
"""Of each axis what a plan has, and another value; what is not stated is that of the fixture."""
UNSAID = {(target, "concurrency") for target in ("openrlhf", "trl-grpo", "ms-swift-grpo")}
"""They have no word for how many sequences an engine draws at once: all that there are, or as many as it holds."""
WHOLE = {"trainer", "tp", "sp", "swapped", "placement"}
"""Axes that a target may have no word for at all, so that it refuses already the plan that has them."""


def refusal(target: str, work: Reinforced) -> CannotExpress | None:
    try:
        EMITTERS[target].emit(work)
    except CannotExpress as error:
        return error
    return None


def test_every_axis_has_another_value() -> None:
    assert set(OTHER) == set(VALUES)


@pytest.mark.parametrize("axis", OTHER)
@pytest.mark.parametrize("target", sorted(EMITTERS))
def test_no_axis_is_dropped(given: dict[str, Given], target: str, axis: str) -> None:
    before, changes = OTHER[axis]
    base = work_of(given, target, **before)
    other = otherwise(base, **changes)
    assert base.value(axis) != other.value(axis)
    refused = refusal(target, base)
    if refused is not None:
        assert WHOLE & {axis for names in EMITTERS[target].table for axis in names if {*names} & {*refused.refused}}
        return
    refused = refusal(target, other)
    if refused is None:
        same = dict(EMITTERS[target].emit(base).files) == dict(EMITTERS[target].emit(other).files)
        assert same == ((target, axis) in UNSAID), f"{target} says nothing of {axis}"
        return
    together = next(names for names in EMITTERS[target].table if axis in names)
    assert {*together} & {*refused.refused}, f"{target} refuses {[*refused.refused]}, not {axis}"


@pytest.mark.parametrize("target", sorted(EMITTERS))
def test_what_is_refused_names_the_nearest_that_is_told(given: dict[str, Given], target: str) -> None:
    for axis, (before, changes) in OTHER.items():
        asked = work_of(given, target, **{**before, **changes})
        refused = refusal(target, asked)
        for name, one in refused.refused.items() if refused else ():
            assert typed(one.instead), (axis, name)
            assert {*one.instead} <= {*HELD, *NAMES}, f"{one.instead} is not what a question may say"
        if refused is not None and "stack" not in refused.instead:
            left = refusal(target, nearest(given, target, asked, refused.instead))
            assert left is None or not {*left.refused} & {*refused.refused}, (axis, refused.instead, left)


def nearest(given: dict[str, Given], target: str, asked: Reinforced, instead: Mapping[str, object]) -> Reinforced:
    """Return the work with the values that a refusal names."""
    said: dict[str, Any] = {{"offload_optimizer": "offload", "swap": "swapped", "engine": "rollout_engine"}.get(
        key, key): value for key, value in instead.items()}
    if "rollouts_on" in said:
        said["rollout_node"] = asked.placed.node
        del said["rollouts_on"]
    if said.get("placement") == "colocated":
        said |= {"policy_lag": 0, "rollout_gpus": asked.placed.trainer_gpus, "swapped": given[target].placed.swapped}
    if said.get("tp") == 1:
        said |= {"sequence_parallel": False, "expert_tp": None}
    if said.get("reward") == "rule":
        said["reward"] = Reward(by="rule")
    return otherwise(asked, **said)


@pytest.mark.parametrize(("target", "changed", "told"), [
    ("nemo-rl", {"stack": "nemo-rl-megatron", "tp": 4, "cp": 2, "dp": 1, "sequence_parallel": True,
                 "recompute": "full"},
     {"tensor_model_parallel_size": 4, "megatron_cfg.sequence_parallel": True, "divisible_by": 16,
      "megatron_cfg.activation_checkpointing": True, "dtensor_cfg.enabled": False}),
    ("nemo-rl", {**APART, "trainer_gpus": 8}, {"cluster.num_nodes": 2, "colocated.enabled": False, "async_engine": True,
                                               "resources.num_nodes": 1, "importance_sampling_correction": True}),
    ("verl", {"recompute": "full"}, {"enable_gradient_checkpointing": True, "recompute_granularity": "full"}),
    ("verl", {"placement": "disaggregated", "policy_lag": 2, "trainer_gpus": 8, "rollout_gpus": 16},
     {"trainer_mode": "separate_async", "num_warmup_batches": 2, "rollout.nnodes": 2, "trainer.nnodes": 1}),
    ("verl", {"swapped": True}, {"param_offload": True, "optimizer_offload": True}),
    ("verl", {"stack": "verl-fsdp", "tp": 1, "dp": 8, "zero": 3, "offload": 1.0, "sequence_parallel": False},
     {"fsdp_config.offload_policy": True, "fsdp_config.param_offload": False}),
    ("verl", {"offload": 1.0, "stack": "megatron-core"}, {"optimizer_cpu_offload": True, "optimizer_offload": False}),
    ("openrlhf", {"swapped": True}, {"ds.enable_sleep": True}),
    ("openrlhf", {"method": "reinforce"}, {"advantage.estimator": "reinforce_baseline"}),
    ("openrlhf", {"method": "reinforce", "samples_per_prompt": 1}, {"advantage.estimator": "reinforce"}),
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
    ("openrlhf", {"samples_per_prompt": 1}, "it compares several"),
    ("openrlhf", {"placement": "disaggregated"}, "wait for every update"),
])
def test_what_a_framework_cannot_be_told_is_refused_by_name(given: dict[str, Given], target: str,
                                                            changed: dict[str, Any], why: str) -> None:
    with pytest.raises(CannotExpress, match=why):
        settings_of(work_of(given, target, **changed), EMITTERS[target].table)


def test_openrlhf_brings_prompts_and_a_judge_for_a_first_start(given: dict[str, Given],
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    files = launched(given["openrlhf"], CATALOG, "openrlhf").files
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(tensor=list))
    judge: dict[str, Any] = {}
    exec(files["reward.py"], judge)
    prompt = 'What is half of 2,000? Output the final answer after "####".'
    said = [f"{prompt} It is #### 1,000.", f"{prompt} It is #### 2000", prompt]
    assert judge["reward_func"](said, [prompt] * 3, ["1000"] * 3)["rewards"] == [1.0, 0.0, 0.0]
    writes: dict[str, Any] = {}
    exec(files["data.py"].partition("place = ")[0].replace("from datasets import load_dataset", ""), writes)
    row = writes["row"]({"question": prompt, "answer": "half: #### 1,000"}, 0)
    assert row["label"] == "1000"
    assert {"input", "label"} == {*row} == {files["variables.sh"].partition(f"{name}:=")[2].partition("}")[0]
                                           for name in ("PROMPTS", "LABELS")}


def test_a_value_that_is_not_the_plans_is_named(given: dict[str, Given]) -> None:
    work = work_of(given, "verl")
    assert list(differences(work, {"prompts": 64})) == []
    assert list(differences(work, {"prompts": 65})) == ["prompts is 65, the plan has 64"]


@pytest.mark.parametrize(("framework", "stack"), [("openrlhf", "openrlhf-deepspeed"), ("trl-grpo", "deepspeed")])
def test_a_plan_of_deepspeed_is_not_told_to_verl_as_one_of_fsdp(given: dict[str, Given], framework: str, stack: str
                                                                ) -> None:
    planned = given[framework].placed.model_copy(update={"stack": stack})
    with pytest.raises(CannotExpress, match="trainer: deepspeed"):
        launched(replace(given[framework], placed=planned), CATALOG, "verl", "slurm")


@pytest.mark.parametrize("target", ["verl", "openrlhf", "nemo-rl"])
def test_within_a_job_of_ray_no_cluster_is_started(given: dict[str, Given], tmp_path: Path, target: str) -> None:
    files = launched(given[target], CATALOG, target, "ray").files
    assert '"RAY_STARTED": "1"' in files["ray_job.py"]
    # verl's task runner may be on any node, and reads the data there
    assert f"bash install.sh{'' if target == 'nemo-rl' else ' && bash data.sh'}\"]" in files["ray_job.py"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "NeMo-RL").mkdir()
    (tmp_path / "data" / "gsm8k").mkdir(parents=True)
    (tmp_path / "data" / "gsm8k" / "train.parquet").touch()
    for name in ("ray", "python3", "nvidia-smi"):
        (tmp_path / "bin" / name).write_text(f'#!/bin/bash\necho {name} $1 >> "$SAID"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    for more, said in (({}, ["ray start", "python3", "ray stop"]), ({"RAY_STARTED": "1"}, ["python3"])):
        (tmp_path / "said").unlink(missing_ok=True)
        ran = subprocess.run(["bash", "train.sh"], cwd=tmp_path, text=True, capture_output=True, check=False, env={
            **os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SAID": str(tmp_path / "said"),
            "IN_NEMO_RL": "1", **more})
        assert ran.returncode == 0, ran.stderr
        lines = [line for line in (tmp_path / "said").read_text().splitlines() if not line.startswith("nvidia-smi")]
        assert [line[:len(start)] for line, start in zip(lines, said, strict=True)] == said


@pytest.mark.parametrize("target", ["verl", "openrlhf"])
def test_a_node_without_data_writes_what_a_first_start_reads(given: dict[str, Given], tmp_path: Path, target: str
                                                             ) -> None:
    for name, text in launched(given[target], CATALOG, target, "slurm").files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "python3").write_text('#!/bin/bash\necho "${@##*/}" > "$SAID"\n')
    (tmp_path / "python3").chmod(0o755)
    for data, said in (("data/gsm8k", "data.py gsm8k"), (str(tmp_path), "")):
        (tmp_path / "train.parquet").touch()
        (tmp_path / "said").write_text("")
        subprocess.run(["bash", "data.sh"], cwd=tmp_path, check=True, env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}", "SAID": str(tmp_path / "said"), "DATA": data})
        assert (tmp_path / "said").read_text().strip() == said


@pytest.mark.parametrize("target", EMITTERS)
def test_what_is_started_is_read_back(given, target: str, tmp_path: Path):
    one = given[target]
    for name, text in launched(one, CATALOG, target, "slurm").files.items():
        (tmp_path / name).write_text(text)
    placed = one.placed
    layout = {axis: getattr(placed.layout, axis) for axis in ("tp", "pp", "cp", "dp")}
    for name in ("train.sh", "job.sbatch"):
        values, axes = read_config(str(tmp_path / name)).asked({}, {}, 8, CATALOG)
        assert {axis: int(axes[axis]) for axis in layout} == layout
        assert (axes["recompute"], int(axes["rollout_tp"])) == (placed.layout.recompute, placed.rollouts.tp)
        assert float(axes["offload_optimizer"]) == placed.layout.offload.optimizer
        assert (values["workload.placement"], values["workload.stack"]) == (placed.placement, placed.framework if (
            target != "ms-swift-grpo") else "trl")
        assert (values["workload.prompts"], values["workload.samples_per_prompt"]) == (
            placed.prompts, placed.samples_per_prompt)
        assert CATALOG.model(str(values["workload.model"])).name == placed.model
