"""accelerate's YAML (`accelerate config`): machines, sharding and precision, and no model."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

PRECISIONS = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "no": "fp32"}


def tells(source: Source) -> bool:
    """Say whether it is one."""
    return source.form == "yaml" and (source.has("distributed_type") or source.has("compute_environment"))


def read(reading: Reading) -> None:
    """Read GPUs, sharding, offload and precision."""
    reading.get("compute_environment")
    kind = reading.word("distributed_type")
    reading.gpus = reading.number("num_processes")
    reading.get("num_machines")
    asked = reading.word("mixed_precision")
    if asked is not None:
        if asked not in PRECISIONS:
            raise reading.wrong(("mixed_precision",), asked, ", ".join(PRECISIONS))
        reading.put("workload.precision", PRECISIONS[asked], "mixed_precision")
    stack = "hf-peft"
    if kind == "deepspeed":
        stack = "deepspeed"
        reading.axis("zero", reading.get("deepspeed_config.zero_stage"), "deepspeed_config.zero_stage")
        reading.accumulation = reading.number("deepspeed_config.gradient_accumulation_steps")
        for what, axis in (("optimizer", "offload_optimizer"), ("param", "offload_parameters")):
            trainer.offload(reading, axis, f"deepspeed_config.offload_{what}_device")
    elif kind == "fsdp":
        stack = "accelerate-fsdp"
        if not trainer.fsdp(reading):
            reading.axis("zero", 3, "distributed_type")
    else:
        trainer.replicated(reading)
    reading.tuned("distributed_type")
    reading.put("workload.stack", stack, "distributed_type")


READER = Reader("an accelerate config", tells, read)
