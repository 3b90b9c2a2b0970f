"""Every key of a question counts in an estimate, or is refused by name; none is passed over in silence."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner import estimate
from planner.answer.schema import Plan
from planner.cli.estimate import command as estimate_command
from planner.cli.plan import command as plan_command
from planner.errors import InputError
from planner.scenario.flags import TABLE

NODE = "h100-sxm-2x"
TRAINING: dict[str, Any] = {"tokens": "1 G", "seq_len": 512, "global_batch": 16, "method": "full"}
OTHER_TRAINING: dict[str, Any] = {
    "model": "qwen2.5-0.5b", "method": "lora", "tokens": "2 G", "seq_len": 1024, "global_batch": 32, "mean_length": 300,
    "stack": "deepspeed", "precision": "fp16", "optimizer": "lion", "optimizer_in_backward": True, "loss": "chunked",
    "lora_rank": 64, "lora_targets": "attention", "trained_layers": 2, "gpus": 1, "confidence": 0.6,
    "launchable": "unsloth", "tuning": "lora", "reference": "copy", "samples": "9k", "epochs": 2,
    "dataset": "x.jsonl", "tokenizer": "gpt2", "packing": True, "images": 1, "audio": "3 s", "frames": 2,
    "resolution": 448, "samples_per_sequence": 2, "trained_parts": "encoder",
    "per_device_batch": 4, "grad_accum": 4}
SERVED: dict[str, Any] = {"input": {"mean": 500, "cv": 0.5}, "output": 100}
OTHER_SERVED: dict[str, Any] = {
    "model": "qwen2.5-0.5b", "rate": 9, "concurrency": 9, "input": {"mean": 500, "cv": 1.5},
    "output": {"mean": 100, "cv": 1.5}, "arrivals": "cv=3", "day": [1] * 23 + [2], "ttft": "1 s", "tpot": "50 ms",
    "users": 9, "think": "3 s", "documents": "9k", "e2e": "9 s", "percentile": "p99",
    "quantization": "fp8", "kv_cache": "fp8", "engine": "sglang", "engine_version": "0.6.0", "prefix_hits": "70%",
    "speculative": "3:0.7", "headroom": "20%", "spare_replicas": 1, "max_model_len": 900, "length_classes": 2,
    "disaggregated": "only", "gpus": 1, "confidence": 0.6, "requests": "x.csv", "adapters": 8, "spare_nodes": 1,
    "memory_fraction": 0.5, "max_sequences": 4, "max_batched_tokens": 512, "prefill_delay": 40,
    "startup": "9 min", "images_per_request": 1, "audio": "3 s", "frames": 2, "resolution": 448}
LOADS: dict[str, dict[str, Any]] = {"rate": {"rate": 5}, "concurrency": {"concurrency": 16}, "most": {},
                                     "users": {"users": 16}}
OTHER_DIFFUSION: dict[str, Any] = {
    "model": "sd3.5-medium", "method": "full", "resolution": "512x768", "frames": 2, "batch": 2, "steps": 50,
    "samples": 90, "epochs": 2, "lora_rank": 64, "quantization": "nf4", "optimizer": "prodigy", "lokr_factor": 8,
    "latents": "online", "ema": True,
    "confidence": 0.6, "gpus": 2}
OTHER_GENERATED: dict[str, Any] = {
    "model": "sd3.5-medium", "resolution": "512x768", "frames": 2, "batch": 4, "steps": 20, "samples": 90,
    "quantization": "nf4", "guidance": 1, "compile": True, "step_cache": "teacache", "rate": 9, "headroom": "20%",
    "confidence": 0.6, "gpus": 2, "epochs": 2, "ttft": "1 s"}
LEARNED: dict[str, Any] = {"method": "grpo", "prompts": 32, "samples_per_prompt": 4, "input": 200, "output": 300}
OTHER_LEARNED: dict[str, Any] = {
    "model": "qwen2.5-1.5b", "method": "ppo", "tuning": "lora", "lora_rank": 64, "steps": 50, "prompts": 64,
    "samples_per_prompt": 8, "input": 900, "output": {"mean": 300, "cv": 1.5}, "max_model_len": 4000, "reward": "30 s",
    "reward_model": "qwen2.5-1.5b", "critic": "qwen2.5-1.5b", "reference": "none", "policy_lag": 1,
    "placement": "colocated", "rollouts_on": "dgx-a100", "stack": "nemo-rl", "engine": "sglang", "gpus": 1,
    "confidence": 0.6}
CHOOSING = ("on", "provider", "region", "terms", "price_age", "deadline", "budget", "max_gpus", "max_nodes",
            "max_power", "objective", "one_provider", "homogeneous", "own", "robust", "site", "utilization", "years",
            "electricity", "price")


@cache
def estimated(base: str, model: str) -> Plan:
    """Return the estimate of a question, as JSON, once for all the keys that are set beside it."""
    return estimate(model, NODE, **json.loads(base))


def counts_or_is_refused(name: str, value: object, base: dict[str, Any], model: str = "gpt2") -> str:
    """Return what becomes of a key: counts, or refused."""
    # a step in backward has one micro-batch
    base = base | ({"layout": "mbs=16"} if name == "optimizer_in_backward" else {})
    before = estimated(json.dumps(base), model)
    asked: dict[str, Any] = {"scenario": model, **base, name: value}
    if name == "model":
        asked["scenario"] = asked.pop("model")
    try:
        after = estimate(node=NODE, **asked)
    except InputError as error:
        return "refused" if (TABLE[name].also or name) in str(error) or name in str(error) else f"fails: {error}"
    assert after != before
    return "counts"


@pytest.mark.parametrize("name", OTHER_TRAINING)
def test_a_key_of_training_counts_or_is_refused(name: str) -> None:
    refused = ("tuning", "reference", "lora_rank", "lora_targets", "samples", "dataset", "tokenizer",
               "packing", "images", "audio", "frames", "resolution", "samples_per_sequence", "trained_parts",
               "per_device_batch")  # the batch of a step is given
    expected = "refused" if name in refused else "counts"
    assert counts_or_is_refused(name, OTHER_TRAINING[name], TRAINING) == expected


@pytest.mark.parametrize("name", OTHER_DIFFUSION)
def test_a_key_of_a_diffusion_model_counts_or_is_refused(name: str) -> None:
    refused = ("frames", "epochs", "gpus", "lokr_factor")
    assert counts_or_is_refused(name, OTHER_DIFFUSION[name], {"method": "lora"}, "sdxl") == (
        "refused" if name in refused else "counts")


@pytest.mark.parametrize("name", OTHER_GENERATED)
def test_a_key_of_running_a_diffusion_model_counts_or_is_refused(name: str) -> None:
    refused = ("frames", "samples", "headroom", "epochs", "ttft")
    assert counts_or_is_refused(name, OTHER_GENERATED[name], {"method": "inference"}, "sdxl") == (
        "refused" if name in refused else "counts")


@pytest.mark.parametrize("name", OTHER_LEARNED)
def test_a_key_of_reinforcement_learning_counts_or_is_refused(name: str) -> None:
    refused = ("critic",)
    assert counts_or_is_refused(name, OTHER_LEARNED[name], LEARNED, "qwen2.5-0.5b") == (
        "refused" if name in refused else "counts")


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", OTHER_SERVED)
def test_a_key_of_a_service_counts_or_is_refused(name: str, load: str) -> None:
    found = counts_or_is_refused(name, OTHER_SERVED[name], SERVED | LOADS[load])
    assert found in ("counts", "refused")
    if name in ("input", "output", "prefix_hits", "speculative", "gpus"):
        assert found == "counts"


def test_every_key_is_tried_here() -> None:
    assert set(TABLE) == {*OTHER_TRAINING, *OTHER_SERVED, *OTHER_DIFFUSION, *OTHER_GENERATED, *OTHER_LEARNED, *CHOOSING}


@pytest.mark.parametrize("name", CHOOSING)
def test_what_only_a_choice_depends_on_is_refused(planner: Any, name: str) -> None:
    value = [] if TABLE[name].switch else [{"price_age": "3", "objective": "cost"}.get(name, "x")]
    ran = planner("estimate", "--model", "gpt2", "--node", NODE, f"--{name.replace('_', '-')}", *value)
    assert (ran.code, ran.out) == (2, "")
    assert f"--{name.replace('_', '-')}: has no effect on an estimate" in ran.err


def test_the_rank_of_adapters_counts_where_there_are_some() -> None:
    small, large = (estimate("gpt2", NODE, method="lora", lora_rank=rank) for rank in (8, 256))
    assert small.memory.peak_bytes < large.memory.peak_bytes


@pytest.mark.parametrize(("name", "value"), [("optimizer", "lion"), ("mean_length", 300),
                                             ("optimizer_in_backward", True), ("loss", "fused")])
def test_what_trains_is_refused_where_nothing_does(name: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"^{name}: applies to training.*this scenario is a service"):
        estimate("gpt2", NODE, method="inference", **{name: value})


def test_a_batch_of_what_only_runs_is_what_it_has_in_flight() -> None:
    batch, flight = (estimate("gpt2", NODE, method="inference", **{key: 64}) for key in ("global_batch", "concurrency"))
    assert batch.serving == flight.serving


def test_a_batch_within_its_tolerance_is_one_that_the_layout_divides() -> None:
    layout = {"tp": 1, "dp": 7}
    with pytest.raises(InputError, match="batch"):
        estimate("gpt2", NODE, layout, global_batch=64)
    found = estimate("gpt2", NODE, layout, global_batch="64 sequences +- 2%")
    assert found.layout.micro_batches * found.layout.dp == 63


@pytest.mark.parametrize(("key", "values"), [("precision: [bf16, fp8]", "bf16, fp8"), ("precision: [bf16]", "")])
def test_formats_to_choose_from_are_named_where_they_are_written(planner: Any, tmp_path: Path, key: str, values: str
                                                                 ) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(f"workload:\n  model: gpt2\n  tokens: 1 G\n  {key}\n")
    ran = planner("estimate", path, "--node", NODE)
    assert ran.code == (2 if values else 0)
    assert f"job.yaml:4: workload.precision: an estimate is for one format, got {values}" in ran.err or not values


def test_what_a_file_keeps_for_plans_is_said(planner: Any, tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text("workload: {kind: serving, model: gpt2, rate: 5, input: 500, output: 100, ttft: 1 s, "
                    "headroom: 20%}\nlimits: {budget: 50 USD/h}\n")
    ran = planner("estimate", path, "--node", NODE)
    assert ran.code == 0
    assert "warning: headroom of the scenario have no effect on an estimate" in ran.err
    assert planner("estimate", path, "--node", NODE, "--headroom", "10%").code == 2
    path.write_text(path.read_text().replace("ttft: 1 s", "disaggregated: only"))
    refused = planner("estimate", path, "--node", NODE)
    assert refused.code == 2
    assert "chat.yaml:1: workload.disaggregated: does nothing to this estimate" in refused.err


def test_the_commands_have_every_flag_under_the_name_of_its_key() -> None:
    for command in (plan_command, estimate_command):
        options = {option for parameter in command.params for option in parameter.opts}
        names = [*TABLE, *(flag.also for flag in TABLE.values() if flag.also)]
        assert {"--" + name.replace("_", "-") for name in names} <= options
