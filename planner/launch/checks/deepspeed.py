"""DeepSpeed's own config class, and the Trainer's arguments beside it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("DS_ACCELERATOR", "cpu")
import deepspeed.runtime.config as runtime

from planner.launch.checks.started import started
from planner.launch.checks.trainer import trained
from planner.launch.checks.words import NEUTRAL

KEYS = {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "bf16", "fp16",
        "zero_optimization"}


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that both come to."""
    call = started(folder, "train.sh", "torchrun")
    arguments, _, axes = trained(call.program, call.environment)
    states = states_of(Path(arguments.deepspeed), call.world)
    same = ("micro_batch", "micro_batches")
    assert [states[name] for name in same] == [axes[name] for name in same], "DeepSpeed and the Trainer differ in batch"
    assert states.get("precision") in (None, axes["precision"]), "DeepSpeed and the Trainer differ in format"
    return {**NEUTRAL, **axes, **states, "gpus": call.world, "dp": call.world, "no_sync": 0}


def states_of(path: Path, world: int) -> dict[str, object]:
    """Return the axes of DeepSpeed's JSON for so many processes."""
    data = json.loads(path.read_text())
    assert set(data) <= KEYS, f"keys that DeepSpeed would let by: {', '.join(sorted(set(data) - KEYS))}"
    runtime.dist.get_rank = lambda *_: 0
    runtime.dist.get_world_size = lambda *_: world
    config = runtime.DeepSpeedConfig(data)
    zero = config.zero_config
    states, weights = zero.offload_optimizer, zero.offload_param
    away = [one for one in (states, weights) if one is not None and _device(one) != "none"]
    flash = [one for one in away if _device(one) == "nvme"]
    assert all(one.nvme_path for one in flash), "NVMe without its path"
    halves = {"bf16": config.bfloat16_config.enabled, "fp16": config.float16_config.enabled}
    return {"micro_batch": config.train_micro_batch_size_per_gpu, "micro_batches": config.gradient_accumulation_steps,
            "global_batch": config.train_batch_size, "zero": config.zero_optimization_stage,
            "nvme": int(bool(flash)), "offload": states.ratio if states in away and states is not None else 0.0,
            "offload_parameters": 1.0 if weights in away and weights is not None else 0.0,
            **({"precision": next(name for name, on in halves.items() if on)} if any(halves.values()) else {})}


def _device(offload: Any) -> str:  # noqa: ANN401 - the stack's own class
    return str(getattr(offload.device, "value", offload.device))
