"""LLM Foundry's YAML (scripts/train/yamls): batch of all GPUs, micro-batch of one, FSDP, duration."""

from __future__ import annotations

import re

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SIZES = {"layers": "n_layers", "hidden": "d_model", "heads": "n_heads", "vocab": "vocab_size"}
_DURATION = re.compile(r"(\d[\d_]*)(ba|tok|ep)")
ZERO = {"full_shard": 3, "shard_grad_op": 2, "no_shard": 0}


def tells(source: Source) -> bool:
    """Say whether it is one: a batch of all GPUs, and one of each, under its names."""
    return source.form == "yaml" and source.has("global_train_batch_size") and any(
        map(source.has, ("device_train_microbatch_size", "max_duration")))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision, recompute and duration."""
    named = reading.text("model.pretrained_model_name_or_path", "variables.model_name_or_path", "model_name")
    reading.put("workload.model", named, "model.pretrained_model_name_or_path")
    if named is None:
        reading.shape = {name: size for name, key in SIZES.items()
                         if (size := reading.number(f"model.{key}")) is not None}
    tuned = (reading.text("train_loader.name") or "") == "finetuning"
    lora = reading.source.has("model.peft_config")
    reading.put("workload.method", "lora" if lora else "full" if tuned else "pretrain", "train_loader.name")
    if lora:
        reading.put("workload.lora_rank", reading.number("model.peft_config.r"), "model.peft_config.r")
    reading.put("workload.sequence_length", reading.number("max_seq_len", "variables.max_seq_len",
                                                           "train_loader.dataset.max_seq_len"), "max_seq_len")
    reading.put("workload.global_batch", reading.number("global_train_batch_size", "variables.global_train_batch_size"),
                "global_train_batch_size")
    micro = reading.text("device_train_microbatch_size")
    reading.axis("mbs", micro if micro and micro.isdecimal() else None, "device_train_microbatch_size")
    strategy = reading.word("fsdp_config.sharding_strategy") or "full_shard"
    reading.axis("zero", ZERO.get(strategy, 3), "fsdp_config.sharding_strategy")
    trainer.recompute(reading, reading.on("fsdp_config.activation_checkpointing"),
                      "fsdp_config.activation_checkpointing")
    if reading.on("fsdp_config.activation_cpu_offload"):
        reading.axis("offload_activations", 1, "fsdp_config.activation_cpu_offload")
    if reading.word("precision") in ("amp_fp8", "amp_fp16", "fp32"):
        reading.put("workload.precision", (reading.word("precision") or "").removeprefix("amp_"), "precision")
    lasts = _DURATION.fullmatch(reading.text("max_duration") or "")
    if lasts is not None:
        count = int(lasts.group(1))
        reading.steps = count if lasts.group(2) == "ba" else None
        if lasts.group(2) == "tok":
            reading.put("workload.tokens", count, "max_duration")
        elif lasts.group(2) == "ep":
            reading.of_samples = {"workload.epochs": count}
    reading.put("workload.stack", "llm-foundry", "the kind of file")


READER = Reader("an LLM Foundry config", tells, read)
