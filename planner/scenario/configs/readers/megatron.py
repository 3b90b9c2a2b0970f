"""Megatron-LM's arguments (megatron/training/arguments.py), as a launch script or the bare flags."""

from __future__ import annotations

from collections.abc import Callable

from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SIZES = {"layers": "num-layers", "hidden": "hidden-size", "heads": "num-attention-heads", "ffn": "ffn-hidden-size",
         "experts": "num-experts", "vocab": "vocab-size"}
"""Of a model that is given by its sizes."""
ARCHITECTURE = ("swiglu", "normalization", "disable-bias-linear", "use-rotary-position-embeddings", "rotary-base",
                "position-embedding-type", "no-position-embedding", "untie-embeddings-and-output-weights",
                "max-position-embeddings", "kv-channels", "qk-layernorm", "rotary-percent", "norm-epsilon",
                "make-vocab-size-divisible-by", "squared-relu", "apply-layernorm-1p", "add-qkv-bias")
"""Of the model, which is one of the catalog with the same sizes."""


def tells(source: Source) -> bool:
    """Say whether it is one: flags that only Megatron has."""
    # `megatron rlhf` is a line of ms-swift, with variables before it or not
    return source.form == "command" and "megatron" not in source.words and not any(
        map(source.has, ("rollout-batch-size", "compute-dtype"))) and any(
        source.has(*keys) for keys in (("tensor-model-parallel-size",), ("pipeline-model-parallel-size",),
                                       ("num-layers", "hidden-size", "num-attention-heads")))


def read(reading: Reading) -> None:
    """Read model, batch, lengths, degrees, precision, recompute and offload."""
    reading.put("workload.stack", "megatron-core", "the kind of file")
    _model(reading)
    reading.put("workload.sequence_length", reading.number("seq-length", "encoder-seq-length"), "seq-length")
    reading.axis("mbs", reading.number("micro-batch-size") or 1, "micro-batch-size")
    reading.put("workload.global_batch", reading.number("global-batch-size"), "global-batch-size")
    reading.accumulation = 1
    parallelism(reading)
    _precision(reading)
    fused_loss(reading)
    offloaded(reading)
    if reading.on("finetune"):
        reading.put("workload.method", "full", "finetune")
    per_node, nodes = reading.number("nproc-per-node"), reading.number("nnodes")
    reading.gpus = per_node * (nodes or 1) if per_node else None
    reading.steps = reading.number("train-iters")
    samples, whole = reading.number("train-samples"), reading.values.get("workload.global_batch")
    if samples and isinstance(whole, int):
        reading.steps = -(-samples // whole)


def offloaded(reading: Reading, spelled: Callable[[str], str] = str) -> None:
    """Read the share of the optimizer's states that lies on the host."""
    if reading.on(spelled("optimizer-cpu-offload")):
        reading.axis("offload_optimizer", reading.text(spelled("optimizer-offload-fraction")) or 1,
                     "optimizer-cpu-offload")


def fused_loss(reading: Reading, spelled: Callable[[str], str] = str) -> None:
    """Read whether the loss is Transformer Engine's, which writes the gradient of 16-bit logits in their place."""
    if reading.on(spelled("cross-entropy-loss-fusion")) and reading.word(
            spelled("cross-entropy-fusion-impl")) == "te":
        reading.put("workload.loss", "chunked", spelled("cross-entropy-fusion-impl"))


def parallelism(reading: Reading, spelled: Callable[[str], str] = str) -> None:
    """Read degrees, sharding and recompute, under Megatron's names as `spelled` in the kind of config."""
    tp = reading.degree("tp", spelled("tensor-model-parallel-size"))
    pp = reading.degree("pp", spelled("pipeline-model-parallel-size"))
    reading.degree("cp", spelled("context-parallel-size"))
    reading.degree("ep", spelled("expert-model-parallel-size"))
    reading.axis("expert_tp", reading.number(spelled("expert-tensor-parallel-size")),
                 spelled("expert-tensor-parallel-size"))
    _interleaving(reading, pp, spelled)
    if tp > 1:
        reading.axis("sp", int(reading.on(spelled("sequence-parallel"))), spelled("sequence-parallel"))
    _sharding(reading, spelled)
    _recompute(reading, spelled)


def _model(reading: Reading) -> None:
    reading.shape = {name: size for name, key in SIZES.items() if (size := reading.number(key)) is not None}
    if each := reading.number("moe-ffn-hidden-size"):
        reading.shape["ffn"] = each
    groups = reading.number("num-query-groups")
    grouped = reading.on("group-query-attention")
    if reading.shape.get("heads"):
        reading.shape["kv_heads"] = groups if grouped and groups else reading.shape["heads"]
    reading.get(*ARCHITECTURE)
    tokenizer = reading.text("tokenizer-model", "hf-model-id", "model-name")
    reading.names = (tokenizer,) if tokenizer else ()


def _interleaving(reading: Reading, pp: int, spelled: Callable[[str], str]) -> None:
    chunks = reading.number(spelled("num-virtual-stages-per-pipeline-rank"),
                            spelled("virtual-pipeline-model-parallel-size"))
    key = spelled("num-layers-per-virtual-pipeline-stage")
    each, layers = reading.number(key), reading.shape.get("layers")
    if each and layers:
        if layers % (pp * each):
            raise reading.wrong((key,), each,
                                f"a divisor of the {layers // pp} layers of a stage")
        chunks = layers // pp // each
    reading.axis("vpp", chunks if chunks and chunks > 1 else None, key)


def _sharding(reading: Reading, spelled: Callable[[str], str]) -> None:
    key = spelled("use-distributed-optimizer")
    stage = int(reading.on(key))
    if reading.on("use-torch-fsdp2", "use-megatron-fsdp", "use-custom-fsdp"):
        how = reading.word("data-parallel-sharding-strategy") or "optim_grads_params"
        stages = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
        if how not in stages:
            raise reading.wrong(("data-parallel-sharding-strategy",), how, ", ".join(stages))
        stage, key = stages[how], "use-megatron-fsdp"
    reading.axis("zero", stage, key)


def _recompute(reading: Reading, spelled: Callable[[str], str]) -> None:
    key = spelled("recompute-granularity")
    how = reading.word(key) or ("selective" if reading.on(spelled("recompute-activations")) else "none")
    if how not in ("none", "selective", "full"):
        raise reading.wrong((key,), how, "selective or full")
    layers = reading.number(spelled("recompute-num-layers"))
    if how == "full" and reading.word(spelled("recompute-method")) == "block" and layers:
        reading.axis("recompute", layers, spelled("recompute-num-layers"))
    else:
        reading.axis("recompute", how, key)


def _precision(reading: Reading) -> None:
    recipe = reading.word("fp8-recipe")
    if reading.get("fp4-format", "fp4") is not None:
        reading.put("workload.precision", "fp4", "fp4-format")
    elif reading.get("fp8-format", "fp8", "fp8-hybrid", "fp8-e4m3") is not None:
        reading.put("workload.precision", "mxfp8" if recipe == "mxfp8" else "fp8", "fp8-format")
    elif reading.on("fp16"):
        reading.put("workload.precision", "fp16", "fp16")
    elif not reading.on("bf16"):
        reading.put("workload.precision", "fp32", "no bf16")


READER = Reader("arguments of Megatron-LM", tells, read)
