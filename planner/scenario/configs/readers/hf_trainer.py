"""A line that starts a script on Hugging Face's Trainer: run_clm.py, train.py with a model and TrainingArguments."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.launchers import launched
from planner.scenario.configs.readers import trl
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

OWN = ("per_device_train_batch_size", "num_train_epochs", "gradient_accumulation_steps", "max_steps")
"""Of TrainingArguments, any of which tells of a script that trains."""


def tells(source: Source) -> bool:
    """Say whether it is one: a model and the Trainer's arguments on a line that no other kind is told by."""
    return source.form == "command" and source.has("model_name_or_path") and any(map(source.has, OWN)) and not (
        trl.tells(source) or source.has("finetuning_type") or source.has("stage"))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision and recompute."""
    trainer.refuse_unmodeled(reading)
    reading.put("workload.model", reading.text("model_name_or_path"), "model_name_or_path")
    adapted = reading.on("use_peft", "use_lora", "lora_enable", "lora") or reading.source.has("lora_r")
    four = reading.on("load_in_4bit", "q_lora", "qlora") or reading.text("bits") == "4"
    if adapted or four:
        trainer.adapter(reading, "qlora" if four else "lora", "lora_r", "use_peft")
    else:
        reading.tuned("model_name_or_path")
    trainer.arguments(reading, ("block_size", "model_max_length", "max_seq_length", "max_length", "max_source_length",
                                "cutoff_len"), "false", recomputes=reading.on("gradient_checkpointing"))
    reading.gpus = launched(reading)
    trainer.sharding(reading, "accelerate-fsdp" if reading.source.has("fsdp") else "hf-peft")


READER = Reader("a line of Hugging Face's Trainer", tells, read)
