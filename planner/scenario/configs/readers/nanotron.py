"""nanotron's YAML (examples/config_*.yaml): model_config, parallelism, tokens."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SIZES = {"layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads",
         "ffn": "intermediate_size", "kv_heads": "num_key_value_heads", "vocab": "vocab_size"}
"""Of a model that is given by its sizes."""


def tells(source: Source) -> bool:
    """Say whether it is one: a model by its config, and its own blocks."""
    return source.has("model.model_config", "parallelism", "tokens")


def read(reading: Reading) -> None:
    """Read model, batch, lengths, degrees, sharding, recompute and steps."""
    reading.put("workload.stack", "nanotron", "the kind of file")
    reading.put("workload.method", "pretrain", "the kind of file")
    reading.shape = {name: size for name, key in SIZES.items()
                     if (size := reading.number(f"model.model_config.{key}")) is not None}
    reading.names = tuple(name for key in ("general.run", "checkpoints.resume_checkpoint_path")
                          if (name := reading.text(key)))
    reading.put("workload.sequence_length", reading.number("tokens.sequence_length"), "tokens.sequence_length")
    reading.axis("mbs", reading.number("tokens.micro_batch_size") or 1, "tokens.micro_batch_size")
    reading.accumulation = reading.number("tokens.batch_accumulation_per_replica") or 1
    reading.steps = reading.number("tokens.train_steps")
    tp, pp = reading.degree("tp", "parallelism.tp"), reading.degree("pp", "parallelism.pp")
    cp = reading.degree("cp", "parallelism.context_parallel_size")
    reading.degree("ep", "parallelism.expert_parallel_size")
    copies = reading.number("parallelism.dp") or 1
    reading.gpus = tp * pp * cp * copies
    if tp > 1:
        reading.axis("sp", int(reading.word("parallelism.tp_mode") == "reduce_scatter"), "parallelism.tp_mode")
    reading.axis("zero", reading.text("optimizer.zero_stage") or 0, "optimizer.zero_stage")
    trainer.recompute(reading, reading.on("parallelism.recompute_layer"), "parallelism.recompute_layer")
    dtype = reading.word("model.dtype")
    if dtype in ("float16", "float32"):
        reading.put("workload.precision", {"float16": "fp16", "float32": "fp32"}[dtype], "model.dtype")
    name = reading.word("optimizer.optimizer_factory.name")
    if name is not None:
        trainer.optimizer_named(reading, name, "optimizer.optimizer_factory.name")


READER = Reader("a nanotron config", tells, read)
