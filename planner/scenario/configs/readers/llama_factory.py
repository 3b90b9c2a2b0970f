"""LLaMA-Factory's YAML (its examples/train_* and hparams)."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

STAGES = {"sft": "full", "pt": "pretrain"}
"""Stages that are estimated, and the method where all weights train."""


def tells(source: Source) -> bool:
    """Say whether it is one: a model under the Trainer's name, and LLaMA-Factory's own stage or kind of tuning."""
    return source.form in ("yaml", "json") and source.has("model_name_or_path") and (
        source.has("finetuning_type") or source.has("stage"))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision and recompute."""
    trainer.refuse_unmodeled(reading)
    reading.put("workload.model", reading.text("model_name_or_path"), "model_name_or_path")
    stage = reading.word("stage") or "sft"
    if stage not in STAGES:
        raise reading.wrong(("stage",), stage, "a stage that is estimated (sft, pt)")
    tuning = reading.word("finetuning_type") or "lora"
    bits = reading.number("quantization_bit")
    if tuning == "lora":
        trainer.adapter(reading, "qlora" if bits == 4 else "lora", "lora_rank", "finetuning_type")
        if reading.number("lora_rank") is None:
            reading.put("workload.lora_rank", 8, "lora_rank")
            reading.defaults.append("lora_rank 8")
    elif tuning in ("full", "freeze"):
        trainer.adapter(reading, STAGES[stage], "lora_rank", "finetuning_type")
        if tuning == "freeze":
            reading.put("workload.trained_layers", reading.number("freeze_trainable_layers") or 2,
                        "freeze_trainable_layers")
    else:
        raise reading.wrong(("finetuning_type",), tuning, "lora, full or freeze")
    length = reading.number("cutoff_len")
    reading.put("workload.sequence_length", length or 2048, "cutoff_len")
    if length is None:
        reading.defaults.append("cutoff_len 2048")
    trainer.batch(reading, "per_device_train_batch_size", default=8)
    if bits == 8:
        reading.counted.append("quantization_bit 8: the base is counted in 16 bits, which is more than it takes")
    trainer.counted_more(reading, "pure_bf16", "weights and optimizer are counted in mixed precision")
    trainer.precision(reading)
    trainer.optimizer(reading, "optim")
    # LLaMA-Factory recomputes unless it is told not to
    trainer.recompute(reading, not reading.on("disable_gradient_checkpointing"), "disable_gradient_checkpointing")
    if reading.on("enable_liger_kernel"):
        reading.put("workload.loss", "fused", "enable_liger_kernel")
    trainer.steps(reading)
    trainer.sharding(reading, "unsloth" if reading.on("use_unsloth") else "llama-factory")


READER = Reader("a LLaMA-Factory config", tells, read)
