"""Which kind of work a scenario is about: as it says, or as its model does; and keys that only other kinds have."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal, get_args

from planner.catalog.load import Catalog
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.generation import Generation, is_generation
from planner.scenario.posttraining import PostTraining, RlMethod
from planner.scenario.serving import LOADS, Serving
from planner.scenario.unmodeled import seeing
from planner.scenario.words import method_named
from planner.scenario.workload import Training
from planner.yaml_io import Document, Frozen

Kind = Literal["training", "serving", "diffusion", "generation", "posttraining", "portfolio"]
WORK: dict[Kind, type[Frozen]] = {"training": Training, "serving": Serving, "diffusion": DiffusionTraining,
                                  "generation": Generation, "posttraining": PostTraining}
NOUN: dict[Kind, str] = {"training": "training", "serving": "a service", "diffusion": "training a diffusion model",
                         "generation": "running a diffusion model", "posttraining": "reinforcement learning"}
KEYS: dict[Kind, set[str]] = {kind: set(work.model_fields) for kind, work in WORK.items()}
KEYS["generation"] -= Generation.FOREIGN
"""Keys of each kind of workload."""

_MANY = "write --rate, such as 2 images/s, with --e2e for a latency, or --samples for a batch"
INSTEAD: dict[Kind, dict[str, str]] = {
    "serving": {"launchable": "write --engine, which names what starts it"},
    "generation": {"launchable": "`planner launch` starts it with diffusers, or with xDiT where GPUs share an image",
                   "users": _MANY,
                   "concurrency": _MANY, "trace": _MANY, "ttft": "write --e2e, the latency of an image or clip",
                   "tpot": "write --e2e, the latency of an image or clip"},
    "diffusion": {"launchable": "`planner launch` starts it with SimpleTuner, whatever the layout",
                  "tuning": "write --method lora, --method lokr or --method full",
                  "tokens": "write --steps, or --samples and --epochs",
                  "rate": "write --method inference to run it", "e2e": "write --method inference to run it",
                  "documents": "write --method inference and --samples to run it"},
    "posttraining": {"tokens": "write --steps, or --samples, the prompts, and --epochs",
                     "mean_length": "write --input and --output, the tokens of prompts and of answers",
                     "sequence_length": "write --input and --output, the tokens of prompts and of answers"}}
"""What to write for keys of other kinds."""


def kind_by_model(overrides: Mapping[str, object], catalog: Catalog) -> Kind | None:
    """Return the kind of work that a model is for, where it is not a language model's."""
    name = overrides.get("workload.model")
    if not isinstance(name, str) or catalog.known_model(name) is not None:
        return None
    if catalog.known_diffusion(name) is None:
        return None
    work: dict[object, object] = {path.removeprefix("workload."): value for path, value in overrides.items()
                                  if path.startswith("workload.")}
    return "generation" if is_generation(work) else "diffusion"


def kind_by_method(work: Mapping[str, object]) -> Kind | None:
    """Return the kind of work that a method is of, by the keys of a workload, where its name says so."""
    method = method_named(work.get("method"))
    return "posttraining" if isinstance(method, str) and method.lower() in get_args(RlMethod) else None


def said_by_method(data: object) -> Iterator[tuple[tuple[Hashable, ...], Kind]]:
    """Yield the workloads that say their kind by their method alone."""
    for at, work in workloads_in(data):
        method = kind_by_method({"method": work.get("method")})
        if method is not None and "kind" not in work and at[0] != "workloads":
            yield at, method


def said_by_model(data: object, catalog: Catalog) -> Iterator[tuple[tuple[Hashable, ...], Kind]]:
    """Yield the jobs that say their kind by their model alone."""
    for at, work in workloads_in(data):
        known = kind_by_model({f"workload.{key}": value for key, value in work.items()}, catalog)
        if known is not None and "kind" not in work and at[0] == "jobs":
            yield at, known


