"""NeMo's YAML of pre-training and tuning (up to 24.x: `trainer`, `exp_manager`, `model`), with keys of Megatron."""

from __future__ import annotations

from planner.scenario.configs.readers.megatron import SIZES, parallelism
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SPELLED = {"num-experts": "num_moe_experts",
           "num-virtual-stages-per-pipeline-rank": "virtual_pipeline_model_parallel_size",
           "recompute-granularity": "activations_checkpoint_granularity",
           "recompute-method": "activations_checkpoint_method",
           "recompute-num-layers": "activations_checkpoint_num_layers"}
"""Megatron's arguments that have another name here."""
SHARDED = ("distributed_fused_adam", "mcore_distributed_optim")
"""Optimizers whose states are sharded over the copies."""
HALVES = {"bf16": "bf16", "bf16-mixed": "bf16", "16": "fp16", "16-mixed": "fp16", "32": "fp32"}
"""trainer.precision -> in what products are computed."""


def tells(source: Source) -> bool:
    """Say whether it is one: Lightning's trainer beside a model of Megatron's."""
    return source.form == "yaml" and source.has("trainer", "model") and (
        source.has("model.tensor_model_parallel_size") or source.has("model.micro_batch_size"))


def read(reading: Reading) -> None:
    """Read model, batch, lengths, degrees, precision, recompute and what trains."""
    reading.put("workload.stack", "megatron-core", "the kind of file")
    reading.shape = {name: size for name, key in {**SIZES, "kv_heads": "num-query-groups"}.items()
                     if (size := reading.number(_spelled(key))) is not None}
    reading.names = tuple(name for name in (reading.text("model.tokenizer.type"), reading.text(
        "model.tokenizer.model"), reading.text("model.restore_from_path")) if name)
    reading.put("workload.sequence_length", reading.number("model.encoder_seq_length", "model.data.seq_length",
                                                           "model.data.train_ds.max_seq_length"),
                "model.encoder_seq_length")
    reading.axis("mbs", reading.number("model.micro_batch_size", "model.data.train_ds.micro_batch_size") or 1,
                 "model.micro_batch_size")
    reading.put("workload.global_batch", reading.number("model.global_batch_size",
                                                        "model.data.train_ds.global_batch_size"),
                "model.global_batch_size")
    reading.accumulation = 1
    parallelism(reading, _spelled)
    optimizer = reading.word("model.optim.name") or ""
    reading.axis("zero", int(optimizer in SHARDED), "model.optim.name")
    _precision(reading)
    _tuned(reading)
    each, nodes = reading.number("trainer.devices"), reading.number("trainer.num_nodes")
    reading.gpus = each * (nodes or 1) if each else None
    reading.steps = reading.number("trainer.max_steps")


def _precision(reading: Reading) -> None:
    said = reading.word("trainer.precision") or "bf16"
    if said not in HALVES:
        raise reading.wrong(("trainer.precision",), said, ", ".join(HALVES))
    fp8 = reading.on("model.fp8")
    reading.put("workload.precision", "fp8" if fp8 else HALVES[said], "model.fp8" if fp8 else "trainer.precision")


def _tuned(reading: Reading) -> None:
    """Put down adapters where they are asked for, full tuning where weights are restored, else pre-training."""
    scheme = reading.word("model.peft.peft_scheme")
    if scheme not in (None, "none", "null", "lora"):
        raise reading.wrong(("model.peft.peft_scheme",), scheme, "lora or none")
    if scheme == "lora":
        reading.put("workload.method", "lora", "model.peft.peft_scheme")
        reading.put("workload.lora_rank", reading.number("model.peft.lora_tuning.adapter_dim"),
                    "model.peft.lora_tuning.adapter_dim")
    else:
        tunes = reading.source.has("model.data.train_ds") or reading.source.has("model.peft")
        reading.put("workload.method", "full" if tunes else "pretrain", "the kind of file")


def _spelled(key: str) -> str:
    """Return what an argument of Megatron is called here."""
    return f"model.{SPELLED.get(key, key.replace('-', '_'))}"


READER = Reader("a NeMo config", tells, read)
