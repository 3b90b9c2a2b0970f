"""TRL's YAML of its `sft` script (SFTConfig and ModelConfig beside the Trainer's arguments)."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source


def tells(source: Source) -> bool:
    """Say whether it is one: a model under the Trainer's name, without LLaMA-Factory's stage and tuning."""
    return source.form in ("yaml", "json") and source.has("model_name_or_path") and not (
        source.has("finetuning_type") or source.has("stage") or source.has("infer_backend"))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision and recompute."""
    reading.put("workload.model", reading.text("model_name_or_path"), "model_name_or_path")
    four = reading.on("load_in_4bit")
    if reading.on("use_peft"):
        trainer.adapter(reading, "qlora" if four else "lora", "lora_r", "use_peft")
        trainer.adapted(reading, "lora_target_modules", experts=True)
    else:
        trainer.adapter(reading, "full", "lora_r", "no use_peft")
    length = reading.number("max_length", "max_seq_length", "max_seq_len")
    reading.put("workload.sequence_length", length or 1024, "max_length")
    if length is None:
        reading.defaults.append("max_length 1024")
    trainer.batch(reading, "per_device_train_batch_size", default=8)
    trainer.precision(reading)
    trainer.optimizer(reading, "optim")
    asked = reading.word("gradient_checkpointing")
    trainer.recompute(reading, asked != "false", "gradient_checkpointing")
    if asked is None:
        reading.defaults.append("gradient_checkpointing true")
    if reading.on("use_liger_kernel", "use_liger"):
        reading.put("workload.loss", "fused", "use_liger_kernel")
    trainer.steps(reading)
    trainer.sharding(reading, "trl")


READER = Reader("a TRL config", tells, read)