def said_by_load(data: object) -> Iterator[tuple[tuple[Hashable, ...], Kind]]:
    """Yield the jobs that say by their load that they are a service."""
    for at, work in workloads_in(data):
        if at[0] == "jobs" and "kind" not in work and any(load in work for load in LOADS):
            yield at, "serving"


def made_in_a_batch(data: object) -> Iterator[tuple[Hashable, ...]]:
    """Yield the jobs that make images or clips and count them as documents."""
    for at, work in workloads_in(data):
        if work.get("kind") == "generation" and "documents" in work and "samples" not in work:
            yield at


def kind_of(document: Document) -> Kind:
    """Return what a scenario asks for; training where it does not say. Raises InputError for another kind."""
    data = document.data if isinstance(document.data, dict) else {}
    if "jobs" in data:
        return "portfolio"
    several, work = data.get("workloads"), data.get("workload")
    if several is not None and not (several == [] and isinstance(work, dict)):
        first = several[0] if isinstance(several, list) and several else None
        return "generation" if isinstance(first, dict) and first.get("kind") == "generation" else "serving"
    return _said(document, ("workload", "kind"), work if isinstance(work, dict) else {})


def _said(document: Document, at: tuple[Hashable, ...], work: Mapping[Any, object]) -> Kind:
    """Return the kind that a workload says it is, training where it does not. Raises InputError for another."""
    kind = work.get("kind", "training")
    for known in WORK:
        if kind == known:
            return known
    raise document.error(at, f"expected {' or '.join(map(repr, WORK))}, got {kind!r}")


def refuse_other_kinds(document: Document, kind: Kind) -> None:
    """Refuse what only other kinds of workload have; of many jobs each is of the kind that it says."""
    for at, work in workloads_in(document.data):
        mine, what = (_said(document, (*at, "kind"), work), "job") if kind == "portfolio" else (kind, "scenario")
        for key in work:
            others = [NOUN[other] for other in WORK if key in KEYS[other]
                      and not (other == "generation" and key in KEYS["serving"])]
            if others and key not in KEYS[mine]:
                told = INSTEAD.get(mine, {}).get(str(key))
                raise document.error((*at, key), f"applies to {' or '.join(others)}; this {what} is {NOUN[mine]}"
                                     + (f": {told}" if told else ""))


def workloads_in(data: object) -> Iterator[tuple[tuple[Hashable, ...], dict[Hashable, object]]]:
    """Yield every block of a workload with its path."""
    blocks = data if isinstance(data, dict) else {}
    several = blocks.get("workloads")
    listed = enumerate(several if isinstance(several, list) else [])
    jobs = blocks.get("jobs")
    asked = [(("jobs", i, "workload"), job.get("workload")) for i, job in enumerate(
        jobs if isinstance(jobs, list) else []) if isinstance(job, dict)]
    for at, work in [(("workload",), blocks.get("workload")), *((("workloads", i), work) for i, work in listed),
                     *asked]:
        if isinstance(work, dict):
            yield at, work


def refuse_wrong_kind(document: Document, catalog: Catalog) -> None:
    """Refuse a file whose model is for another kind of work than it states."""
    for at, work in workloads_in(document.data):
        known = kind_by_model({"workload.model": work.get("model")}, catalog)
        if known is not None and work.get("kind", "training") not in ("diffusion", "generation"):
            raise document.error((*at, "model"), f"{work['model']} is a diffusion model: write kind: diffusion beside "
                                 "it to train it, or kind: generation to run it")


def refuse_unmodeled(document: Document, catalog: Catalog) -> None:
    """Refuse a model of a kind that is not modeled by what it is, before its keys are held against another kind's."""
    for at, work in workloads_in(document.data):
        name = work.get("model")
        if isinstance(name, dict):
            raise document.error((*at, "model"), "a model is named (llama-3.1-8b), or is a Hugging Face id, a size, "
                                 "or the path of a config.json: write these keys into one and give its path")
        if isinstance(name, str) and catalog.known_model(name) is None and catalog.known_diffusion(name) is None:
            seen = seeing(name)
            if seen is not None:
                raise document.error((*at, "model"), seen)
