"""Python scripts that run a pipeline of diffusers: `FluxPipeline.from_pretrained(...)`, and what it is called with."""

from __future__ import annotations

from planner.scenario.configs import denoising
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SWITCHES = {"enable_model_cpu_offload": ("offload", "model"), "enable_vae_tiling": ("vae", "tiled"),
            "enable_sequential_cpu_offload": ("offload", "sequential")}
"""Methods of a pipeline -> the axis that each sets."""


def _pipeline(source: Source) -> str | None:
    return next((word for word in source.words if word.endswith("Pipeline.from_pretrained") or word.endswith(
        "PipelineForText2Image.from_pretrained")), None)


def tells(source: Source) -> bool:
    """Say whether it is one, by the pipeline that it makes."""
    return source.form == "python" and _pipeline(source) is not None


def read(reading: Reading) -> None:
    """Read model, size of images, steps, guidance and offload."""
    denoising.model(reading, reading.text("model_name_or_path", "pretrained_model_name_or_path"),
                    _pipeline(reading.source) or "", "sdxl")
    reading.put("workload.kind", "generation", "the pipeline")
    width, height = reading.number("width"), reading.number("height")
    if width and height:
        reading.put("workload.resolution", f"{width}x{height}", "width")
    reading.put("workload.steps", reading.number("num_inference_steps"), "num_inference_steps")
    guidance = reading.text("guidance_scale")
    reading.put("workload.guidance", float(guidance) if guidance else None, "guidance_scale")
    frames = reading.number("num_frames")
    reading.put("workload.frames", frames if frames != 1 else None, "num_frames")
    reading.put("workload.batch", reading.number("num_images_per_prompt"), "num_images_per_prompt")
    if any(word == "torch.compile" for word in reading.source.words):
        reading.put("workload.compile", True, "torch.compile")
    for word in reading.source.words:
        axis = SWITCHES.get(word.rpartition(".")[2])
        if axis is not None:
            reading.axis(*axis, word)
    reading.get("torch_dtype", "max_sequence_length")


READER = Reader("a Python script that runs a pipeline of diffusers", tells, read)
