"""What configs of Hugging Face's Trainer share, by the keys of its TrainingArguments and OptimizerNames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from planner.errors import InputError
from planner.scenario.configs.reading import Reading
from planner.scenario.configs.source import beside, source_of
from planner.scenario.targets import MODULES, places_of, said_shortly
from planner.scenario.workload import REFERRING

OPTIMIZERS: dict[str, str] = {
    **dict.fromkeys(("adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused", "adamw"), "adamw"),
    **dict.fromkeys(("adamw_bnb_8bit", "adamw_8bit", "adamw_torch_8bit"), "adamw-8bit"),
    "adamw_torch_4bit": "adamw-4bit", "paged_adamw": "paged-adamw", "paged_adamw_32bit": "paged-adamw",
    "paged_adamw_8bit": "paged-adamw-8bit", "adafactor": "adafactor", "lion_32bit": "lion", "lion_pytorch": "lion",
    "sgd": "sgd-momentum", "muon": "muon"}
"""OptimizerNames -> the planner's; others are refused by name."""
ZERO_NAMES = {"zero1": 1, "zero2": 2, "zero3": 3, "z0": 0, "z2": 2, "z3": 3}
"""Parts of the names of DeepSpeed files that axolotl (zero3_bf16.json) and LLaMA-Factory (ds_z3_config.json) ship."""


def batch(reading: Reading, micro: str, *, default: int) -> None:
    """Read sequences of a GPU and micro-batches of a step."""
    size = reading.number(micro)
    if size is None:
        reading.defaults.append(f"{micro} {default}")
    reading.axis("mbs", size or default, micro)
    reading.accumulation = reading.number("gradient_accumulation_steps") or 1


def precision(reading: Reading, *bf16: str) -> None:
    """Read the format of matrix products: fp8 over bf16 over fp16; fp32 where all are off."""
    named = reading.word("torch_dtype", "dtype")
    wanted = {"bf16": reading.get(*(bf16 or ("bf16",))), "fp16": reading.get("fp16", "float16")}
    if reading.on("fp8"):
        reading.put("workload.precision", "fp8", "fp8")
    elif str(wanted["fp16"]).lower() == "true" or named in ("float16", "fp16"):
        reading.put("workload.precision", "fp16", "fp16")
    elif str(wanted["bf16"]).lower() == "false" and str(wanted["fp16"]).lower() == "false":
        reading.put("workload.precision", "fp32", "bf16")


UNMODELED = {
    **dict.fromkeys(("use_galore", "use_apollo", "use_badam", "use_adam_mini"),
                    "memory of this optimizer is not modeled"),
    "use_llama_pro": "added layers are not modeled", "use_kt": "experts computed on the CPU are not modeled",
    "mixture_of_depths": "tokens that skip layers are not modeled", "use_dora": "DoRA is not modeled",
    "peft_use_dora": "DoRA is not modeled", "relora": "ReLoRA is not modeled", "diffusion": "denoising is not modeled"}
"""Switches that change what fits or how fast it is, with what is not modeled."""


def refuse_unmodeled(reading: Reading) -> None:
    """Raise InputError for a switch whose effect would be missing from the answer."""
    for key, why in UNMODELED.items():
        if reading.on(key) or (key in reading.source.keys and reading.word(key) not in (None, "false", "no", "0")):
            raise InputError(f"{key}: {why}", file=reading.source.file)


def counted_more(reading: Reading, key: str, what: str) -> None:
    """Say of a switch that is on that the answer counts more memory than it takes."""
    if reading.on(key):
        reading.counted.append(f"{key}: {what}, which is more than it takes")


def optimizer(reading: Reading, *keys: str) -> None:
    """Read the optimizer. Raises InputError for one that is not modeled."""
    name = "muon" if reading.on("use_muon") else reading.word(*keys)
    if name is not None:
        optimizer_named(reading, name, *keys)


def optimizer_named(reading: Reading, name: str, *keys: str) -> None:
    """Put down an optimizer by its name in transformers. Raises InputError for one that is not modeled."""
    if name not in OPTIMIZERS:
        raise reading.wrong(keys, name, f"an optimizer that is modeled ({', '.join(OPTIMIZERS)})")
    if OPTIMIZERS[name] != "adamw":
        reading.put("workload.optimizer", OPTIMIZERS[name], keys[0])


def adapter(reading: Reading, method: str, rank: str, key: str) -> None:
    """Put down the method, and the rank of adapters where it trains them."""
    reading.put("workload.method", method, key)
    size = reading.number(rank)
    if method in ("lora", "qlora"):
        reading.put("workload.lora_rank", size, rank)


