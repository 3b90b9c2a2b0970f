"""Words of training in a question of a service: what they mean there, as one with `--method inference` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from planner.catalog.recipes import UsualMade
from planner.scenario.default import Default, Defaults
from planner.scenario.serving import LOADS, Quantization
from planner.scenario.workload import EVERY
from planner.yaml_io import Document

METHOD = "inference"
_TRAINED = {"tokens", "samples", "epochs", "dataset", "steps"}
"""Keys that say how much is trained."""
_CALLED = {"sequence_length": "max_model_len", "stack": "engine", "images": "images_per_request"}
"""Keys of training, and what they are of a service."""
_OTHERWISE = {"diffusion": {"global_batch": "batch"},
              "generation": {"global_batch": "batch", "images": "samples", "documents": "samples"},
              "training": {"batch": "global_batch"}, "posttraining": {"global_batch": "prompts", "batch": "prompts"}}
"""Keys of other kinds, and what they are where a diffusion model trains, or is run, and where a language model trains;
a batch of reinforcement learning is of prompts, as verl and OpenRLHF have it.
"""


def as_asked(data: object) -> object:
    """Return what a question holds, in our words, with keys that another kind of work has as those of its own."""
    data = as_service(data)
    work = data.get("workload") if isinstance(data, dict) else None
    calls = _calls(work) if isinstance(work, dict) else {}
    if isinstance(work, dict) and isinstance(data, dict) and (
            work.get("kind"), work.get("method")) == ("diffusion", "pretrain"):
        # a step from scratch is one of all weights
        return as_asked({**data, "workload": {**work, "method": "full"}})
    if calls and isinstance(work, dict):
        named = {calls[key] if key in calls and calls[key] not in work else key: value for key, value in work.items()}
        return {**data, "workload": named}  # type: ignore[dict-item]
    return data


def _calls(work: Mapping[object, object]) -> Mapping[str, str]:
    """Return what keys of other kinds are called in a workload: the batch of a service is what it has in flight."""
    kind = work.get("kind", "training")
    if kind == "serving":
        name = "max_sequences" if work.keys() & set(LOADS) else "concurrency"
        return {"batch": name, "global_batch": name}
    return _OTHERWISE.get(str(kind), {})


def as_service(data: object) -> object:
    """Return what a question holds, in our words, with a language model that is run asked about as a service.

    It is one by method inference, where nothing says what kind of work it is, or by its kind.
    """
    work = data.get("workload") if isinstance(data, dict) else None
    if not isinstance(work, Mapping) or not isinstance(data, dict):
        return data
    runs, model = work.get("method") == METHOD, work.get("model")
    asks = runs and "kind" not in work and isinstance(model, str) and "," not in model and model != EVERY
    if work.get("kind") != "serving" and not (asks and not work.keys() & _TRAINED):
        return data
    served = {key: value for key, value in work.items() if not (key == "method" and runs)} | {"kind": "serving"}
    for key, name in _CALLED.items():
        said = served.get(key)
        if said is None or name in served or (isinstance(said, list) and not all(isinstance(x, str) for x in said)):
            continue
        served[name] = ",".join(said) if isinstance(said, list) else said
        served.pop(key)
    formats = served.get("precision")
    if "quantization" not in served and isinstance(formats, list) and all(
            isinstance(name, str) and name in (*get_args(Quantization), "fp16") for name in formats):
        served["quantization"] = list(dict.fromkeys("bf16" if name == "fp16" else name for name in formats))
        served.pop("precision")
    return {**data, "workload": served}


def with_images(document: Document, usual: UsualMade) -> tuple[Document, Defaults]:
    """Return a question of running a diffusion model that says no load with a batch to make, which is said."""
    data = document.data if isinstance(document.data, dict) else {}
    work = data.get("workload")
    if not isinstance(work, dict) or work.get("kind") != "generation" or data.get("objective") in ("rate", "users") or (
            any(work.get(key) is not None for key in ("rate", "samples", "e2e", *LOADS))):
        return document, []
    count = usual.samples
    said = Default(name="samples", value=str(count), why=f"{usual.example}: give samples, or a rate")
    return replace(document, data={**data, "workload": {**work, "samples": count}}), [said]
