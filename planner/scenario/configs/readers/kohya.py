"""Lines that train models of images and clips: kohya's sd-scripts and musubi-tuner, and scripts of diffusers."""

from __future__ import annotations

import re
from dataclasses import replace

from planner.scenario.configs import denoising, trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

_SCRIPT = re.compile(r"(?:[\w./-]*/)?((?:[a-z0-9]+_)*train(?:_[a-z0-9]+)*)\.py")
OWN = (("network_module",), ("pretrained_model_name_or_path", "train_batch_size"), ("network_dim",),
       ("dit", "dataset_config"), ("pretrained_model_name_or_path", "dataset_config"))
"""Keys that tell of them, any of which a config has whole."""


def _script(source: Source) -> str:
    return next((found.group(1) for word in source.every_word() if (found := _SCRIPT.fullmatch(word))), "")


def tells(source: Source) -> bool:
    """Say whether it is one: weights of a model of images, with adapters or a batch of theirs."""
    if source.form not in ("command", "toml", "json"):
        return False
    flat = replace(source, keys=denoising.plain_names(source.keys)) if source.form == "toml" else source
    return any(flat.has(*keys) for keys in OWN) and not flat.has("model_type", "model_family")


def read(reading: Reading) -> None:
    """Read model, adapters, size of images, batch, optimizer and steps."""
    if reading.source.form == "toml":
        reading.source = replace(reading.source, keys=denoising.plain_names(reading.source.keys))
    if (more := reading.file("config_file")) is not None:
        reading.source = replace(reading.source, keys={**{
            reading.source.named(key): value for key, value in denoising.plain_names(more.keys).items()},
            **reading.source.keys})
    script = _script(reading.source)
    named = reading.text("pretrained_model_name_or_path", "dit")
    denoising.model(reading, named, f"{script} {reading.word('task') or ''}", "sd-1.5")
    by_kohya = any(map(reading.source.has, ("network_module", "dataset_config", "network_dim", "max_data_loader_n_"
                                            "workers", "in_json", "save_precision")))
    _trained(reading, script, by_kohya=by_kohya)
    _samples(reading, default=1 if by_kohya or "dreambooth" not in script else 4)
    denoising.optimizer(reading, "optimizer_type", "optimizer")
    if reading.on("use_8bit_adam"):
        reading.put("workload.optimizer", "adamw-8bit", "use_8bit_adam")
    cached = by_kohya and ("dit" in reading.source.keys or reading.on("cache_latents", "cache_latents_to_disk"))
    reading.get("cache_latents_to_disk", "cache_text_encoder_outputs", "cache_text_encoder_outputs_to_disk")
    reading.put("workload.latents", "cached" if cached or reading.on("cache_latents") else "online", "cache_latents")
    denoising.recompute(reading, "gradient_checkpointing")
    if reading.on("gradient_checkpointing") and reading.on("gradient_checkpointing_cpu_offload"):
        reading.axis("offload_checkpoints", 1, "gradient_checkpointing_cpu_offload")
    if reading.on("fp8_base"):
        reading.put("workload.quantization", "fp8-weights", "fp8_base")
    if (moved := reading.number("blocks_to_swap")) is not None:
        reading.counted.append(f"blocks_to_swap {moved}: with all blocks on the GPU, which takes more; --layout "
                               "offload_parameters=0.5 holds half of them on the host")
    if reading.on("use_ema"):
        reading.put("workload.ema", True, "use_ema")
    if reading.source.has("max_train_steps") or not reading.source.has("max_train_epochs"):
        steps = reading.number("max_train_steps")
        if steps is None and by_kohya:
            steps = 1600
            reading.defaults.append("max_train_steps 1600")
        reading.put("workload.steps", steps, "max_train_steps")
    else:
        reading.of_samples = {"workload.epochs": reading.number("max_train_epochs", "num_train_epochs")}
    each, nodes = reading.number("num_processes", "nproc_per_node"), reading.number("num_machines", "nnodes")
    reading.gpus = each * (nodes if nodes and reading.source.has("nproc_per_node") else 1) if each else None


def _trained(reading: Reading, script: str, *, by_kohya: bool) -> None:
    """Read adapters, by their module or by the script's name, or put down that all weights train."""
    module = reading.word("network_module") or ""
    factor = re.search(r"algo['\"]?[=:, ]+['\"]?lokr", str(reading.get("network_args") or "").lower())
    if "lycoris" in module and factor:
        reading.put("workload.method", "lokr", "network_args")
    elif module or (not by_kohya and "lora" in script):
        rank = reading.number("network_dim", "rank", "lora_rank")
        if rank is None:
            rank = 4
            reading.defaults.append("rank 4")
        denoising.adapters(reading, rank, "network_dim", mlp=bool(module))
        if by_kohya and not reading.on("network_train_unet_only") and "dit" not in reading.source.keys:
            reading.counted.append("adapters of the text encoders: not counted")
    else:
        reading.put("workload.method", "full", "the script")


def _samples(reading: Reading, default: int) -> None:
    """Read the size of images and the batch, which the file of the data set states where the line does not."""
    data = reading.file("dataset_config")
    sets = data.keys.get("datasets") if data is not None else None
    found = [one for one in sets if isinstance(one, dict)] if isinstance(sets, list) else []
    general = denoising.plain_names(data.keys) if data is not None else {}

    def stated(key: str) -> list[object]:
        return [one[key] for one in found if key in one] or ([general[key]] if key in general else [])

    sizes, batches, frames = stated("resolution"), stated("batch_size"), stated("target_frames")
    resolution = reading.get("resolution") or max(sizes, key=str, default=None)
    height, width = reading.number("height"), reading.number("width")
    if resolution is not None:
        denoising.size(reading, resolution, "resolution")
    elif height and width:
        reading.put("workload.resolution", f"{width}x{height}", "width")
    counted = [int(str(count)) for each in frames for count in (each if isinstance(each, list) else [each])]
    if counted or reading.source.has("max_num_frames"):
        reading.put("workload.frames", max(counted, default=0) or reading.number("max_num_frames"), "target_frames")
    micro = reading.number("train_batch_size") or max((int(str(each)) for each in batches), default=0)
    if not micro:
        micro = default
        reading.defaults.append(f"train_batch_size {default}")
    denoising.batch(reading, micro, "train_batch_size", reading.number("gradient_accumulation_steps"))
    if trainer.deepspeed(reading):
        reading.defaults.append("sharding as DeepSpeed has it")


READER = Reader("a line that trains a model of images (sd-scripts, musubi-tuner, diffusers)", tells, read)
