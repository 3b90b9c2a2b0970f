"""LLaMA-Factory's YAML of its version 1 (examples/v1): blocks for adapters, quantization and how it is spread."""

from __future__ import annotations

from planner.errors import InputError
from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SPREAD = {"fsdp2": "llama-factory", "deepspeed": "deepspeed", "ddp": "llama-factory"}
"""Of `dist_config` -> the stack."""


def tells(source: Source) -> bool:
    """Say whether it is one: a class of model, and a block of it."""
    return source.form == "yaml" and source.has("model", "model_class") and any(
        map(source.has, ("dist_config", "kernel_config", "peft_config")))


def read(reading: Reading) -> None:
    """Read model, method, batch, length, sharding and what is recomputed."""
    reading.put("workload.model", reading.text("model"), "model")
    kind = reading.word("peft_config.name")
    if kind not in (None, "lora", "freeze"):
        raise reading.wrong(("peft_config.name",), kind, "lora or freeze")
    if kind == "lora":
        four = reading.number("quant_config.quantization_bit") == 4
        trainer.adapter(reading, "qlora" if four else "lora", "peft_config.r", "peft_config.name")
        trainer.adapted(reading, "peft_config.target_modules", experts=True)
    else:
        reading.put("workload.method", "full", "no peft_config")
        if kind == "freeze":
            reading.put("workload.trained_layers", reading.number("peft_config.freeze_trainable_layers") or 2,
                        "peft_config.freeze_trainable_layers")
    reading.put("workload.sequence_length", reading.number("cutoff_len"), "cutoff_len")
    reading.axis("mbs", reading.number("micro_batch_size") or 1, "micro_batch_size")
    reading.put("workload.global_batch", reading.number("global_batch_size"), "global_batch_size")
    reading.accumulation = 1
    spread = reading.word("dist_config.name") or "ddp"
    if spread not in SPREAD:
        raise reading.wrong(("dist_config.name",), spread, ", ".join(SPREAD))
    reading.put("workload.stack", SPREAD[spread], "dist_config.name")
    if spread == "deepspeed" and not trainer.deepspeed(reading, "dist_config.config_file"):
        raise InputError("dist_config.config_file: missing, and with it the ZeRO stage", file=reading.source.file)
    if spread != "deepspeed":
        reading.axis("zero", 3 if spread == "fsdp2" else 0, "dist_config.name")
    reading.degree("cp", "cp_size")
    reading.degree("ep", "dist_config.ep_size")
    trainer.steps(reading)


READER = Reader("a config of LLaMA-Factory's version 1", tells, read)
