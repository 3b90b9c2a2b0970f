"""diffusers: a script that makes images with the pipeline of a model, and its settings as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from planner.launch.axes import No, Settings, TableOf, only, settings_of
from planner.launch.emitter import GenerationEmitter
from planner.launch.formats import as_text, by_file
from planner.launch.generated import Generated
from planner.launch.making import SCRIPT, SETTINGS, program, script_text
from planner.launch.program import Program

TORCHAO = {"fp8": "Float8DynamicActivationFloat8WeightConfig", "fp8-weights": "Float8WeightOnlyConfig",
           "int8": "Int8DynamicActivationInt8WeightConfig", "int8-weights": "Int8WeightOnlyConfig"}
BITS = {"nf4": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}}
THRESHOLD = 0.08
"""Of the first block's residual, at which a step is left out."""


def _said(key: str, value: object) -> Settings:
    return {f"{SETTINGS}:{key}": value}


def _model(work: Generated) -> Settings | No:
    known = work.release.models
    if work.model.name not in known:
        return No(f"{work.model.name} (it has {', '.join(sorted(known))})")
    names = known[work.model.name]
    return {**_said("pipeline", names["pipeline"]), **_said("media", work.made.media),
            **_said("denoiser", names.get("denoiser", "transformer").split("+"))}


def _precision(work: Generated) -> Settings | No:
    value = work.placed.layout.precision
    dtype = "bfloat16" if "bf16" in work.gpu.peak else "float16"
    if value in ("bf16", "fp16"):
        return {**_said("dtype", dtype), **_said("quantization", None)}
    if value in TORCHAO:
        return {**_said("dtype", dtype), **_said("quantization", {"by": "torchao", "config": TORCHAO[value]})}
    if value in BITS:
        return {**_said("dtype", dtype), **_said("quantization", {"by": "bitsandbytes", "config": BITS[value]})}
    return No(f"{value} (a file or an engine of its own; it loads bf16, {', '.join((*TORCHAO, *BITS))})",
              {"quantization": "nf4"})


def _extent(work: Generated) -> Settings:
    width, height = work.size
    names = work.release.models.get(work.model.name, {})
    if work.made.media == "audio":
        seconds = float(work.made.resolution.removesuffix(" s"))
        return {**_said(f"call.{names.get('length', 'audio_duration')}", seconds),
                **_said("sample_rate", work.model.autoencoder.sample_rate)}
    frames = {**_said(f"call.{names.get('frames', 'num_frames')}", work.made.frames),
              **_said("frames_per_second", int(names.get("fps", "16")))} if work.made.media == "video" else {}
    return {**_said("call.height", height), **_said("call.width", width), **frames}


def _guidance(work: Generated) -> Settings | No:
    names = work.release.models.get(work.model.name, {})
    key, unguided = names.get("guidance", "guidance_scale"), work.made.passes == 1
    if key == "none":
        # its guider has a scale of its own, which a call cannot change
        return _said("negative", None) if work.guidance == work.model.sampling.guidance else No(
            f"{work.guidance:g} (its pipeline has its own, {work.model.sampling.guidance:g})",
            {"guidance": work.model.sampling.guidance})
    told = key == "true_cfg_scale" and not unguided
    return {**_said(f"call.{key}", work.guidance), **_said("negative", " " if told else None)}


def _cache(work: Generated) -> Settings | No:
    asked, known = work.asked.step_cache, work.release.models.get(work.model.name, {}).get("caches", "")
    if asked not in ("none", known):
        return No(f"{asked} (of {work.model.name} it has {known or 'none'})", {"step_cache": known or "none"})
    return {**_said("step_cache", asked), **_said("cache_threshold", THRESHOLD)}


TABLE: TableOf[Generated] = {
    ("model",): _model,
    ("candidate", "replicas", "rate"): lambda w: {},
    ("precision",): _precision,
    ("resolution", "frames"): _extent,
    ("steps",): lambda w: _said("call.num_inference_steps", w.made.steps),
    ("guidance", "passes"): _guidance,
    ("batch",): lambda w: _said("batch", w.made.batch),
    ("offload",): lambda w: _said("offload", w.made.offload),
    ("vae",): lambda w: _said("vae", w.made.vae),
    ("compile",): lambda w: _said("compile", w.asked.compile),
    ("step_cache",): _cache,
    **{(axis,): only(axis, 1, reason="one process makes an image; xdit has several", instead={axis: 1})
       for axis in ("cfg", "ulysses", "ring", "pipefusion")},
}


def row_of(work: Generated, stack: str) -> dict[str, object]:
    """Return what a run says of itself in the columns of published ones; what is measured is added by the script."""
    made, released = work.made, work.release
    return {"id": "", "source": "a run of this folder", "as_of": released.as_of, "kind": "inference",
            "stack": f"{stack} {released.release}", "model": work.model.name, "gpu": work.gpu.name, "gpus": work.gpus,
            "method": "infer", "resolution": made.resolution, "frames": made.frames, "batch": made.batch,
            "steps": made.steps, "precision": "bf16", "quantization": work.placed.layout.precision,
            "offload": "" if made.offload == "none" else made.offload, "compile": work.asked.compile,
            **dict.fromkeys(("optimizer", "checkpointing", "lora_rank", "parallel", "step_time_s", "throughput",
                             "throughput_unit", "tflops_per_gpu", "weights_mem_gb", "fits", "component", "params_b",
                             "notes"), "")}


def emit(served: Sequence[Generated]) -> Program:
    """Return the script, its settings, and what starts it on every node."""
    first = served[0]
    settings = by_file(settings_of(first, TABLE))[SETTINGS]
    settings["row"] = row_of(first, "diffusers")
    head = f"diffusers {first.release.release}"
    files = {SETTINGS: as_text(SETTINGS, head, settings), SCRIPT: f"# {head}\n" + script_text("generate.py")}
    return program(served, files, f'python3 "$here/{SCRIPT}"')


EMITTER = GenerationEmitter("diffusers", TABLE, emit)
