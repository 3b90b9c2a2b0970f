"""DeepSpeed's JSON (deepspeed.ai/docs/config-json): batch, ZeRO stage, offload and precision, and no model."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source


def tells(source: Source) -> bool:
    """Say whether it is one: ZeRO or a batch under DeepSpeed's names, at the top."""
    return source.form in ("json", "yaml") and not (source.has("compute_environment") or source.has("num_layers")
                                                or source.has("num-layers")) and (
        source.has("zero_optimization") or source.has("train_micro_batch_size_per_gpu"))


def zero(reading: Reading, prefix: str = "") -> None:
    """Read the ZeRO stage and what is offloaded."""
    stage = reading.get(f"{prefix}zero_optimization.stage")
    if stage is not None and str(stage) not in "0123":
        raise reading.wrong((f"{prefix}zero_optimization.stage",), stage, "0, 1, 2 or 3")
    reading.axis("zero", stage if stage is not None else 0, f"{prefix}zero_optimization.stage")
    for what, axis in (("optimizer", "offload_optimizer"), ("param", "offload_parameters")):
        key = f"{prefix}zero_optimization.offload_{what}"
        share = reading.get(f"{key}.ratio")
        trainer.offload(reading, axis, f"{key}.device", share if share is not None and what == "optimizer" else 1)
    if reading.on(f"{prefix}zero_optimization.cpu_offload"):
        reading.axis("offload_optimizer", 1, f"{prefix}zero_optimization.cpu_offload")


def read(reading: Reading) -> None:
    """Read batch, sharding, offload and precision."""
    reading.tuned("zero_optimization")
    reading.put("workload.stack", "deepspeed", "zero_optimization")
    zero(reading)
    micro = reading.number("train_micro_batch_size_per_gpu")
    reading.axis("mbs", micro, "train_micro_batch_size_per_gpu")
    reading.accumulation = reading.number("gradient_accumulation_steps")
    whole = reading.number("train_batch_size")
    reading.put("workload.global_batch", whole, "train_batch_size")
    if whole and micro and reading.accumulation and whole % (micro * reading.accumulation) == 0:
        reading.gpus = whole // (micro * reading.accumulation)
    if reading.on("fp16.enabled"):
        reading.put("workload.precision", "fp16", "fp16.enabled")
    elif reading.get("bf16.enabled", "bfloat16.enabled") is False:
        reading.put("workload.precision", "fp32", "bf16.enabled")


READER = Reader("a DeepSpeed config", tells, read)
