"""Megatron Bridge's Python with a provider of its own: `cfg.model = GPTModelProvider(...)`, and what `cfg` is told."""

from __future__ import annotations

import re

from planner.scenario.configs.launchers import launched
from planner.scenario.configs.readers.megatron import SIZES, offloaded, parallelism
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SPELLED = {"num-experts": "num_moe_experts", "kv-heads": "num_query_groups",
           "use-distributed-optimizer": "ddp.use_distributed_optimizer",
           "num-virtual-stages-per-pipeline-rank": "model.virtual_pipeline_model_parallel_size"}
"""Megatron's arguments that have another name here."""
_QUOTED = re.compile(r"[\"']([\w.-]{1,60})[\"']")


def tells(source: Source) -> bool:
    """Say whether it is one, by its package and a provider with sizes."""
    return source.form == "python" and any(word.startswith("megatron.bridge") for word in source.words) and any(
        word.endswith("ModelProvider") for word in source.words) and source.has("num_layers")


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, degrees, sharding and precision."""
    reading.put("workload.stack", "megatron-bridge", "the package")
    reading.shape = {name: size for name, key in {**SIZES, "kv_heads": "kv-heads"}.items() if (
        size := reading.number(_size(key))) is not None}
    if each := reading.number("moe_ffn_hidden_size"):
        reading.shape["ffn"] = each
    tokenizer = reading.text("tokenizer.tokenizer_model")
    reading.names = (tokenizer,) if tokenizer else ()
    length = reading.number("dataset.seq_length", "seq_length")
    reading.put("workload.sequence_length", length, "dataset.seq_length")
    reading.axis("mbs", reading.number("train.micro_batch_size") or 1, "train.micro_batch_size")
    reading.put("workload.global_batch", reading.number("train.global_batch_size"), "train.global_batch_size")
    reading.accumulation = 1
    parallelism(reading, _spelled)
    _sharding(reading)
    offloaded(reading, lambda key: f"optimizer.{key.replace('-', '_')}")
    mixed = _QUOTED.search(str(reading.source.keys.get("mixed_precision", "")))
    reading.get("mixed_precision")
    named = mixed[1] if mixed else "bf16_mixed"
    precision = next((own for word, own in (("mxfp8", "mxfp8"), ("nvfp4", "fp4"), ("fp8", "fp8"), ("fp16", "fp16"))
                      if word in named), "bf16")
    reading.put("workload.precision", precision, "mixed_precision")
    adapts = any(word.rpartition(".")[2] in ("LoRA", "CanonicalLoRA") for word in reading.source.words if "." not in
                 word) and reading.source.has("peft")
    tunes = reading.source.has("checkpoint.pretrained_checkpoint")
    reading.put("workload.method", "lora" if adapts else "full" if tunes else "pretrain", "peft")
    if adapts:
        reading.put("workload.lora_rank", reading.number("dim") or 32, "dim")
    steps = reading.get("train.train_iters")
    reading.steps = int(str(steps)) if str(steps).isdecimal() else None
    reading.gpus = launched(reading)


def _size(key: str) -> str:
    return SPELLED.get(key, key.replace("-", "_"))


def _spelled(key: str) -> str:
    """Return what an argument of Megatron is called here."""
    return SPELLED.get(key, f"model.{key.replace('-', '_')}")


def _sharding(reading: Reading) -> None:
    """Read what Megatron's FSDP shards, where it is on."""
    if reading.on("ddp.use_megatron_fsdp"):
        stages = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
        how = reading.word("ddp.data_parallel_sharding_strategy") or "optim_grads_params"
        if how not in stages:
            raise reading.wrong(("ddp.data_parallel_sharding_strategy",), how, ", ".join(stages))
        reading.axis("zero", stages[how], "ddp.data_parallel_sharding_strategy")


READER = Reader("a script of Megatron Bridge", tells, read)
