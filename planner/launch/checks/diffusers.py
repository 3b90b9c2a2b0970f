"""The classes of diffusers that the emitted script calls: their signatures, formats and methods; no weights."""

from __future__ import annotations

import importlib.util
import inspect
import json
import typing
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock, patch

import diffusers

from planner.launch.checks.started import started

FORMATS = {"Float8DynamicActivationFloat8WeightConfig": "fp8", "Float8WeightOnlyConfig": "fp8-weights",
           "Int8DynamicActivationInt8WeightConfig": "int8", "Int8WeightOnlyConfig": "int8-weights"}
SETTINGS = {"pipeline", "media", "denoiser", "dtype", "quantization", "call", "negative", "batch", "offload", "vae",
            "compile", "step_cache", "cache_threshold", "row", "sample_rate", "frames_per_second"}


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the script comes to."""
    batch = (folder / "generate.sh").exists()
    call = started(folder, "generate.sh" if batch else "serve.sh", "python3")
    assert Path(call.words[0]).name == "generate.py", call.words
    assert call.words[1] == "--port" or batch, call.words
    settings = json.loads((folder / "settings.json").read_text())
    unknown = sorted(set(settings) - SETTINGS)
    assert not unknown, f"keys that nothing reads: {', '.join(unknown)}"
    script = _module(folder / "generate.py")
    kind = getattr(diffusers, settings["pipeline"])
    made = MagicMock()
    # bitsandbytes has no wheel that is of use here
    with patch("importlib.metadata.version", _version), patch.object(
            kind, "from_pretrained", lambda model, **told: _made(made, kind, settings, told)):
        pipe = script.loaded(settings, "model", "cuda")
    asked = _asked(kind, script, settings)
    steps, size = asked["num_inference_steps"], asked
    parts = _classes(kind)
    offload = ("model" if pipe.enable_model_cpu_offload.called else "sequential"
               if pipe.enable_sequential_cpu_offload.called else "none")
    tiled, held = pipe.vae.enable_tiling.called, [getattr(pipe, part) for part in settings["denoiser"]]
    compiled = all(part.compile_repeated_blocks.called or part.compile.called for part in held)
    cached = all(part.enable_cache.called for part in held)
    denoisers = [parts[part] for part in settings["denoiser"]]
    assert not tiled or hasattr(parts["vae"], "enable_tiling"), "its autoencoder has no tiles"
    assert not cached or all(hasattr(one, "enable_cache") for one in denoisers), "its denoiser takes no cache"
    assert all(hasattr(one, "_repeated_blocks") for one in denoisers), "it may compile nothing"
    found: dict[str, object] = {
        "precision": made.planner_precision, "steps": steps, "batch": settings["batch"], "offload": offload,
        "vae": "tiled" if tiled else "whole", "compile": compiled, "cfg": 1, "ulysses": 1, "ring": 1, "pipefusion": 1,
        "step_cache": "first-block-cache" if cached else "none", "rate": not batch}
    if "height" in size:
        found["resolution"] = f"{size['width']}x{size['height']}"
    guided = next((asked[key] for key in ("true_cfg_scale", "guidance_scale") if key in settings["call"]), None)
    frames = next((asked[key] for key in ("num_frames", "frames") if key in settings["call"]), 1)
    if batch:
        found["replicas"] = int(call.environment["COPIES"])
    return {**found, "frames": frames, **({} if guided is None else {"guidance": guided})}


def _version(package: str) -> str:
    return "99.0.0" if package == "bitsandbytes" else version(package)


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("planner_generate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _classes(kind: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the classes of a pipeline's parts, as its constructor names them; the first of several."""
    hints = typing.get_type_hints(kind.__init__)
    return {name: (typing.get_args(hint) or (hint,))[0] for name, hint in hints.items()}


def _made(made: MagicMock, kind: Any, settings: Any, told: dict[str, Any]) -> MagicMock:  # noqa: ANN401
    """Return a stand-in for the pipeline, which knows in which format the denoiser was loaded."""
    assert set(settings["denoiser"]) <= set(inspect.signature(kind.__init__).parameters), settings["denoiser"]
    config = told.get("quantization_config")
    made.planner_precision = "bf16"
    if config is not None:
        config.post_init()
        inner = config.quant_mapping[settings["denoiser"][0]]
        assert set(config.quant_mapping) == set(settings["denoiser"])
        if type(inner).__name__ == "TorchAoConfig":
            made.planner_precision = FORMATS[type(inner.quant_type).__name__]
        else:
            assert inner.load_in_4bit
            made.planner_precision = inner.bnb_4bit_quant_type
    made.planner_dtype = told["torch_dtype"]
    return made


def _asked(kind: Any, script: Any, settings: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the arguments of a call, as the pipeline's own signature takes them."""
    seen: dict[str, Any] = {}

    def called(**told: object) -> object:
        seen.update(inspect.signature(kind.__call__).bind(None, **told).arguments)
        return MagicMock()

    script.call(called, settings, ["a", "b"][:settings["batch"]] or ["a"])
    return seen
