"""A line that starts a script on Hugging Face's Trainer: run_clm.py, train.py with a model and TrainingArguments."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.launchers import launched
from planner.scenario.configs.readers import trl
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source, beside, source_of

OWN = ("per_device_train_batch_size", "num_train_epochs", "gradient_accumulation_steps", "max_steps")
"""Of TrainingArguments, any of which tells of a script that trains."""
STACKS = ("unsloth", "trl")
"""Of what the script imports, the first."""
SCRATCH = "config_name"
"""The model whose sizes a script trains from scratch (run_clm.py), where it names no weights."""


def tells(source: Source) -> bool:
    """Say whether it is one: a model and the Trainer's arguments on a line that no other kind is told by."""
    return source.form == "command" and (source.has("model_name_or_path") or source.has(SCRATCH)) and any(
        map(source.has, OWN)) and not (
        trl.tells(source) or source.has("finetuning_type") or source.has("stage"))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision and recompute."""
    script = _imports(reading.source)
    reading.under("config")
    trainer.refuse_unmodeled(reading)
    scratch = not reading.source.has("model_name_or_path")
    reading.put("workload.model", reading.text("model_name_or_path", SCRATCH), "model_name_or_path")
    adapted = reading.on("use_peft", "use_lora", "lora_enable", "lora") or reading.source.has("lora_r")
    four = reading.on("load_in_4bit", "q_lora", "qlora") or reading.text("bits") == "4"
    if adapted or four:
        trainer.adapter(reading, "qlora" if four else "lora", "lora_r", "use_peft")
    elif scratch:
        reading.put("workload.method", "pretrain", SCRATCH)
    else:
        reading.tuned("model_name_or_path")
    trainer.arguments(reading, ("block_size", "model_max_length", "max_seq_length", "max_length", "max_source_length",
                                "cutoff_len"), "false", recomputes=reading.on("gradient_checkpointing"))
    reading.gpus = launched(reading)
    trainer.sharding(reading, "accelerate-fsdp" if reading.source.has("fsdp") else
                     next((stack for stack in STACKS if stack in script), "hf-peft"))


def _imports(source: Source) -> set[str]:
    """Return the modules that the script of a line imports, where it lies beside it."""
    paths = [path for word in source.every_word() if word.endswith(".py") and (path := beside(source, word))]
    return {word.partition(".")[0] for path in paths for word in source_of(str(path)).words}


READER = Reader("a line of Hugging Face's Trainer", tells, read)
