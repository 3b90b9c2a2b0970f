"""DeepSpeed's own config class, and the Trainer's arguments beside it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("DS_ACCELERATOR", "cpu")
import deepspeed.runtime.config as runtime

from planner.launch.checks.started import started
from planner.launch.checks.trainer import NEUTRAL, trained


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that both come to."""
    call = started(folder, "train.sh", "torchrun")
    arguments, _, axes = trained(call.program, call.environment)
    data = json.loads(Path(arguments.deepspeed).read_text())
    keys = {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "bf16", "fp16",
            "zero_optimization"}
    assert set(data) <= keys, f"keys that DeepSpeed would let by: {set(data) - keys}"
    runtime.dist.get_rank = lambda *_: 0
    runtime.dist.get_world_size = lambda *_: call.world
    config = runtime.DeepSpeedConfig(data)
    zero = config.zero_config
    states, weights = zero.offload_optimizer, zero.offload_param
    away = [one for one in (states, weights) if one is not None and _device(one) != "none"]
    flash = [one for one in away if _device(one) == "nvme"]
    assert all(one.nvme_path for one in flash), "NVMe without its path"
    batch = (config.train_micro_batch_size_per_gpu, config.gradient_accumulation_steps)
    assert batch == (axes["micro_batch"], axes["micro_batches"]), "DeepSpeed and the Trainer differ in the batch"
    assert config.bfloat16_config.enabled == arguments.bf16, "DeepSpeed and the Trainer differ in precision"
    return {**NEUTRAL, **axes, "gpus": call.world, "dp": call.world, "global_batch": config.train_batch_size,
            "zero": config.zero_optimization_stage, "no_sync": 0, "nvme": int(bool(flash)),
            "offload": states.ratio if states in away and states is not None else 0.0,
            "offload_parameters": 1.0 if weights in away and weights is not None else 0.0}


def _device(offload: Any) -> str:  # noqa: ANN401 - the stack's own class
    return str(getattr(offload.device, "value", offload.device))