def preferences(reading: Reading, method: str, key: str, *, precomputed: str | None = None, copied: str | None = None
                ) -> None:
    """Make of what trains, which is put down, the tuning of a method that takes preferences.

    precomputed: the switch of a reference that runs before training; copied: the key that names one beside adapters.
    """
    trains, said = reading.values["workload.method"], reading.origin["workload.method"]
    reading.put("workload.tuning", "full" if trains == "pretrain" else trains, said)
    reading.put("workload.method", method, key)
    reading.of_samples.pop("workload.packing", None)
    if precomputed is not None and reading.on(precomputed):
        reading.put("workload.reference", "precomputed", precomputed)
    elif copied is not None and reading.text(copied) and method in REFERRING:
        reading.put("workload.reference", "copy", copied)


def adapted(reading: Reading, key: str, *, experts: bool, more: str = "") -> None:
    """Read which modules have adapters, and which train whole; all linear layers where nothing is said.

    experts: whether routed ones are linear layers to the framework; `more` is its key for those that are not. A pattern
    over modules is read by the names in it.
    """
    said = _modules(reading.several(key)) or ["all"]
    whole = [*_known(reading, "lora_modules_to_save", "modules_to_save", "additional_target")]
    routed = _modules(reading.several(more)) if more else []
    try:
        if said in (["all"], ["all-linear"]) and not experts:
            said = ["linear"]
        places = places_of([*said, *whole, *routed])
    except ValueError:
        words = [word for name in said for word in re.split(r"\W+", name) if word in MODULES]
        places = places_of([*words, *whole, *routed]) or places_of(["all"])
        reading.counted.append(f"{key}: adapters are counted on {said_shortly(places)}")
    if experts and not {"gate", "up", "down"}.isdisjoint(places):
        places = (*places, "routed")
    if set(places) != set(places_of(["all"])):
        reading.put("workload.lora_targets", said_shortly(places), key)


def _known(reading: Reading, *keys: str) -> Iterator[str]:
    """Yield the modules that train whole, and say which of them are not counted."""
    for name in [name for key in keys for name in _modules(reading.several(key))]:
        try:
            places_of([name])
        except ValueError:
            reading.counted.append(f"{keys[0]} {name}: not counted")
        else:
            yield name


def _modules(values: Sequence[object]) -> list[str]:
    """Return the names in a list, whose items may be several with commas."""
    return [part.strip() for value in values for part in str(value).split(",") if part.strip()]


def recompute(reading: Reading, on: bool, key: str) -> None:
    """Put down full recompute, or none."""
    reading.axis("recompute", "full" if on else "none", key)


def offload(reading: Reading, axis: str, key: str, share: object = 1) -> None:
    """Put down what lies on the device that a key names, if that is the host or flash."""
    device = reading.word(key)
    if device in ("cpu", "nvme"):
        reading.axis(axis, share, key)
        reading.axis("offload_to", "nvme" if device == "nvme" else None, key)


def deepspeed(reading: Reading, key: str = "deepspeed") -> bool:
    """Read the ZeRO stage and offload of the DeepSpeed file that a config names by a key; say whether it names one.

    The file is read where it lies beside the config; one that the framework ships is told by its name.
    """
    from planner.scenario.configs.readers.deepspeed import zero

    named = reading.text(key)
    if named is None:
        if reading.source.has(f"{key}.zero_optimization"):
            zero(reading, f"{key}.")
            return True
        return False
    name = Path(named).name.lower()
    if (path := beside(reading.source, named)) is not None:
        other = Reading(source_of(str(path)))
        zero(other)
        reading.layout |= other.layout
        reading.origin |= dict.fromkeys(other.layout, f"{key} ({path})")
        return True
    stage = next((stage for part, stage in ZERO_NAMES.items() if part in name), None)
    if stage is None:
        raise InputError(f"{key}: the file {named} is not there, and its name does not say its ZeRO stage",
                         file=reading.source.file)
    reading.axis("zero", stage, key)
    reading.defaults.append(f"{named} is not there, so ZeRO {stage}, as its name says")
    if "offload" in name or "cpu" in name:
        reading.axis("offload_optimizer", 1, key)
        if stage == 3 and ("all" in name or "offload" in name):
            reading.axis("offload_parameters", 1, key)
    return True


