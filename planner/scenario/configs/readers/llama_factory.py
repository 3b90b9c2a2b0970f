"""LLaMA-Factory's YAML, or line (its examples/train_* and hparams)."""

from __future__ import annotations

from planner.scenario.configs import serving, trainer
from planner.scenario.configs.readers import megatron
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

STAGES = {"sft": "full", "pt": "pretrain", "dpo": "full", "kto": "full", "rm": "full"}
"""Stages that are estimated, and the method where all weights train."""
LOSSES = {"orpo": "orpo", "simpo": "simpo", "sigmoid": "dpo", "hinge": "dpo", "ipo": "dpo", "kto_pair": "dpo"}
"""Of `pref_loss` -> the method of stage dpo."""
MEGATRON = ("tensor-model-parallel-size", "pipeline-model-parallel-size", "expert-model-parallel-size")
"""Degrees of its Megatron backend, any of which tells of it."""


def tells(source: Source) -> bool:
    """Say whether it is one: a model under the Trainer's name, and LLaMA-Factory's own stage or kind of tuning."""
    return source.form in ("yaml", "json", "command") and source.has("model_name_or_path") and any(
        source.has(key) for key in ("finetuning_type", "stage", "infer_backend"))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision and recompute."""
    if reading.source.has("infer_backend") and not reading.source.has("stage"):
        _serves(reading)
        return
    trainer.refuse_unmodeled(reading)
    reading.put("workload.model", reading.text("model_name_or_path"), "model_name_or_path")
    stage = reading.word("stage") or "sft"
    if stage not in STAGES:
        raise reading.wrong(("stage",), stage, f"a stage that is estimated ({', '.join(STAGES)})")
    _tuning(reading, stage)
    length = reading.number("cutoff_len")
    reading.put("workload.sequence_length", length or 2048, "cutoff_len")
    if length is None:
        reading.defaults.append("cutoff_len 2048")
    trainer.batch(reading, "per_device_train_batch_size", default=8)
    if reading.number("quantization_bit") == 8:
        reading.counted.append("quantization_bit 8: the base is counted in 16 bits, which is more than it takes")
    trainer.counted_more(reading, "pure_bf16", "weights and optimizer are counted in mixed precision")
    trainer.precision(reading)
    trainer.optimizer(reading, "optim")
    if reading.on("enable_liger_kernel"):
        reading.put("workload.loss", "fused", "enable_liger_kernel")
    trainer.steps(reading)
    if stage in ("dpo", "kto", "rm"):
        loss = reading.word("pref_loss") or "sigmoid"
        if stage == "dpo" and loss not in LOSSES:
            raise reading.wrong(("pref_loss",), loss, ", ".join(LOSSES))
        method = LOSSES[loss] if stage == "dpo" else "reward-model" if stage == "rm" else stage
        trainer.preferences(reading, method, "stage", copied="ref_model")
    if any(reading.source.has(_megatron(key)) for key in MEGATRON):
        reading.put("workload.stack", "megatron-core", "the degrees of Megatron, which mcore_adapter trains by")
        megatron.parallelism(reading, _megatron)
        return
    # LLaMA-Factory recomputes unless it is told not to
    trainer.recompute(reading, not reading.on("disable_gradient_checkpointing"), "disable_gradient_checkpointing")
    trainer.sharding(reading, "unsloth" if reading.on("use_unsloth") else "llama-factory")


def _tuning(reading: Reading, stage: str) -> None:
    tuning = reading.word("finetuning_type") or "lora"
    bits = reading.number("quantization_bit")
    if tuning == "lora":
        trainer.adapter(reading, "qlora" if bits == 4 else "lora", "lora_rank", "finetuning_type")
        if reading.number("lora_rank") is None:
            reading.put("workload.lora_rank", 8, "lora_rank")
            reading.defaults.append("lora_rank 8")
        trainer.adapted(reading, "lora_target", experts=True)
    elif tuning in ("full", "freeze"):
        trainer.adapter(reading, STAGES[stage], "lora_rank", "finetuning_type")
        if tuning == "freeze":
            reading.put("workload.trained_layers", reading.number("freeze_trainable_layers") or 2,
                        "freeze_trainable_layers")
    else:
        raise reading.wrong(("finetuning_type",), tuning, "lora, full or freeze")


def _serves(reading: Reading) -> None:
    backend = reading.word("infer_backend") or "huggingface"
    if backend not in ("vllm", "sglang"):
        raise reading.wrong(("infer_backend",), backend, "an engine that is estimated (vllm, sglang): planner estimate "
                            "--model with --input and --output asks for one")
    reading.put("workload.engine", backend, "infer_backend")
    serving.model(reading, reading.text("model_name_or_path"), "model_name_or_path")
    serving.lengths(reading, reading.number("vllm_maxlen", "sglang_maxlen"), "vllm_maxlen")
    reading.gpus = 1


def _megatron(name: str) -> str:
    return name.replace("-", "_")


READER = Reader("a LLaMA-Factory config", tells, read)
