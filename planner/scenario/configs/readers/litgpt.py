"""litgpt's YAML (config_hub) and lines: `litgpt finetune_lora meta-llama/Llama-3.2-1B --train.micro_batch_size 2`."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

VERBS = {"finetune": "lora", "finetune_lora": "lora", "finetune_full": "full", "pretrain": "pretrain"}
FOUR_BITS = "bnb.nf4"
PLACES = {"lora_query": "q", "lora_key": "k", "lora_value": "v", "lora_projection": "o", "lora_mlp": "mlp"}
"""Switches of modules, of which queries and values are on where nothing is said."""


def tells(source: Source) -> bool:
    """Say whether it is one: its program, or its block of training beside a model of its own names."""
    if source.form == "command":
        return source.words[:1] == ("litgpt",) and source.words[1:2] != ("serve",)
    return source.form == "yaml" and source.has("train.micro_batch_size") and (
        source.has("checkpoint_dir") or source.has("model_name"))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, precision and steps."""
    words = reading.source.words
    name = reading.text("checkpoint_dir", "model_name") or next(iter(words[2:3]), None)
    parts = (name or "").removeprefix("checkpoints/")
    reading.put("workload.model", parts or None, "checkpoint_dir")
    verb = VERBS.get(next(iter(words[1:2]), ""), "lora" if reading.source.has("lora_r") else
                     "pretrain" if reading.source.has("model_name") else "full")
    four = (reading.word("quantize") or "").startswith(FOUR_BITS)
    trainer.adapter(reading, "qlora" if verb == "lora" and four else verb, "lora_r", "the program")
    if verb == "lora":
        if reading.number("lora_r") is None:
            reading.put("workload.lora_rank", 8, "lora_r")
            reading.defaults.append("lora_r 8")
        on = [place for key, place in PLACES.items()
              if reading.on(key) or (place in "qv" and reading.word(key) is None)]
        reading.put("workload.lora_targets", "+".join(on), "lora_query")
    length = reading.number("train.max_seq_length")
    reading.put("workload.sequence_length", length, "train.max_seq_length")
    micro = reading.number("train.micro_batch_size") or 1
    reading.axis("mbs", micro, "train.micro_batch_size")
    devices, nodes = reading.number("devices") or 1, reading.number("num_nodes") or 1
    reading.gpus = devices * nodes
    whole = reading.number("train.global_batch_size")
    reading.put("workload.global_batch", whole, "train.global_batch_size")
    reading.accumulation = 1
    reading.axis("zero", 3 if reading.gpus > 1 else 0, "devices")
    if (reading.word("precision") or "").startswith(("16", "32")):
        reading.put("workload.precision", "fp16" if "16" in (reading.word("precision") or "") else "fp32", "precision")
    trainer.recompute(reading, reading.gpus > 1 and verb != "pretrain", "devices, by which its FSDP recomputes")
    reading.steps = reading.number("train.max_steps")
    tokens = reading.get("train.max_tokens")
    if tokens is not None:
        reading.put("workload.tokens", int(float(str(tokens))), "train.max_tokens")
    reading.of_samples = {"workload.epochs": epochs} if (epochs := reading.number("train.epochs")) else {}
    reading.put("workload.stack", "litgpt", "the program")


READER = Reader("a litgpt config", tells, read)