def fsdp(reading: Reading) -> bool:
    """Read FSDP's sharding and offload; say whether it is on."""
    prefix, listed = "fsdp_config.", "fsdp"
    if reading.source.has("fsdp.fsdp"):  # ms-swift's block of both
        prefix, listed = "fsdp.fsdp_config.", "fsdp.fsdp"
    words = str(reading.get(listed) or "").lower()
    strategy = reading.word(f"{prefix}fsdp_sharding_strategy", f"{prefix}sharding_strategy") or ""
    after = reading.word(f"{prefix}fsdp_reshard_after_forward", f"{prefix}reshard_after_forward")
    version = reading.get(f"{prefix}fsdp_version", f"{prefix}version", "fsdp_version")
    if not (words not in ("", "false", "[]") or strategy or after or version):
        return False
    kind = f"{words} {strategy} {after if after and not after[0].isdigit() else ''}"
    stage = 3
    if "shard_grad_op" in kind or strategy == "2" or after == "false":
        stage = 2
    if "no_shard" in kind:
        stage = 0
    if "hybrid" in kind:
        reading.defaults.append("hybrid sharding is read as sharding over all GPUs")
    reading.axis("zero", stage, listed if words else f"{prefix}fsdp_sharding_strategy")
    if reading.on(f"{prefix}fsdp_offload_params", f"{prefix}offload_params", f"{prefix}fsdp_cpu_offload"
                  ) or "offload" in words:
        reading.axis("offload_optimizer", 1, f"{prefix}offload_params")
        reading.axis("offload_parameters", 1, f"{prefix}offload_params")
    if reading.on(f"{prefix}fsdp_activation_checkpointing", f"{prefix}activation_checkpointing"):
        recompute(reading, True, f"{prefix}activation_checkpointing")
    return True


def sharding(reading: Reading, stack: str) -> None:
    """Read DeepSpeed or FSDP, or that nothing is sharded, and put down the stack: DeepSpeed where it is on."""
    if deepspeed(reading):
        stack = "deepspeed"
    elif (launched := _accelerate(reading)) is not None:
        stack = launched if launched != "hf-peft" else stack
    elif not fsdp(reading):
        replicated(reading)
    synced = reading.word("accelerator_config.gradient_accumulation_kwargs.sync_each_batch")
    if synced is not None and reading.layout.get("zero") in ("2", "3") and (reading.accumulation or 1) > 1:
        reading.axis("no_sync", int(synced != "true"), "sync_each_batch")
    reading.put("workload.stack", stack, "the kind of file")


def _accelerate(reading: Reading) -> str | None:
    """Read sharding and GPUs of the config that `accelerate launch` names, and return the stack; none without one.

    A file of TRL that is not there is told by its name.
    """
    from planner.scenario.configs.readers.accelerate import read

    key = "config_file"
    named = reading.text(key)
    if named is None:
        return None
    path = beside(reading.source, named)
    if path is not None:
        other = Reading(source_of(str(path)))
        read(other)
        if other.layout.get("recompute") == "full":  # either of both recomputes
            reading.layout.pop("recompute", None)
        reading.layout = {**other.layout, **reading.layout}
        reading.origin |= dict.fromkeys(other.layout, f"{key} ({path})")
        reading.gpus = reading.gpus or other.gpus
        reading.accumulation = reading.accumulation or other.accumulation
        return str(other.values["workload.stack"])
    name = Path(named).name.lower()
    stage = next((stage for part, stage in ZERO_NAMES.items() if part in name), 3 if "fsdp" in name else 0)
    reading.axis("zero", stage, key)
    reading.defaults.append(f"{named} is not there, so ZeRO {stage}, as its name says")
    return "deepspeed" if "zero" in name else "accelerate-fsdp" if "fsdp" in name else "hf-peft"


def steps(reading: Reading) -> None:
    """Read the steps; -1, which is the Trainer's own, leaves them to the epochs. Packing goes with samples, too."""
    reading.of_samples = {name: value for name, value in (
        ("workload.epochs", reading.get("num_epochs", "num_train_epochs")),
        ("workload.packing", reading.on("sample_packing", "packing") or None)) if value is not None}
    asked = reading.get("max_steps")
    reading.steps = reading.number("max_steps") if asked is not None and float(str(asked)) > 0 else None


def replicated(reading: Reading) -> None:
    """Put down that nothing is sharded, which is what the Trainer does alone."""
    reading.axis("zero", 0, "no deepspeed or fsdp")


def arguments(reading: Reading, lengths: Sequence[str], checkpointing: str, *, recomputes: bool) -> None:
    """Read length, batch, precision, optimizer, recompute, loss and steps as the trainer's arguments have them.

    lengths: keys of the sequence length, that of its default first; checkpointing: what gradient checkpointing is by
    default, recomputes: whether it is on.
    """
    length = reading.number(*lengths)
    reading.put("workload.sequence_length", length or 1024, lengths[0])
    if length is None:
        reading.defaults.append(f"{lengths[0]} 1024")
    batch(reading, "per_device_train_batch_size", default=8)
    precision(reading)
    optimizer(reading, "optim")
    recompute(reading, recomputes, "gradient_checkpointing")
    if reading.word("gradient_checkpointing") is None:
        reading.defaults.append(f"gradient_checkpointing {checkpointing}")
    if reading.on("use_liger_kernel", "use_liger"):
        reading.put("workload.loss", "fused", "use_liger_kernel")
    if reading.on("activation_offloading"):
        reading.axis("offload_activations", 1, "activation_offloading")
    steps(reading)
