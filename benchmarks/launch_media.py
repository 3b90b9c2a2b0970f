"""Plans of images, clips and sound that launch targets are tried with: layouts that vary each axis, by model."""

from __future__ import annotations

from collections.abc import Iterator

from planner.ask.estimate import estimating
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.launch.given import Given, estimated

TRAINED: tuple[tuple[str, dict[str, str]], ...] = (
    ("mbs=2", {"batch": "4"}), ("recompute=none", {}), ("recompute=mixed", {}), ("recompute=full", {}),
    ("recompute=0.25", {}), ("recompute=full,offload_parameters=0.5", {}), ("recompute=full,offload_parameters=1", {}),
    ("recompute=full,offload_activations=1", {}), ("", {"method": "full"}), ("offload_optimizer=1", {"method": "full"}),
    ("", {"method": "lokr", "lokr_factor": "8"}), ("", {"method": "lokr", "lora_targets": "attention,mlp"}),
    ("", {"lora_rank": "64", "lora_targets": "attention,mlp"}), ("", {"latents": "online"}), ("", {"ema": "true"}),
    *(("", {"quantization": base}) for base in ("int8", "fp8", "fp8-weights", "int4", "nf4")),
    *(("", {"optimizer": name}) for name in ("adamw-8bit", "lion", "prodigy", "sgd-momentum", "adafactor")),
    ("dp=4", {"batch": "8", "gpus": "4"}), ("dp=8,zero=3", {"batch": "8", "gpus": "8"}),
    ("cp=2,dp=2", {"batch": "4", "gpus": "4"}), ("", {"resolution": "768x512"}))
"""A layout, and what else is asked, of every model."""
MADE: tuple[tuple[str, dict[str, str]], ...] = (
    ("", {}), ("vae=tiled", {}), ("offload=model", {}), ("offload=sequential", {}), ("mbs=4", {"batch": "4"}),
    *(("", {"quantization": name}) for name in ("fp8", "fp8-weights", "int8", "int8-weights", "nf4", "q4_k_m",
                                                "svdq-int4")),
    ("", {"compile": "true"}), ("", {"step_cache": "first-block-cache"}), ("", {"step_cache": "teacache"}),
    ("", {"guidance": "1"}), ("", {"steps": "7"}), ("", {"resolution": "768x512"}),
    ("ulysses=2", {"gpus": "2"}), ("ring=2", {"gpus": "2"}), ("cfg=2", {"gpus": "2"}), ("pipefusion=2", {"gpus": "2"}),
    ("ulysses=2,pipefusion=2", {"gpus": "4"}))
NODE = "dgx-h100"


def media(target: str, catalog: Catalog) -> Iterator[tuple[str, Given]]:
    """Yield what is asked and what answers it, of every model that the target has, so that each axis is varied."""
    release = catalog.releases.target(target)
    training = release.work == "diffusion"
    for number, model in enumerate(release.models):
        every = TRAINED if training else MADE
        # all of every sixth model, and of the others each a few
        for layout, asked in every if number % 6 == 0 else every[number % 6::6]:
            values = {("limits." if name == "gpus" else "workload.") + name: value for name, value in asked.items()}
            values |= {"workload.model": model}
            values.setdefault("workload.method", "lora" if training else "inference")
            try:
                ask = estimating(None, values, catalog, node=NODE, labels={},
                                 layout=dict(part.split("=") for part in layout.split(",") if part))
                found = ask.answer().assignment
            except PlannerError:
                continue
            yield f"{model} {layout} {asked}", estimated(found)
