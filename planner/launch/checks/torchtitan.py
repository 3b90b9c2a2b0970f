"""torchtitan's own parser and device mesh: what a config function comes to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._inductor.compile_fx

from planner.launch.checks.stand_ins import install
from planner.launch.checks.started import started

install("triton")
torch.cuda.get_device_capability = lambda *_, **__: (10, 0)
torch.cuda.is_available = lambda: True
from torchtitan.config import ConfigManager  # noqa: E402 - what stands in has to be there first
from torchtitan.distributed import ParallelDims  # noqa: E402

torch.cuda.is_available = lambda: False
_SCHEDULES = {"1F1B": "1f1b", "Interleaved1F1B": "1f1b", "GPipe": "gpipe"}
_CONVERTED = {"Float8Linear": "fp8", "MXFP8Linear": "mxfp8", "NVFP4Linear": "fp4"}


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the config comes to."""
    call = started(folder, "train.sh", "torchrun")
    assert call.program[:2] == ["-m", "torchtitan.train"], call.program
    sys.modules.pop("plan_config", None)
    sys.path.insert(0, str(folder))
    before = dict(os.environ)
    os.environ.update(call.environment)
    try:
        config = ConfigManager().parse_args(call.program[2:])
    finally:
        sys.path.remove(str(folder))
        os.environ.clear()
        os.environ.update(before)
    split = config.parallelism
    mesh = ParallelDims(
        dp_replicate=split.data_parallel_replicate_degree, dp_shard=split.data_parallel_shard_degree,
        cp=split.context_parallel_degree, tp=split.tensor_parallel_degree, pp=split.pipeline_parallel_degree,
        ep=split.expert_parallel_degree, world_size=call.world)
    return {**_degrees(config, mesh), **_batch(config, mesh), **_states(config, mesh), **_stages(config, mesh),
            "gpus": call.world, "sequence_length": config.training.seq_len, "precision": _precision(config),
            "recompute": _recompute(config), "method": "full" if config.checkpoint.initial_load_in_hf else "pretrain"}


def _degrees(config: Any, mesh: Any) -> dict[str, object]:  # noqa: ANN401 - the stack's own classes
    sequence = int(mesh.tp > 1 and config.parallelism.enable_sequence_parallel)
    return {"tp": mesh.tp, "cp": mesh.cp, "pp": mesh.pp, "dp": mesh.dp_replicate * mesh.dp_shard, "ep": mesh.ep,
            "sp": sequence}


def _batch(config: Any, mesh: Any) -> dict[str, object]:  # noqa: ANN401
    local, whole = config.training.local_batch_size, config.training.global_batch_size
    ranks = mesh.dp_replicate * mesh.dp_shard
    assert whole % (local * ranks) == 0, f"global batch {whole} is no multiple of {local} x {ranks}"
    accumulated = whole // (local * ranks)
    each = config.parallelism.pipeline_parallel_microbatch_size if mesh.pp > 1 else local
    return {"micro_batch": each, "micro_batches": accumulated * local // each, "global_batch": whole}


def _states(config: Any, mesh: Any) -> dict[str, object]:  # noqa: ANN401
    shards = mesh.dp_shard * mesh.cp
    stage = {"always": 3, "never": 2}[config.parallelism.fsdp_reshard_after_forward] if shards > 1 else 0
    away = float(config.training.enable_cpu_offload)
    groups = [group.optimizer_name.lower() for group in config.optimizer.param_groups]
    return {"zero": stage, "hsdp": mesh.dp_replicate if stage else 1, "offload": away, "offload_parameters": away,
            "offload_activations": 0.0, "nvme": 0, "optimizer": groups[0]}


def _stages(config: Any, mesh: Any) -> dict[str, object]:  # noqa: ANN401
    model = config.model_spec.model
    found: dict[str, object] = {"layers": len(model.layers), "hidden": model.dim}
    if mesh.pp == 1:
        return found | {"stages": "even"}
    parts = config.parallelism.module_fqns_per_model_part
    names = [name for part in parts for name in part]
    assert len(parts) % mesh.pp == 0, f"{len(parts)} parts for {mesh.pp} ranks"
    assert names == ["tok_embeddings", *(f"layers.{at}" for at in range(len(model.layers))), "norm", "lm_head"], names
    counts = [sum(name.startswith("layers.") for part in parts[rank::mesh.pp] for name in part)
              for rank in range(mesh.pp)]
    from torch.distributed.pipelining.schedules import get_schedule_class

    schedule = config.parallelism.pipeline_parallel_schedule
    get_schedule_class(schedule)  # raises for an unknown name
    return found | {"stages": "even" if len(set(counts)) == 1 else ", ".join(map(str, counts)),
                    "vpp": len(parts) // mesh.pp, "schedule": _SCHEDULES[schedule]}


def _precision(config: Any) -> str:  # noqa: ANN401
    # a converter has put classes of its own into the model's config
    text = repr(config.model_spec.model)
    converted = [name for word, name in _CONVERTED.items() if f"{word}." in text or f"{word}(" in text]
    plain = {"bfloat16": "bf16", "float32": "fp32"}[config.training.mixed_precision_param]
    return converted[0] if converted else plain


def _recompute(config: Any) -> str:  # noqa: ANN401
    chosen = config.activation_checkpoint
    return "none" if chosen is None else {"SelectiveAC.Config": "selective", "FullAC.Config": "full"}[
        type(chosen).__qualname__]
