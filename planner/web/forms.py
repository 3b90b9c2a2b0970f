"""The fields of a question: made of the table of flags, with its help; the usual ones first, the others folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import get_args

from planner.ask.estimate import HEARD, Measured
from planner.catalog.architecture import Model
from planner.catalog.diffusion import Diffusion
from planner.catalog.load import Catalog
from planner.catalog.preference import Preference
from planner.catalog.stack import Weights
from planner.scenario.diffusion import DiffusionMethod
from planner.scenario.flags import NAMES, TABLE
from planner.scenario.kind import KEYS, Kind, kind_by_model
from planner.scenario.posttraining import RlMethod
from planner.web.openapi import TOLD
from planner.web.question import FROM, OPTIONS, UPLOADED


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of one kind of work: what the page calls it, and which of its keys are not folded."""

    label: str
    work: Kind
    """Of the keys that it has."""
    methods: tuple[str, ...]
    """Offered here; where there is no blank one, the first of them is meant."""
    start: Mapping[str, str]
    """What the first page shows where nothing is asked."""
    usual: frozenset[str]
    without: frozenset[str] = frozenset()
    """Keys that only other methods of the same work have."""
    has_blank: bool = True
    """Whether the method may be left open."""


_OF_PREFERENCES = frozenset({"reference", "tuning"})
_PIXELS = frozenset({"samples", "resolution", "frames", "audio", "steps", "batch"})
FORMS = {
    "training": Form("Training", "training", get_args(Weights),
                     {"model": "llama-3.1-70b", "method": "lora", "node": "dgx-h100"},
                     frozenset({"tokens", "seq_len", "global_batch", "samples", "epochs", "mean_length"}),
                     _OF_PREFERENCES),
    "serving": Form("A service", "serving", (),
                    {"model": "llama-3.1-70b", "node": "dgx-h100", "input": "1000", "output": "300",
                     "concurrency": "32"},
                    frozenset({"rate", "users", "concurrency", "input", "output", "ttft", "tpot", "quantization"})),
    "preferences": Form("Tuning on preferences", "training", get_args(Preference),
                        {"model": "llama-3.1-8b", "method": "dpo", "node": "dgx-h100"},
                        frozenset({"tuning", "samples", "epochs", "mean_length", "seq_len", "global_batch"}),
                        frozenset({"tokens", "packing", "trained_layers"}), has_blank=False),
    "posttraining": Form("Reinforcement learning", "posttraining", get_args(RlMethod),
                         {"model": "qwen2.5-7b", "method": "grpo", "node": "dgx-h100", "input": "512",
                          "output": "1500"},
                         frozenset({"steps", "prompts", "samples_per_prompt", "input", "output", "tuning"}),
                         has_blank=False),
    "generation": Form("Making images, clips or sound", "generation", ("inference",),
                       {"model": "flux.1-dev", "method": "inference", "node": "h100-sxm-1x"},
                       _PIXELS | {"rate", "e2e", "quantization"}, has_blank=False),
    "diffusion": Form("Training a diffusion model", "diffusion", get_args(DiffusionMethod),
                      {"model": "flux.1-dev", "method": "lora", "node": "rtx-4090-1x"}, _PIXELS | {"epochs"},
                      has_blank=False)}
"""Form -> what it holds."""
USUAL = {"model", "method", "on", "deadline", "budget", "gpus", "objective", "node", "layout", "why_not", "pareto",
         "terms", "own", "largest"}
"""Fields that no form folds, beside its own."""
FOLDED_HERE = {"estimate": {"tokens", "samples", "epochs", "mean_length"}}
"""Verb -> fields that are folded there all the same: they change what a plan is, and hardly an estimate."""
FIRST = ("node", "model", "why_not")
"""Fields that come before the others: the last of them first of all."""
WORDS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "End-to-end latency", "gpus": "GPUs", "max_gpus": "Most GPUs",
         "max_nodes": "Most nodes", "max_power": "Most power", "seq_len": "Sequence length", "on": "Hardware",
         "lora_rank": "LoRA rank", "kv_cache": "KV cache", "think": "Thinking time", "own": "Own hardware",
         "input": "Prompt tokens", "output": "Output tokens", "day": "Rate by hour", "node": "Node type",
         "layout": "Layout", "pareto": "Frontier of", "why_not": "Why not", "nodes": "Nodes",
         "largest": "Largest that fits", "jobs": "Log of jobs", "wait": "They may wait",
         "requests": "Trace of requests", "replay": "Replay a trace", "dataset": "Dataset"}
"""Field -> what it is called where its name alone would not say."""
LISTED = {"model": "models", "node": "nodes", "on": "hardware", "stack": "stacks", "engine": "engines",
          "provider": "providers"}
"""Field -> the names of the catalog that it is chosen from."""
SLIDERS = {"seq_len": (7, 20), "global_batch": (0, 14), "gpus": (0, 14), "concurrency": (0, 10), "input": (4, 17),
           "output": (0, 14), "users": (0, 14), "batch": (0, 7), "frames": (0, 8), "prompts": (4, 12),
           "samples_per_prompt": (0, 7)}
"""Field -> the powers of two between which a slider moves it."""


