"""Why a row gets no prediction: what the physics does not cover, and what the row leaves out."""

from __future__ import annotations

import re

from planner.evidence.rows import TrainRun

_ADAPTER = re.compile(r"\blora\b", re.IGNORECASE)
_HYBRID = re.compile(r"mamba|nemotron-?h\b|nemotron-?3|jamba|hybrid|qwen3-next|deepseek-v|\bmoe\b|glm-?4\.5|moonlight|"
                     r"gpt-oss|bert|deberta|\bt5|t0_|-moe-|mixtral|rlhf", re.IGNORECASE)
_OPTIMIZERS = ("adamw", "adam", "decoupled_adamw", "cpu_adam", "deepspeedcpuadam")


class SkippedError(Exception):
    """The row is outside the model or not stated well enough; the message is the reason."""


def refuse(run: TrainRun) -> None:
    """Raise SkippedError for what the physics does not cover."""
    reason = _model(run) or _method(run) or _numbers(run) or _layout(run) or _offload(run)
    if reason is not None:
        raise SkippedError(reason)


def _model(run: TrainRun) -> str | None:
    if run.experts:
        return "mixture of experts is not modeled yet"
    if run.attention == "mla":
        return "multi-head latent attention is not modeled yet"
    if run.model and _HYBRID.search(run.model):
        return f"architecture of {run.model} is not modeled"
    return None


def _method(run: TrainRun) -> str | None:
    if run.method in ("lora", "qlora"):
        return f"{run.method} is not modeled yet"
    if run.method not in (None, "pretrain", "full"):
        return f"method {run.method} is not modeled"
    if run.lora_rank or _ADAPTER.search(run.notes or ""):
        return "lora is not modeled yet"
    if run.base_quantization:
        return "a quantized base is not modeled yet"
    return None


def _numbers(run: TrainRun) -> str | None:
    if run.precision in ("fp4", "nvfp4", "mxfp4"):
        return "fp4 is not modeled yet"
    if run.precision == "fp32" or run.precision_recipe == "fp32":
        return "fp32 activations are not modeled"
    if run.optimizer and run.optimizer.lower().split()[0] not in _OPTIMIZERS and not _adam8(run.optimizer):
        return f"optimizer {run.optimizer} is not modeled"
    return None


def _adam8(optimizer: str) -> bool:
    return re.match(r"adamw?(8|4)bit", optimizer, re.IGNORECASE) is not None


def _layout(run: TrainRun) -> str | None:
    if run.sharding in ("hsdp", "fsdp-no-reshard", "fsdp-shard-grad-op", "device_map"):
        return f"sharding {run.sharding} is not modeled"
    if run.seq_parallel == "ulysses":
        return "Ulysses sequence parallelism is not modeled"
    if run.attention_impl == "unfused":
        return "unfused attention is not modeled"
    return None


def _offload(run: TrainRun) -> str | None:
    if run.offload_parameters or run.offload_activations:
        return "offload of parameters or activations is not modeled"
    if run.offload_optimizer is not None and run.offload_optimizer > 1:
        return f"offload_optimizer {run.offload_optimizer:g} is not a share"
    return None
