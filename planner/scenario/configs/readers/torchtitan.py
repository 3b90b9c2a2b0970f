"""torchtitan's TOML (its job_config.py up to 0.2: model, training, parallelism, activation_checkpoint), and the Python
that sets the same keys since 0.3.
"""

from __future__ import annotations

import re

from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source


def tells(source: Source) -> bool:
    """Say whether it is one: a model's flavor, or its tables of parallelism."""
    if source.form == "python":
        return any(word.startswith("torchtitan") for word in source.words) and source.has("training", "parallelism")
    return source.form == "toml" and (source.has("model.flavor") or source.has("parallelism") or source.has("training"))


def read(reading: Reading) -> None:
    """Read model, batch, lengths, degrees, precision and recompute."""
    reading.put("workload.stack", "fsdp2", "the kind of file")
    tunes = reading.on("checkpoint.initial_load_in_hf")
    reading.put("workload.method", "full" if tunes else "pretrain", "checkpoint.initial_load_in_hf")
    _model(reading)
    length = reading.number("training.seq_len")
    reading.put("workload.sequence_length", length or 2048, "training.seq_len")
    reading.steps = reading.number("training.steps")
    tp = reading.degree("tp", "parallelism.tensor_parallel_degree", "training.tensor_parallel_degree")
    pp = reading.degree("pp", "parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree")
    if tp > 1 and reading.word("parallelism.enable_sequence_parallel") == "false":
        reading.axis("sp", 0, "parallelism.enable_sequence_parallel")
    cp = reading.degree("cp", "parallelism.context_parallel_degree", "experimental.context_parallel_degree")
    reading.degree("ep", "parallelism.expert_parallel_degree")
    reading.axis("expert_tp", reading.number("parallelism.expert_tensor_parallel_degree"),
                 "parallelism.expert_tensor_parallel_degree")
    _batch(reading, pp)
    _sharding(reading, tp * pp * cp, pp)
    _schedule(reading, pp)
    _recompute(reading)
    _precision(reading)
    if reading.on("compile.enable") and "loss" in str(reading.get("compile.components") or "model, loss"):
        # compiled, the loss holds no 32-bit copies of its logits
        reading.put("workload.loss", "chunked", "compile.components")
    name = reading.word("optimizer.name") or "adamw"
    if name not in ("adam", "adamw"):
        raise reading.wrong(("optimizer.name",), name, "Adam or AdamW")


def _family(source: Source) -> str:
    """Return the module of the models that a script takes its model from: torchtitan.models.llama3."""
    paths = [word.split(".") for word in source.words if word.startswith("torchtitan.models.")]
    return next((path[2] for path in paths if path[2] != "common"), "")


def _model(reading: Reading) -> None:
    if reading.source.form == "python":
        family, flavor = _family(reading.source), reading.text("model.flavor")
        reading.called = "torchtitan", {"family": family, **({"flavour": flavor} if flavor else {})}
        reading.names = (f"{family} {flavor or ''}".strip(),)
        return
    name, flavor = reading.text("model.name"), reading.text("model.flavor")
    assets = reading.text("model.hf_assets_path", "model.tokenizer_path")
    plain = (name or "").replace("_", "-")
    parted = re.sub(r"(?<=[a-z])(?=\d)", "-", plain)
    called = tuple(f"{stem}-{flavor}" for stem in dict.fromkeys((f"{parted}.1", parted, plain))) if name else ()
    reading.names = (*((assets,) if assets else ()), *called, *((plain,) if plain else ()))
    if size := re.match(r"([\d.]+)B", flavor or ""):
        reading.shape["parameters"] = int(float(size.group(1)) * 1e9)


def _batch(reading: Reading, pp: int) -> None:
    keys = ("training.local_batch_size", "training.batch_size")
    local = reading.number(*keys) or 8
    micro = reading.number("parallelism.pipeline_parallel_microbatch_size") or 1 if pp > 1 else local
    reading.axis("mbs", micro, keys[0])
    reading.accumulation = max(1, local // micro)
    whole = reading.get("training.global_batch_size")
    if whole is not None and float(str(whole)) > 0:
        reading.put("workload.global_batch", reading.number("training.global_batch_size"), "training.global_batch_size")


def _sharding(reading: Reading, width: int, pp: int) -> None:
    copies = reading.get("parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree")
    shards = reading.get("parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree")
    copies, shards = int(float(str(copies or 1))), int(float(str(shards or -1)))
    if shards > 0:
        reading.gpus = width * copies * shards
    kept = reading.word("parallelism.fsdp_reshard_after_forward")
    stage = 0 if shards == 1 else 2 if kept == "never" or (kept != "always" and pp > 1) else 3
    reading.axis("zero", stage, "parallelism.data_parallel_shard_degree")
    if copies > 1 and shards > 1:
        reading.axis("shard", shards, "parallelism.data_parallel_replicate_degree")


def _schedule(reading: Reading, pp: int) -> None:
    named = reading.word("parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule") or ""
    if pp == 1:
        return
    schedules = {"gpipe": "gpipe", "interleavedzerobubble": "zero-bubble", "zbvzerobubble": "zero-bubble"}
    if named in schedules:
        reading.axis("schedule", schedules[named], "parallelism.pipeline_parallel_schedule")
    elif named == "interleaved1f1b":
        parts = reading.get("parallelism.module_fqns_per_model_part")
        chunks = len(parts) // pp if isinstance(parts, list) and len(parts) % pp == 0 else None
        reading.axis("vpp", chunks or 2, "parallelism.pipeline_parallel_schedule")
        if chunks is None:
            reading.defaults.append("two chunks a stage")


def _recompute(reading: Reading) -> None:
    if reading.source.form == "python":
        said = reading.source.keys.get("activation_checkpoint", "SelectiveAC")
        reading.get("activation_checkpoint")
        mode = "none" if said is None else "full" if "FullAC" in str(said) else "selective"
    else:
        mode = reading.word("activation_checkpoint.mode") or "selective"
    if mode not in ("none", "selective", "full"):
        raise reading.wrong(("activation_checkpoint.mode",), mode, "none, selective or full")
    reading.axis("recompute", mode, "activation_checkpoint.mode")


def _precision(reading: Reading) -> None:
    converters = str(reading.get("model.converters") or "").lower()
    if reading.source.form == "python":
        converters = " ".join(reading.source.words).lower()
    if reading.word("training.mixed_precision_param") == "float32":
        reading.put("workload.precision", "fp32", "training.mixed_precision_param")
    older = reading.on("float8.enable_float8_linear")
    if "mx" in converters:
        reading.put("workload.precision", "mxfp8", "model.converters")
    elif "float8" in converters or older:
        reading.put("workload.precision", "fp8", "model.converters")


READER = Reader("a torchtitan config", tells, read)
