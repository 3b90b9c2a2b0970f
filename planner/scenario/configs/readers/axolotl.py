"""axolotl's YAML (docs.axolotl.ai/docs/config-reference)."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

METHODS = {"dpo": "dpo", "ipo": "dpo", "kto": "kto", "orpo": "orpo", "simpo": "simpo"}
"""Of `rl`; IPO is DPO with another loss."""


def tells(source: Source) -> bool:
    """Say whether it is one: `base_model` is axolotl's own name."""
    return source.form == "yaml" and source.has("base_model")


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision and recompute."""
    prefers = METHODS.get(reading.word("rl") or "", "reward-model" if reading.on("reward_model") else None)
    if reading.word("rl") is not None and prefers is None:
        raise reading.wrong(("rl",), reading.text("rl"), f"{', '.join(METHODS)}, which are estimated")
    trainer.refuse_unmodeled(reading)
    reading.put("workload.model", reading.text("base_model"), "base_model")
    if reading.word("adapter"):
        trainer.counted_more(reading, "load_in_8bit", "the base is counted in 16 bits")
    kind = reading.word("adapter")
    four = reading.on("load_in_4bit")
    if kind in ("lora", "qlora"):
        trainer.adapter(reading, "qlora" if four or kind == "qlora" else "lora", "lora_r", "adapter")
        reading.get("lora_target_linear")
        trainer.adapted(reading, "lora_target_modules", experts=False, more="lora_target_parameters")
    elif kind:
        raise reading.wrong(("adapter",), kind, "lora, qlora or nothing")
    else:
        pretrains = reading.source.has("pretraining_dataset")
        reading.taken |= {key for key in reading.source.keys if key.startswith("pretraining_dataset")}
        trainer.adapter(reading, "pretrain" if pretrains else "full", "lora_r", "no adapter")
    reading.put("workload.sequence_length", reading.number("sequence_len"), "sequence_len")
    trainer.batch(reading, "micro_batch_size", default=1)
    trainer.precision(reading, "bf16", "bfloat16")
    trainer.optimizer(reading, "optimizer")
    _recompute(reading)
    plugins = str(reading.get("plugins") or "")
    if reading.on("liger_fused_linear_cross_entropy", "cut_cross_entropy") or (
            "CutCrossEntropyPlugin" in plugins and reading.word("cut_cross_entropy") != "false"):
        reading.put("workload.loss", "fused", "cut_cross_entropy")
    trainer.steps(reading)
    if prefers is not None:
        trainer.preferences(reading, prefers, "rl" if reading.word("rl") else "reward_model",
                            precomputed="precompute_ref_log_probs")
    split = reading.degree("tp", "tensor_parallel_size")
    reading.degree("ep", "expert_parallel_size")
    reading.degree("cp", "context_parallel_size", "sequence_parallel_degree")
    if split > 1:
        reading.counted.append("tensor_parallel_size: as on FSDP2 alone, on which axolotl splits layers")
    trainer.sharding(reading, "axolotl" if split == 1 else "fsdp2")
    copies, shards = reading.number("dp_replicate_size"), reading.number("dp_shard_size")
    if copies and copies > 1 and shards:
        reading.axis("shard", shards, "dp_shard_size")


def _recompute(reading: Reading) -> None:
    asked = reading.word("gradient_checkpointing")
    moved = reading.on("activation_offloading") or asked in ("offload", "unsloth", "offload_disk")
    trainer.recompute(reading, moved or asked == "true", "gradient_checkpointing")
    if moved:
        reading.axis("offload_activations", 1, "gradient_checkpointing")


READER = Reader("an axolotl config", tells, read)
