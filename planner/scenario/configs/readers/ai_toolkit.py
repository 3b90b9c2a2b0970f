"""Configs that train models of images: ai-toolkit's YAML, SimpleTuner's JSON and diffusion-pipe's TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.scenario.configs import denoising
from planner.scenario.configs.launchers import launched
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source, beside_of, flat
from planner.scenario.configs.trainer import recompute

STARTS = ("simpletuner", "simpletuner.train")
"""What starts SimpleTuner, whose config is in the folder."""
CONFIG = "config.json"


def tells(source: Source) -> bool:
    """Say whether it is one: a list of processes, a family of models, or a model with an adapter of its own table."""
    return (source.form == "yaml" and source.has("config.process")) or (
        source.form == "command" and any(word in STARTS for word in source.every_word())) or (
        source.form == "json" and source.has("model_type", "model_family")) or (
        source.form == "toml" and source.has("model.type") and source.has("micro_batch_size_per_gpu"))


def read(reading: Reading) -> None:
    """Read model, adapters, size of images, batch, optimizer and steps."""
    processes = reading.source.keys.get("config.process")
    if isinstance(processes, list) and processes and isinstance(processes[0], Mapping):
        reading.source = replace(reading.source, keys=dict(flat(processes[0])))
        _ai_toolkit(reading)
    elif reading.source.form in ("json", "command"):
        if reading.source.form == "command":
            started, reading.source = reading.source, beside_of(reading.source, CONFIG)
            reading.gpus = launched(Reading(started))
        _simple_tuner(reading)
    else:
        _diffusion_pipe(reading)


def _ai_toolkit(reading: Reading) -> None:
    named = reading.text("model.name_or_path")
    arch = reading.word("model.arch") or next((key for key in ("is_flux", "is_xl", "is_v3") if reading.on(
        f"model.{key}")), "")
    denoising.model(reading, named, {"is_xl": "sdxl", "is_v3": "sd3"}.get(arch, arch), "flux.1-dev")
    if reading.source.has("network"):
        denoising.adapters(reading, reading.number("network.linear", "network.rank") or 16, "network.linear", mlp=True)
    else:
        reading.put("workload.method", "full", "no network")
    if reading.on("model.quantize"):
        kind = reading.word("model.qtype") or "qfloat8"
        reading.put("workload.quantization", "fp8-weights" if "8" in kind else "int4", "model.quantize")
    sets = reading.get("datasets")
    of_images = [one for one in sets if isinstance(one, Mapping)] if isinstance(sets, list) else []
    for one in of_images:
        denoising.size(reading, one.get("resolution"), "datasets.resolution")
        reading.put("workload.frames", one.get("num_frames") if one.get("num_frames") != 1 else None,
                    "datasets.num_frames")
    cached = any(one.get("cache_latents_to_disk") or one.get("cache_latents") for one in of_images)
    reading.put("workload.latents", "cached" if cached else "online", "datasets.cache_latents")
    denoising.batch(reading, reading.number("train.batch_size") or 1, "train.batch_size",
                    reading.number("train.gradient_accumulation_steps", "train.gradient_accumulation"))
    denoising.recompute(reading, "train.gradient_checkpointing")
    denoising.optimizer(reading, "train.optimizer")
    reading.put("workload.ema", reading.on("train.ema_config.use_ema") or None, "train.ema_config.use_ema")
    reading.put("workload.steps", reading.number("train.steps"), "train.steps")
    reading.gpus = 1


def _simple_tuner(reading: Reading) -> None:
    dashed = {key.lstrip("-"): value for key, value in reading.source.keys.items()}
    reading.source = replace(reading.source, keys=dashed)
    family = reading.word("model_family") or ""
    flavour = reading.text("model_flavour")
    denoising.model(reading, reading.text("pretrained_model_name_or_path"), family, "")
    if not reading.source.has("pretrained_model_name_or_path"):
        reading.called = "simpletuner", {"family": family, **({"flavour": flavour} if flavour else {})}
    if reading.word("model_type") == "lora":
        denoising.adapters(reading, reading.number("lora_rank") or 16, "lora_rank", mlp=False)
        if reading.word("lora_type") == "lycoris":
            reading.put("workload.method", "lokr", "lora_type")
    else:
        reading.put("workload.method", "full", "model_type")
    pixels = reading.number("resolution")
    reading.put("workload.resolution", str(pixels) if pixels and pixels > 4 else None, "resolution")
    denoising.batch(reading, reading.number("train_batch_size") or 1, "train_batch_size",
                    reading.number("gradient_accumulation_steps"))
    denoising.recompute(reading, "gradient_checkpointing")
    parted = reading.number("gradient_checkpointing_segment_stride", "gradient_checkpointing_interval") or 1
    if parted > 1 and reading.layout["recompute"] == "full":
        reading.axis("recompute", "mixed", "gradient_checkpointing_interval")
    denoising.optimizer(reading, "optimizer")
    if (base := reading.word("base_model_precision")) not in (None, "no_change", "bf16"):
        formats = {"int8-quanto": "int8", "int8-torchao": "int8", "int4-quanto": "int4", "nf4-bnb": "nf4"}
        reading.put("workload.quantization", formats.get(str(base), "fp8-weights"), "base_model_precision")
    reading.put("workload.ema", reading.on("use_ema") or None, "use_ema")
    if reading.on("fsdp_enable"):
        reading.axis("zero", 2 if reading.word("fsdp_reshard_after_forward") == "false" else 3, "fsdp_enable")
    if reading.on("ramtorch"):
        percent = reading.number("ramtorch_transformer_percent") or 100
        reading.axis("offload_parameters", f"{percent / 100:g}", "ramtorch")
    if reading.on("gradient_checkpointing_offload_attention"):
        reading.axis("offload_activations", 1, "gradient_checkpointing_offload_attention")
    if reading.word("gradient_checkpointing_backend") == "unsloth":
        reading.axis("offload_checkpoints", 1, "gradient_checkpointing_backend")
    steps = reading.get("max_train_steps")
    reading.put("workload.steps", int(str(steps)) if str(steps).isdecimal() and int(str(steps)) else None,
                "max_train_steps")
    reading.gpus = reading.number("num_processes") or reading.gpus


def _diffusion_pipe(reading: Reading) -> None:
    paths = ("model.diffusers_path", "model.checkpoint_path", "model.ckpt_path", "model.transformer_path")
    denoising.model(reading, reading.text(*paths), reading.word("model.type") or "", "")
    if reading.source.has("adapter"):
        denoising.adapters(reading, reading.number("adapter.rank") or 16, "adapter.rank", mlp=True)
    else:
        reading.put("workload.method", "full", "no adapter")
    denoising.batch(reading, reading.number("micro_batch_size_per_gpu") or 1, "micro_batch_size_per_gpu",
                    reading.number("gradient_accumulation_steps"))
    checkpointing = reading.get("activation_checkpointing")
    recompute(reading, checkpointing not in (None, False), "activation_checkpointing")
    if checkpointing == "unsloth":
        reading.axis("offload_checkpoints", 1, "activation_checkpointing")
    denoising.optimizer(reading, "optimizer.type")
    if "float8" in (reading.word("model.transformer_dtype") or ""):
        reading.put("workload.quantization", "fp8-weights", "model.transformer_dtype")
    repeats = _files(reading)
    reading.of_samples = {"workload.epochs": epochs * repeats} if (epochs := reading.number("epochs")) else {}
    stages = reading.number("pipeline_stages") or 1
    if stages > 1:
        reading.counted.append(f"pipeline_stages {stages}: as copies, each with all blocks")


def _files(reading: Reading) -> float:
    """Read the size of images and clips in diffusion-pipe's file of the data set, and return how often each is seen."""
    data = reading.file("dataset")
    if data is None:
        return 1
    sets = data.keys.get("directory")
    found = [data.keys, *(one for one in (sets if isinstance(sets, list) else []) if isinstance(one, Mapping))]

    def stated(key: str) -> list[object]:
        return [each for one in found for each in (one[key] if isinstance(one.get(key), list) else [])]

    sizes, frames = stated("resolutions"), [each for each in stated("frame_buckets") if isinstance(each, int)]
    denoising.size(reading, sizes[0] if len(sizes) == 1 else sizes or None, "resolutions")
    if max(frames, default=1) > 1:
        reading.put("workload.frames", max(frames), "frame_buckets")
        reading.counted.append(f"frame_buckets {sorted(set(frames))}: at the most")
    repeats = {one["num_repeats"] for one in found if isinstance(one.get("num_repeats"), int | float)} - {1}
    if len(repeats) > 1:
        reading.counted.append(f"num_repeats {sorted(repeats)}: once, as folders differ")
    return repeats.pop() if len(repeats) == 1 else 1


READER = Reader("a config that trains a model of images (ai-toolkit, SimpleTuner, diffusion-pipe)", tells, read)
