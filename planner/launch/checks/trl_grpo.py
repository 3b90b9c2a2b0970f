"""TRL's own parser of its GRPO script."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path

from planner.launch.checks import trainer
from planner.launch.checks.started import started


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the arguments come to."""
    call = started(folder, "train.sh", "torchrun")
    assert call.program[:2] == ["-m", "trl.scripts.grpo"], call.program
    before = Path.cwd()
    os.chdir(folder)
    try:
        _, arguments, model, *_ = import_module("trl.scripts.grpo").make_parser().parse_args_and_config(
            args=call.program[2:])
    finally:
        os.chdir(before)
    ranks, micro = call.world, arguments.per_device_train_batch_size
    answers = micro * ranks * arguments.gradient_accumulation_steps
    assert arguments.generation_batch_size == answers, f"{arguments.generation_batch_size} answers, {answers} a step"
    found = trainer.sharded(arguments)
    if arguments.deepspeed:
        said = json.loads((folder / "ds.json").read_text())["zero_optimization"]
        found = {"zero": said["stage"], "offload": float("offload_optimizer" in said)}
    found.pop("no_sync", None)
    found.pop("offload_parameters", None)
    return {**found, "trainer": "deepspeed" if arguments.deepspeed else "fsdp", "tp": 1, "pp": 1, "cp": 1, "ep": 1,
            "trainer_gpus": ranks, "rollout_gpus": ranks, "placement": "colocated", "policy_lag": 0, "swapped": False,
            "recompute": "full" if arguments.gradient_checkpointing else "none", "method": arguments.loss_type,
            "lora_rank": model.lora_r if model.use_peft else 0, "quantized": model.load_in_4bit,
            "prompts": answers // arguments.num_generations,
            "samples_per_prompt": arguments.num_generations, "max_model_len": arguments.vllm_max_model_length,
            "reference": arguments.beta > 0, "engine": "vllm", "rollout_tp": arguments.vllm_tensor_parallel_size,
            "rollout_pp": 1, "rollout_ep": 1, "rollout_dp": 1,
            "memory_fraction": arguments.vllm_gpu_memory_utilization}
