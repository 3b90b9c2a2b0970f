"""A search held to what a target can be told finds plans whose files that target's emitter writes, of every method."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner
from planner.errors import InputError, Unsupported
from planner.launch.emitter import all_targets
from planner.launch.written import write_all
from tests.search_cases import catalog

QUESTIONS = {
    "one": {"model": "qwen3-0.6b", "on": "1x4090", "sequence_length": 8192},
    "several": {"model": "qwen3-8b", "on": "8xa100", "gpus": 8, "sequence_length": 32768, "global_batch": 8},
}
"""Short of memory, so that recompute, sharding and offload are needed."""
CASES = [(target, method, question) for target, release in sorted(catalog().releases.targets.items())
         if release.work == "training" and target in all_targets()
         for method in ("pretrain", "full", "lora", "qlora") for question in QUESTIONS]


@pytest.mark.parametrize(("target", "method", "question"), CASES)
def test_files_are_written_for_what_is_found(target: str, method: str, question: str, tmp_path: Path) -> None:
    release = catalog().releases.target(target)
    asked = {**QUESTIONS[question], "method": method, "tokens": "10M", "stack": release.stacks[0]}
    if method not in (release.methods or (method,)):
        with pytest.raises(Unsupported, match=f"{method} in {target}"):
            planner.plan(**asked, launchable=target)
        return
    found = planner.plan(**asked, launchable=target)
    if not found.assignments:
        assert found.status == "infeasible"
        return
    assert write_all(found, catalog(), tmp_path / "run")[0][1].target == target


def test_a_stack_names_its_usual_target() -> None:
    asked: dict[str, object] = {"model": "llama-3.1-8b", "tokens": "1G", "on": "dgx-h100", "gpus": 8}
    plans = [planner.plan(**asked, launchable=name) for name in ("megatron-core", "megatron-lm")]
    assert plans[0].assignments == plans[1].assignments
    assert catalog().releases.named("fsdp2") == "torchtitan"
    with pytest.raises(InputError, match="unknown target"):
        planner.plan(**asked, launchable="megatron")


def test_a_search_held_to_a_target_is_held_to_its_number_formats(tmp_path: Path) -> None:
    """torchtitan has a scale for each row, which is a stack of its own; DeepSpeed's Trainer has no fp8."""
    asked: dict[str, object] = {"model": "llama-3.1-8b", "tokens": "1G", "on": "dgx-h100", "gpus": 8,
                                "precision": "fp8"}
    found = planner.plan(**asked, launchable="torchtitan")
    assert found.assignments[0].stack == "fsdp2-rowwise"
    assert write_all(found, catalog(), tmp_path / "run")[0][1].target == "torchtitan"
    with pytest.raises(Unsupported, match=r"fp8 in deepspeed \(it has fp32"):
        planner.plan(**asked, launchable="deepspeed")
    either = planner.plan(**{**asked, "precision": ["bf16", "fp8"]}, launchable="deepspeed")
    assert either.assignments[0].layout.precision == "bf16"


def test_a_search_held_to_a_target_is_held_to_its_models(tmp_path: Path) -> None:
    """The layers of gpt-oss attend to windows and to all in turn, which Megatron's arguments do not say."""
    asked: dict[str, object] = {"model": "gpt-oss-20b", "method": "full", "tokens": "10M", "on": "dgx-h100", "gpus": 8}
    with pytest.raises(Unsupported, match=r"gpt-oss-20b in megatron-lm: layers whose .*; torchtitan, deepspeed"):
        planner.plan(**asked, launchable="megatron-lm")
    assert planner.plan(**asked).assignments[0].stack == "megatron-core"
    found = planner.plan(**asked, launchable="auto")
    assert write_all(found, catalog(), tmp_path / "run")[0][1].target == "torchtitan"


def test_megatron_offloads_the_states_of_adam_alone() -> None:
    asked: dict[str, object] = {"model": "llama-3.1-8b", "stack": "megatron-core", "node": "dgx-h100",
                                "global_batch": 64, "seq_len": 4096, "layout": "dp=8,zero=1,offload_optimizer=1"}
    assert planner.estimate(**asked).layout.offload.optimizer == 1
    with pytest.raises(InputError, match="offload needs a stack that has it"):
        planner.estimate(**asked, optimizer="sgd-momentum")


def test_what_is_asked_beside_the_layout_is_refused_before_anything_is_written() -> None:
    """No layout of a frozen copy in 16 bits can be told to TRL, and none of an optimizer that it has not."""
    asked: dict[str, object] = {"model": "qwen2.5-7b", "method": "kto", "samples": 1000, "on": "dgx-h100", "gpus": 8}
    with pytest.raises(InputError, match=r"--launchable: accelerate .*it can with --reference precomputed$"):
        planner.plan(**asked, launchable="accelerate")
    assert planner.plan(**asked, launchable="accelerate", reference="precomputed").assignments
    with pytest.raises(InputError, match=r"optimizer: muon .*it can with --optimizer adamw$"):
        planner.plan(**asked, launchable="axolotl", optimizer="muon")


def test_a_service_is_held_to_an_engine() -> None:
    with pytest.raises(InputError, match="this scenario is a service: write --engine"):
        planner.plan(model="llama-3.1-8b", rate=5, on="dgx-h100", launchable="vllm")
