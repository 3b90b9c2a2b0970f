"""ms-swift's own parser of its YAML for GRPO, on the config of a small model that the check writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import torch.distributed

from planner.launch.checks.ms_swift import arguments
from planner.launch.checks.small import CONFIG
from planner.launch.checks.started import started
from planner.launch.checks.trainer import sharded

# with DeepSpeed it joins a group of processes as it reads: one process stands for it
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that it comes to."""
    with TemporaryDirectory() as place:
        (Path(place) / "config.json").open("w").write(json.dumps(CONFIG))
        call = started(folder, "train.sh", "swift", environment={"MODEL": place, "CHECKPOINTS": place})
        assert call.words[0] == "rlhf", call.words
        before = Path.cwd()
        os.chdir(folder)
        try:
            args = arguments("rlhf", call.words[1:])
        finally:
            os.chdir(before)
    training = args.training_args
    ranks = int(call.environment["NPROC_PER_NODE"]) * int(call.environment["NNODES"])
    micro, batches = training.per_device_train_batch_size, training.gradient_accumulation_steps
    answers = micro * ranks * batches
    assert training.generation_batch_size == answers, f"{training.generation_batch_size} answers, {answers} a step"
    found = sharded(training)
    if args.deepspeed:
        said = args.deepspeed["zero_optimization"]
        found = {"zero": said["stage"], "offload": float(bool(said.get("offload_optimizer")))}
    found.pop("no_sync", None)
    found.pop("offload_parameters", None)
    how = training.fsdp_config or {} if training.fsdp else {}
    recomputed = training.gradient_checkpointing or how.get("activation_checkpointing")
    loss = args.loss_type[0] if isinstance(args.loss_type, list) else args.loss_type
    assert args.vllm_mode == "colocate", args.vllm_mode
    return {**found, "trainer": "deepspeed" if args.deepspeed else "fsdp", "tp": 1, "pp": 1, "cp": 1, "ep": 1,
            "trainer_gpus": ranks, "rollout_gpus": ranks, "placement": "colocated", "policy_lag": 0, "swapped": False,
            "recompute": "full" if recomputed else "none", "method": loss,
            "lora_rank": args.lora_rank if args.tuner_type == "lora" else 0, "quantized": args.quant_bits == 4,
            "prompts": answers // args.num_generations, "samples_per_prompt": args.num_generations,
            "max_model_len": args.vllm_max_model_len, "reference": args.beta > 0, "engine": "vllm",
            "rollout_tp": args.vllm_tensor_parallel_size, "rollout_pp": 1, "rollout_ep": 1, "rollout_dp": 1,
            "memory_fraction": args.vllm_gpu_memory_utilization}
