"""Python scripts on Hugging Face's Trainer: transformers, PEFT, TRL and Unsloth, by the keywords of their classes."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.launchers import launched
from planner.scenario.configs.readers import trl
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

TRAINERS = {"SFTTrainer": None, "Trainer": None, "Seq2SeqTrainer": None, "UnslothTrainer": None, "DPOTrainer": "dpo",
            "KTOTrainer": "kto", "ORPOTrainer": "orpo", "CPOTrainer": "simpo", "RewardTrainer": "reward-model",
            "GRPOTrainer": "grpo", "RLOOTrainer": "rloo"}
"""Classes that train -> the method; none is tuning on samples."""
RECOMPUTING = ("SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "RewardConfig", "RLOOConfig")
"""Of TRL, whose configs recompute unless they are told not to."""
LENGTHS = ("max_seq_length", "max_length", "model_max_length", "block_size", "cutoff_len")


def _called(source: Source, *names: str) -> str | None:
    """Return which of some classes a script calls."""
    ends = [word.rpartition(".")[2] for word in source.words]
    return next((name for name in names if name in ends), None)


def tells(source: Source) -> bool:
    """Say whether it is one: a class that trains, and a batch of the Trainer's."""
    return source.form == "python" and _called(source, *TRAINERS) is not None


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision and recompute."""
    source = reading.source
    trainer.refuse_unmodeled(reading)
    name = reading.text("model_name_or_path", "model_name", "model_id", "base_model", "pretrained_model_name_or_path")
    if name is None and not str(source.keys.get("model", "$")).startswith("$"):  # else it is the object
        name = reading.text("model")
    reading.put("workload.model", name, "model_name")
    by = _called(source, *TRAINERS) or "Trainer"
    unsloth = any(word.partition(".")[0] == "unsloth" for word in source.words)
    four = reading.on("load_in_4bit") or "4bit" in (name or "").lower()
    if _called(source, "LoraConfig", "get_peft_model"):
        trainer.adapter(reading, "qlora" if four else "lora", "r", "LoraConfig")
        if reading.number("r") is None:
            reading.put("workload.lora_rank", 16 if unsloth else 8, "r")
            reading.defaults.append(f"r {reading.values['workload.lora_rank']}")
        trainer.adapted(reading, "target_modules", experts=True)
    else:
        reading.put("workload.method", "full", "no LoraConfig")
    moved = unsloth and reading.word("use_gradient_checkpointing") in ("unsloth", "true", None)
    recomputes = moved or reading.on("gradient_checkpointing", "use_gradient_checkpointing") or (
        reading.word("gradient_checkpointing") is None and _called(source, *RECOMPUTING) is not None)
    trainer.arguments(reading, LENGTHS, str(recomputes).lower(), recomputes=recomputes)
    if moved:
        reading.axis("offload_activations", 1, "use_gradient_checkpointing")
    reading.gpus = launched(reading)
    method = TRAINERS[by]
    if method in ("grpo", "rloo"):
        trl.drawing(reading, method, "the trainer")
        return
    if method is not None:
        trainer.preferences(reading, method, by, precomputed="precompute_ref_log_probs")
    trainer.sharding(reading, "unsloth" if unsloth else "trl" if by not in ("Trainer", "Seq2SeqTrainer") else "hf-peft")


READER = Reader("a Python script of transformers, TRL or Unsloth", tells, read)
