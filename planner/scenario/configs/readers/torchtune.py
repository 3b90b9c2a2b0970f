"""torchtune's YAML (recipes/configs): parts by `_component_`, whose names say model and adapters."""

from __future__ import annotations

import re

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

COMPONENT = "model._component_"
_NAMED = re.compile(r"torchtune\.models\.(\w+)\.(?:(q?lora)_)?(\w+)")
METHODS = {"dpo": "dpo", "kto": "kto"}


def tells(source: Source) -> bool:
    """Say whether it is one: a model by its component."""
    return source.has(COMPONENT)


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, precision, recompute and offload."""
    named = _NAMED.fullmatch(reading.text(COMPONENT) or "")
    if named is None:
        raise reading.wrong((COMPONENT,), reading.text(COMPONENT), "a builder of torchtune.models")
    family, adapted, size = named.groups()
    folder = reading.text("checkpointer.checkpoint_dir", "tokenizer.path") or ""
    built = re.sub(r"(?<=\d)_(?=\d)", ".", size.removeprefix(f"{family}_"))
    family = re.sub(r"(?<=\d)_(?=\d)", ".", family)
    called = f"{family}-{built}" if not built.startswith(family) else built
    dashed = re.sub(r"(?<=[a-z])(?=\d)", "-", called, count=1).replace("_", "-")
    reading.names = (dashed, called.replace("_", "-"), *(part for part in reversed(folder.split("/")) if part))
    reading.get("tokenizer._component_", "checkpointer._component_", "tokenizer.path")
    four = adapted == "qlora" or reading.on("model.quantize_base")
    if adapted:
        reading.put("workload.method", "qlora" if four else "lora", COMPONENT)
        reading.put("workload.lora_rank", reading.number("model.lora_rank"), "model.lora_rank")
        _targets(reading)
    else:
        reading.put("workload.method", "full", COMPONENT)
    length = reading.number("tokenizer.max_seq_len", "dataset.max_seq_len")
    reading.put("workload.sequence_length", length, "tokenizer.max_seq_len")
    trainer.batch(reading, "batch_size", default=2)
    optimizer = (reading.text("optimizer._component_") or "torch.optim.AdamW").rpartition(".")[2].lower()
    trainer.optimizer_named(reading, OPTIMIZERS.get(optimizer, optimizer), "optimizer._component_")
    if reading.on("optimizer_in_bwd"):
        reading.put("workload.optimizer_in_backward", True, "optimizer_in_bwd")
    if reading.word("dtype") in ("fp16", "fp32"):
        reading.put("workload.precision", reading.word("dtype"), "dtype")
    loss = (reading.text("loss._component_") or "").rpartition(".")[2]
    reading.put("workload.loss", {"LinearCrossEntropyLoss": "chunked", "CEWithChunkedOutputLoss": "chunked"}.get(loss),
                "loss._component_")
    if (method := next((name for name in METHODS if name in loss.lower()), None)) is not None:
        trainer.preferences(reading, METHODS[method], "loss._component_")
    trainer.recompute(reading, reading.on("enable_activation_checkpointing"), "enable_activation_checkpointing")
    if reading.on("enable_activation_offloading"):
        reading.axis("offload_activations", 1, "enable_activation_offloading")
    _sharded(reading)
    reading.steps = reading.number("max_steps_per_epoch")
    epochs = reading.number("epochs") or 1
    if reading.steps:
        reading.steps *= epochs
    reading.of_samples = {"workload.epochs": epochs}
    if reading.on("dataset.packed"):
        reading.of_samples["workload.packing"] = True
    reading.put("workload.stack", "torchtune", "the kind of file")


OPTIMIZERS = {"pagedadamw8bit": "paged_adamw_8bit", "pagedadamw": "paged_adamw", "adamw8bit": "adamw_8bit",
              "adamw": "adamw", "adam": "adamw", "sgd": "sgd"}


def _targets(reading: Reading) -> None:
    """Read what has adapters: modules of attention, and switches for the feed-forward and the head."""
    said = reading.get("model.lora_attn_modules")
    modules = [str(name).replace("output_proj", "o_proj") for name in said] if isinstance(said, list) else []
    if reading.on("model.apply_lora_to_mlp"):
        modules.append("mlp")
    if reading.on("model.apply_lora_to_output"):
        reading.counted.append("apply_lora_to_output: without adapters on the head")
    if modules:
        reading.put("workload.lora_targets", "+".join(modules), "model.lora_attn_modules")


def _sharded(reading: Reading) -> None:
    tp = reading.number("tensor_parallel_dim") or 1
    if tp > 1:
        reading.axis("tp", tp, "tensor_parallel_dim")
    reading.get("device", "custom_sharded_layers")
    kept = reading.on("fsdp_reshard_after_forward") or reading.word("fsdp_reshard_after_forward") is None
    reading.axis("zero", 3 if kept else 2, "FSDP, as its distributed recipes have it")
    if reading.on("fsdp_cpu_offload"):
        reading.axis("offload_optimizer", 1, "fsdp_cpu_offload")
        reading.axis("offload_parameters", 1, "fsdp_cpu_offload")


READER = Reader("a torchtune config", tells, read)
