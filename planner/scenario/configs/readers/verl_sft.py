"""verl's supervised trainer (verl.trainer.sft_trainer): Hydra's `data.max_length=...`, by FSDP or by Megatron."""

from __future__ import annotations

from planner.scenario.configs import reinforced, trainer
from planner.scenario.configs.launchers import launched
from planner.scenario.configs.readers import verl
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

MODEL = ("model.path", "model.partial_pretrain")
DEGREES = (("tp", "tensor_model_parallel_size"), ("pp", "pipeline_model_parallel_size"),
           ("cp", "context_parallel_size"), ("ep", "expert_model_parallel_size"))


def tells(source: Source) -> bool:
    """Say whether it is one: its model and its data, and no policy."""
    return any(map(source.has, MODEL)) and source.has("data.train_files") and not verl.tells(source)


def read(reading: Reading) -> None:
    """Read model, adapters, batch, length, degrees and GPUs."""
    reading.put("workload.model", reading.text(*MODEL), MODEL[0])
    rank = reinforced.rank_of(reading, "model.lora_rank")
    reading.put("workload.method", "lora" if rank else "full", "model.lora_rank" if rank else "the program")
    if rank:
        reading.put("workload.lora_rank", rank, "model.lora_rank")
        trainer.adapted(reading, "model.target_modules", experts=False)
    length = reading.number("data.max_length")
    reading.put("workload.sequence_length", length or 1024, "data.max_length")
    if length is None:
        reading.defaults.append("data.max_length 1024")
    reading.put("workload.global_batch", reading.number("data.train_batch_size") or 256, "data.train_batch_size")
    reading.axis("mbs", reading.number("data.micro_batch_size_per_gpu", "data.micro_batch_size") or 4,
                 "data.micro_batch_size_per_gpu")
    reading.accumulation = 1
    by_megatron = "engine=megatron" in reading.source.words or reading.source.has(f"engine.{DEGREES[0][1]}")
    reading.put("workload.stack", "megatron-core" if by_megatron else "verl-fsdp", "engine")
    if by_megatron:
        for axis, key in DEGREES:
            reading.degree(axis, f"engine.{key}")
        reading.axis("zero", 1, "engine")
        whole = reading.word("engine.override_transformer_config.recompute_granularity")
        reading.axis("recompute", whole or "none", "engine.override_transformer_config.recompute_granularity")
    else:
        reading.degree("cp", "engine.ulysses_sequence_parallel_size", "ulysses_sequence_parallel_size")
        reading.axis("zero", 3, "engine")
        off = reading.word("model.enable_gradient_checkpointing") == "false"
        reading.axis("recompute", "none" if off else "full", "model.enable_gradient_checkpointing")
    steps = reading.text("trainer.total_training_steps")
    reading.steps = int(steps) if steps and steps.isdecimal() else None
    reading.of_samples = {"workload.epochs": epochs} if (epochs := reading.number("trainer.total_epochs")) else {}
    reading.get("m")
    reading.gpus = launched(reading)


READER = Reader("a config of verl's supervised trainer", tells, read)