OF_A_PORTFOLIO = ("on", "terms", "own", "budget", "max_gpus")
"""Fields of the page of portfolios, beside its jobs."""
OF_A_LOG = ("jobs", "wait")
"""Those of a log of jobs."""
CHOICES: Mapping[str, tuple[str, ...]] = {"prefer": ("simple",), "largest": get_args(Measured)}
"""Field of a verb -> what it may be."""
ONLY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "largest": {**dict.fromkeys(("micro-batch", "sequence", "model"), ("training", "preferences")),
                    **dict.fromkeys(("resolution", "frames", "batch", "audio"), ("generation", "diffusion"))},
        "method": {method: tuple(form for form, said in FORMS.items() if method in said.methods)
                   for said in FORMS.values() for method in said.methods}}
"""Field -> its choices that only some forms have."""


@dataclass(frozen=True, slots=True)
class Input:
    """One field of a form."""

    name: str
    label: str
    help: str
    value: str
    choices: tuple[str, ...] = ()
    switch: bool = False
    listed: str = ""
    """The list of names that it is chosen from."""
    slider: tuple[int, int] | None = None
    forms: tuple[str, ...] = tuple(FORMS)
    """The forms that have it."""
    usual: tuple[str, ...] = tuple(FORMS)
    """Those that do not fold it."""
    is_file: bool = False
    """Whether it is uploaded."""
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Choices that only some forms have."""


def inputs_of_a_portfolio(values: Mapping[str, str]) -> tuple[list[Input], list[Input]]:
    """Return the fields of a portfolio beside its jobs, and those of a log of jobs, with their values."""
    known = {one.name: one for one in _inputs("plan", values)}
    return [known[name] for name in OF_A_PORTFOLIO], [known[name] for name in OF_A_LOG]


def inputs(verb: str, values: Mapping[str, str]) -> list[Input]:
    """Return the fields of a verb with their values: of an estimate those that it heeds."""
    return [one for one in _inputs(verb, values) if one.name not in (*OF_A_LOG, FROM)]


def _inputs(verb: str, values: Mapping[str, str]) -> list[Input]:
    folded = FOLDED_HERE.get(verb, set())
    made = []
    for name, flag in TABLE.items():
        if verb == "estimate" and not flag.path.startswith(HEARD):
            continue
        one = Input(name, called(name), flag.help, values.get(name) or values.get(flag.also, ""),
                    flag.choices, flag.switch, LISTED.get(name, ""), SLIDERS.get(name), _forms_with(flag.path),
                    is_file=name in UPLOADED, only=ONLY.get(name, {}))
        made.append(replace(one, usual=tuple(form for form in one.forms if name not in folded and (
            name in USUAL or name in FORMS[form].usual or one.value))))
    for name in OPTIONS[verb]:
        only = ONLY.get(name, {})
        forms = tuple(dict.fromkeys(form for admitted in only.values() for form in admitted)) or (
            ("serving",) if name == "replay" else tuple(FORMS))
        said = values.get(name, "")
        made.append(Input(name, called(name), TOLD[name], said, CHOICES.get(name, ()), listed=LISTED.get(name, ""),
                          forms=forms, usual=forms if name in USUAL or said else (), is_file=name in UPLOADED,
                          only=only))
    return sorted(made, key=lambda field: -FIRST.index(field.name) if field.name in FIRST else 1)


def called(name: str) -> str:
    """Return what a field is called."""
    return WORDS.get(name) or name.replace("_", " ").capitalize()


def _forms_with(path: str) -> tuple[str, ...]:
    """Return the forms that have a value, by its path."""
    block, _, key = path.partition(".")
    return tuple(name for name, form in FORMS.items() if block != "workload"
                 or (key in KEYS[form.work] and key not in form.without
                     and (key != "method" or bool(form.methods))))


def form_of(values: Mapping[str, str], catalog: Catalog) -> str:
    """Return the form that values are of: by the method, by the model, or by what only services have."""
    method = values.get("method", "").lower()
    for name in ("preferences", "posttraining"):
        if method in FORMS[name].methods:
            return name
    made = kind_by_model({NAMES[name]: value for name, value in values.items() if name in NAMES}, catalog)
    if made is not None:
        return str(made)
    served = any(name in TABLE and {"serving", "generation"}.issuperset(_forms_with(TABLE[name].path))
                 for name in values)
    return "serving" if served else "training"


@cache
def names(catalog: Catalog) -> dict[str, list[str]]:
    """Return the names of the catalog that fields are chosen from, by list."""
    models: list[Model | Diffusion] = [catalog.model(name) for name in catalog.names("models")]
    nodes, gpus = catalog.names("nodes"), catalog.names("gpus")
    made = [diffusion for name in catalog.names("diffusion") if (diffusion := catalog.known_diffusion(name))]
    return {"models": _called(models), "diffusion": _called(made),
            "nodes": nodes, "hardware": sorted({*gpus, *nodes}), "stacks": catalog.names("stacks"),
            "engines": catalog.names("engines"), "providers": catalog.names("prices")}


def _called(models: Iterable[Model | Diffusion]) -> list[str]:
    return sorted({name for model in models for name in filter(None, (model.name, model.hf_id))})
