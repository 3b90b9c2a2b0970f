"""The fields of a question: made of the table of flags, with its help; the usual ones first, the others folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from planner.ask.estimate import HEARD
from planner.catalog.architecture import Model
from planner.catalog.diffusion import Diffusion
from planner.catalog.load import Catalog
from planner.scenario.flags import TABLE, Flag
from planner.scenario.serving import Serving
from planner.scenario.workload import Training
from planner.web.openapi import TOLD
from planner.web.question import OPTIONS

USUAL = {"model", "method", "tokens", "seq_len", "global_batch", "samples", "epochs", "mean_length", "rate", "users",
         "concurrency", "input", "output", "ttft", "tpot", "quantization", "on", "deadline", "budget", "gpus",
         "objective", "node", "layout", "why_not", "pareto"}
"""Fields that are not folded."""
FOLDED_HERE = {"estimate": {"tokens", "samples", "epochs", "mean_length", "ttft", "tpot", "users"}}
"""Verb -> fields that are folded there all the same: they change what a plan is, and hardly an estimate."""
FIRST = ("node", "model", "why_not")
"""Fields that come before the others: the last of them first of all."""
WORDS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "End-to-end latency", "gpus": "GPUs", "max_gpus": "Most GPUs",
         "max_nodes": "Most nodes", "max_power": "Most power", "seq_len": "Sequence length", "on": "Hardware",
         "lora_rank": "LoRA rank", "kv_cache": "KV cache", "think": "Thinking time", "own": "Own hardware",
         "input": "Prompt tokens", "output": "Output tokens", "day": "Rate by hour", "node": "Node type",
         "layout": "Layout", "pareto": "Frontier of", "why_not": "Why not", "nodes": "Nodes"}
"""Field -> what it is called where its name alone would not say."""
LISTED = {"model": "models", "node": "nodes", "on": "hardware", "stack": "stacks", "engine": "engines",
          "provider": "providers"}
"""Field -> the names of the catalog that it is chosen from."""
SLIDERS = {"seq_len": (7, 20), "global_batch": (0, 14), "gpus": (0, 14), "concurrency": (0, 10), "input": (4, 17),
           "output": (0, 14)}
"""Field -> the powers of two between which a slider moves it."""
Kind = str
KINDS = ("training", "serving")


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
    kind: str = ""
    """The kind of work that alone has it."""
    usual: bool = True


def inputs(verb: str, values: Mapping[str, str]) -> list[Input]:
    """Return the fields of a verb with their values: of an estimate those that it heeds."""
    flags = {name: flag for name, flag in TABLE.items() if flag.metavar != "FILE" and name != "tokenizer"
             and (verb != "estimate" or flag.path.startswith(HEARD))}
    made = [_input(name, flag, values.get(name) or values.get(flag.also, "")) for name, flag in flags.items()]
    shown = USUAL - FOLDED_HERE.get(verb, set())
    made = [replace(field, usual=field.name in shown) for field in made]
    made += [Input(name, WORDS.get(name) or _words(name), TOLD[name], values.get(name, ""),
                   listed=LISTED.get(name, ""), usual=name in USUAL, choices=("simple",) if name == "prefer" else ())
             for name in OPTIONS[verb]]
    return sorted(made, key=lambda field: -FIRST.index(field.name) if field.name in FIRST else 1)


def _input(name: str, flag: Flag, value: str) -> Input:
    return Input(name, WORDS.get(name) or _words(name), flag.help, value, flag.choices, flag.switch,
                 LISTED.get(name, ""), SLIDERS.get(name), kind_of(flag.path))


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def kind_of(path: str) -> Kind:
    """Return the kind of work that alone has a value; empty where both have it, or it is not of the work."""
    block, _, key = path.partition(".")
    fields = (Training.model_fields, Serving.model_fields)
    has = [kind for kind, known in zip(KINDS, fields, strict=True) if key in known]
    return has[0] if block == "workload" and len(has) == 1 else ""


def asked_kind(values: Iterable[str]) -> Kind:
    """Return the kind of work that values are of: a service where one of them is of services alone."""
    return KINDS[any(name in TABLE and kind_of(TABLE[name].path) == "serving" for name in values)]


@cache
def names(catalog: Catalog) -> dict[str, list[str]]:
    """Return the names of the catalog that fields are chosen from, by list."""
    models: list[Model | Diffusion] = [catalog.model(name) for name in catalog.names("models")]
    nodes, gpus = catalog.names("nodes"), catalog.names("gpus")
    models += [diffusion for name in catalog.names("diffusion") if (diffusion := catalog.known_diffusion(name))]
    return {"models": sorted({name for model in models for name in filter(None, (model.name, model.hf_id))}),
            "nodes": nodes, "hardware": sorted({*gpus, *nodes}), "stacks": catalog.names("stacks"),
            "engines": catalog.names("engines"), "providers": catalog.names("prices")}
