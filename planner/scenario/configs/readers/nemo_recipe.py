"""Python recipes of NeMo 2 and Megatron Bridge: `llm.llama3_8b.pretrain_recipe(...)`, and what is set on them."""

from __future__ import annotations

import re
from dataclasses import replace

from planner.scenario.configs.readers.megatron import parallelism
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

_RECIPE = re.compile(r"(?:\w+\.)*?(\w+?)[._](pretrain|finetune|sft|peft)_(?:recipe|config)(?:_\w+)?")


def _recipe(source: Source) -> re.Match[str] | None:
    return next((found for word in source.words if (found := _RECIPE.fullmatch(word))), None)


def tells(source: Source) -> bool:
    """Say whether it is one, by the recipe that it calls."""
    return source.form == "python" and _recipe(source) is not None


def called(recipe: str) -> tuple[str, ...]:
    """Return what the model of a recipe may be called: llama31_405b is llama-3.1-405b."""
    plain = re.sub(r"(?<=\d)(?=\d+b\b)|_", "-", recipe)
    parted = re.sub(r"^([a-z]+)(\d)(\d)?(?=-)", lambda m: f"{m[1]}-{m[2]}{'.' + m[3] if m[3] else ''}", plain)
    return parted, plain, parted.replace("-", "", 1)


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, degrees and GPUs."""
    keys = {key.rpartition(".")[2]: value for key, value in reading.source.keys.items()}
    reading.source = replace(reading.source, keys=keys)
    found = _recipe(reading.source)
    assert found is not None
    reading.names = called(found[1])
    scheme = reading.word("peft_scheme", "peft")
    trains = "pretrain" if found[2] == "pretrain" else "full" if found[2] == "sft" or (
        scheme in ("none", None) and found[2] != "peft" and "peft_scheme" in keys) else "lora"
    reading.put("workload.method", trains, "the recipe")
    if trains == "lora":
        reading.put("workload.lora_rank", reading.number("dim", "rank"), "dim")
    reading.put("workload.stack", "megatron-core", "the recipe")
    length = reading.number("seq_length", "sequence_length")
    reading.put("workload.sequence_length", length, "seq_length")
    reading.axis("mbs", reading.number("micro_batch_size", "mbs"), "micro_batch_size")
    reading.put("workload.global_batch", reading.number("global_batch_size", "gbs"), "global_batch_size")
    parallelism(reading, lambda key: key.replace("-", "_"))
    if reading.source.has("virtual_pipeline_model_parallel_size"):
        reading.axis("vpp", reading.number("virtual_pipeline_model_parallel_size"),
                     "virtual_pipeline_model_parallel_size")
    if not reading.source.has("use_distributed_optimizer"):
        reading.axis("zero", 1, "the recipe, whose optimizer is sharded")
    if not reading.source.has("recompute_granularity"):
        reading.layout.pop("recompute", None)  # the recipe's own, which is not in the script
    each = reading.number("num_gpus_per_node", "devices", "gpus_per_node")
    reading.gpus = each * (reading.number("num_nodes", "nodes") or 1) if each else None
    reading.steps = reading.number("max_steps", "train_iters")
    missing = [word for word in ("seq_length", "micro_batch_size", "global_batch_size") if not reading.source.has(word)]
    if missing:
        reading.defaults.append(f"{', '.join(missing)}: the recipe's own, which the script does not say: usual ones")


READER = Reader("a recipe of NeMo or Megatron Bridge", tells, read)
