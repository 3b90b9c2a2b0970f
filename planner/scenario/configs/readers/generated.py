"""What makes images and clips: a line of xDiT's runner or its examples, and settings.json of a launch folder."""

from __future__ import annotations

from planner.scenario.configs import denoising
from planner.scenario.configs.launchers import launched
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

DEGREES = {"ulysses": "ulysses_degree", "ring": "ring_degree", "pipefusion": "pipefusion_parallel_degree"}
"""Axes -> xDiT's flags."""


def tells(source: Source) -> bool:
    """Say whether it is one: a degree that only xDiT has, or the keys of the settings."""
    if source.form == "command":
        return any(map(source.has, DEGREES.values()))
    return source.form == "json" and source.has("pipeline", "call", "vae", "offload", "row")


def read(reading: Reading) -> None:
    """Read model, size of images, steps, guidance, batch, and what splits or saves."""
    reading.put("workload.kind", "generation", "the kind of file")
    prefix = "" if reading.source.form == "command" else "call."
    width, height = reading.number(f"{prefix}width"), reading.number(f"{prefix}height")
    reading.put("workload.resolution", f"{width}x{height}" if width and height else None, f"{prefix}width")
    reading.put("workload.steps", reading.number(f"{prefix}num_inference_steps"), f"{prefix}num_inference_steps")
    guidance = reading.text(f"{prefix}guidance_scale")
    reading.put("workload.guidance", float(guidance) if guidance else None, f"{prefix}guidance_scale")
    frames = reading.number(f"{prefix}num_frames")
    reading.put("workload.frames", frames if frames != 1 else None, f"{prefix}num_frames")
    if prefix:
        _settings(reading)
    else:
        _xdit(reading)


def _xdit(reading: Reading) -> None:
    named = reading.text("model") or ""
    denoising.model(reading, named, named, "")
    reading.put("workload.kind", "generation", "the program")
    reading.called = "xdit", {"name": named}
    shares = 1
    for axis, key in DEGREES.items():
        degree = reading.number(key) or 1
        reading.axis(axis, degree, key)
        shares *= degree
    halves = 2 if reading.on("use_cfg_parallel") else 1
    reading.axis("cfg", halves, "use_cfg_parallel")
    reading.axis("vae", "tiled" if reading.on("enable_tiling") else None, "enable_tiling")
    batch = reading.number("batch_size")
    reading.axis("mbs", batch, "batch_size")
    if reading.on("use_torch_compile"):
        reading.put("workload.compile", True, "use_torch_compile")
    if reading.on("use_fp8_gemms", "use_fp8_t5_encoder"):
        reading.put("workload.quantization", "fp8", "use_fp8_gemms")
    reading.gpus = launched(reading) or shares * halves


def _settings(reading: Reading) -> None:
    reading.names = (reading.text("row.model") or "",)
    reading.axis("mbs", reading.number("batch"), "batch")
    for axis in ("offload", "vae"):
        reading.axis(axis, reading.word(axis), axis)
    reading.put("workload.compile", reading.on("compile") or None, "compile")
    cache = reading.word("step_cache")
    reading.put("workload.step_cache", cache if cache != "none" else None, "step_cache")
    stored = reading.word("row.quantization")
    reading.put("workload.quantization", stored if stored not in ("", "bf16") else None, "row.quantization")
    sound = reading.text("call.audio_duration")
    reading.put("workload.audio", f"{sound} s" if sound else None, "call.audio_duration")
    reading.gpus = reading.number("row.gpus")


READER = Reader("a line of xDiT, or settings that diffusers makes images by", tells, read)
