"""GPT-NeoX's YAML (configs/*.yml): sizes of the model, degrees, DeepSpeed's batch, ZeRO and precision."""

from __future__ import annotations

from dataclasses import replace

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SIZES = {"layers": "num_layers", "hidden": "hidden_size", "heads": "num_attention_heads", "ffn": "intermediate_size",
         "kv_heads": "num_kv_heads", "experts": "moe_num_experts"}


def _plain(source: Source) -> Source:
    """Return the config with underscores, as both ways of writing its keys are in use."""
    return replace(source, keys={key.replace("-", "_"): value for key, value in source.keys.items()})


def tells(source: Source) -> bool:
    """Say whether it is one: sizes of the model beside a degree of pipeline or model parallelism, at the top."""
    return source.form in ("yaml", "json") and (plain := _plain(source)).has(
        "num_layers", "hidden_size", "num_attention_heads") and (
            plain.has("pipe_parallel_size") or plain.has("model_parallel_size") or plain.has(
                "train_micro_batch_size_per_gpu"))


def read(reading: Reading) -> None:
    """Read model, batch, lengths, degrees, sharding, precision and recompute."""
    reading.source = _plain(reading.source)
    reading.put("workload.stack", "gpt-neox", "the kind of file")
    reading.put("workload.method", "pretrain", "the kind of file")
    reading.shape = {name: size for name, key in SIZES.items() if (size := reading.number(key)) is not None}
    reading.get("max_position_embeddings", "norm", "pos_emb", "no_weight_tying", "activation", "rotary_pct",
                "mlp_type", "use_bias_in_norms")
    reading.put("workload.sequence_length", reading.number("seq_length"), "seq_length")
    reading.axis("mbs", reading.number("train_micro_batch_size_per_gpu") or 1, "train_micro_batch_size_per_gpu")
    reading.accumulation = reading.number("gradient_accumulation_steps", "gas") or 1
    whole = reading.number("train_batch_size")
    reading.put("workload.global_batch", whole, "train_batch_size")
    pp = reading.number("pipe_parallel_size") or 1 if reading.text("pipe_parallel_size") not in (None, "0") else 1
    tp = reading.degree("tp", "model_parallel_size")
    reading.axis("pp", pp if pp > 1 else None, "pipe_parallel_size")
    each, nodes = reading.number("num_gpus"), reading.number("num_nodes")
    reading.gpus = each * (nodes or 1) if each else None
    if whole and reading.gpus is None and (copies := whole // (
            int(reading.layout["mbs"]) * reading.accumulation)) and reading.source.has("gradient_accumulation_steps"):
        reading.gpus = copies * tp * pp
    reading.axis("zero", reading.text("zero_optimization.stage") or 0, "zero_optimization.stage")
    if reading.on("zero_optimization.cpu_offload"):
        reading.axis("offload_optimizer", 1, "zero_optimization.cpu_offload")
    trainer.recompute(reading, reading.on("checkpoint_activations"), "checkpoint_activations")
    if reading.on("fp16.enabled", "fp16.fp16"):
        reading.put("workload.precision", "fp16", "fp16.enabled")
    elif reading.word("precision") in ("fp16", "fp32"):
        reading.put("workload.precision", reading.word("precision"), "precision")
    reading.steps = reading.number("train_iters")


READER = Reader("a GPT-NeoX config", tells, read)
