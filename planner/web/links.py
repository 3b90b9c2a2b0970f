"""Where an answer leads: the same question asked of what it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from planner.answer.assignment import Alternative
from planner.answer.layout import Layout
from planner.answer.relaxation import Relaxation
from planner.ask.estimate import HEARD, Estimating
from planner.catalog.load import Catalog
from planner.money.rent import offer_named
from planner.scenario.flags import NAMES, TABLE
from planner.scenario.sourcing_words import BOUGHT
from planner.web.question import CONFIG, FILE, FROM, OPTIONS, Verb
from planner.web.wording import address, as_fields, as_yaml
from planner.yaml_io import dump, parse

_SAID = re.compile(r"--(?P<name>[a-z][a-z-]{0,40}) "
                   r"(?P<values>[a-z0-9][a-z0-9-]{0,40}(?:,[a-z0-9-]{1,40}){0,8}(?: or [a-z0-9-]{1,40}){0,8})")
"""An option with a value, or with several of which each would do."""
_FORMATS = "FORMAT,.."
"""What values are called that are as good as choices: nobody but a message puts another word behind them."""
NAMED = ("engine", "stack", "terms")
"""Values whose names of the catalog a message proposes."""
_KEPT = {"rent": ("price_age",), "buy": ("buy", "site", "electricity"), "owned": ("own", "site", "electricity")}
"""How nodes are had -> what else of a question's sourcing is about them."""


def linked(line: str, question: Verb) -> Markup:
    """Return a line in which options with a value ("--loss fused", "--method qlora or lora") ask so by a click."""
    made, at = Markup(""), 0
    for said in _SAID.finditer(line):
        name, (first, *others) = said["name"].replace("-", "_"), said["values"].split(" or ")
        if name not in TABLE or not (first in TABLE[name].choices or TABLE[name].metavar == _FORMATS or name in NAMED):
            continue
        before = Markup.escape(line[at:said.start()])
        links = [_again(question, name, first, f"--{said['name']} {first}"),
                 *(_again(question, name, value, value) for value in others)]
        made, at = made + before + Markup(" or ").join(links), said.end()
    return made + Markup.escape(line[at:])


def _again(question: Verb, name: str, value: str, text: str) -> Markup:
    """Return a link that asks the same with another value."""
    asked = address(replace(question, values={**question.values, name: value}))
    return Markup('<a href="{}?{}">{}</a>').format("/plan" if question.verb == "plan" else "/", asked, text)


def without_offload(question: Verb, asking: Estimating) -> str:
    """Return where the same is estimated with all on the GPUs."""
    kept = {axis: value for axis, value in asking.layout.items() if not axis.startswith("offload")}
    kept |= dict.fromkeys(("offload_optimizer", "offload_parameters", "offload_activations"), "0")
    values = {name: value for name, value in question.values.items() if name != "largest"}
    layout = ",".join(f"{axis}={value}" for axis, value in kept.items())
    return f"/?{address(replace(question, values=values | {'layout': layout}))}"


def opened(other: Alternative, question: Verb, catalog: Catalog) -> str | None:
    """Return where more of an alternative is told: of a layout in training its estimate, else the plan on its nodes."""
    if other.job is not None:
        return None
    text = _layout_text(other.layout) if other.kind == "training" else None
    if text is None:
        return planned(question, other.node, other.sourcing, other.offer, catalog)
    heard = {name: value for name, value in question.values.items() if NAMES.get(name, "").startswith(HEARD)}
    return asked(question, "/", {**heard, **({"precision": other.layout.precision} if "precision" in heard else {}),
                                  "node": other.node, "gpus": other.gpus, "layout": text, "stack": other.stack},
                  own=False)


def eased(change: Relaxation, question: Verb) -> str | None:
    """Return where the same is planned with the limit that would do; none where no field says it."""
    names = {path: name for name, path in reversed(NAMES.items())}
    values = {f"workload.{key}": value for key, value in change.work.items()} if change.work else {
        NAMES.get(change.limit, ""): change.to}
    if change.limit == "own" or not all(path in names and isinstance(value, str | int | float)
                                        for path, value in values.items()):
        return None
    return asked(question, "/plan", {names[path]: value for path, value in values.items()})


def _layout_text(layout: Layout) -> str | None:
    """Return a layout as an estimate is told it; none where its stages differ in what no axis tells."""
    kept = {(stage.recompute_layers.none, stage.recompute_layers.selective, stage.recompute_layers.full)
            for stage in layout.stages}
    full = {layers for *_, layers in kept}
    mixed = layout.recompute == "mixed" and (len(full) > 1 or any(selective for _, selective, _ in kept))
    if mixed or len({stage.layers for stage in layout.stages}) > 1:
        return None
    moved = layout.offload
    axes: dict[str, object] = {
        "tp": layout.tp, "pp": layout.pp, "vpp": layout.vpp, "cp": layout.cp, "ep": layout.ep, "zero": layout.zero,
        "mbs": layout.micro_batch, "recompute": min(full) if layout.recompute == "mixed" else layout.recompute,
        "shard": layout.shard, "schedule": layout.schedule,
        "sp": _bit(layout.sequence_parallel) if layout.tp > 1 else None,
        "no_sync": _bit(layout.no_sync), "expert_tp": layout.expert_tp, "offload_optimizer": moved.optimizer or None,
        "offload_parameters": _bit(moved.parameters > 0) or None,
        "offload_activations": _bit(moved.activations > 0) or None,
        "offload_to": "nvme" if moved.to == "nvme" else None}
    return ",".join(f"{axis}={value}" for axis, value in axes.items() if value is not None)


def _bit(value: bool | None) -> int | None:
    return None if value is None else int(value)


def planned(question: Verb, node: str, how: str | None, offer: str | None, catalog: Catalog) -> str:
    """Return where the plan on one node type is asked for, on one offer of it, as answers name offers, and no other."""
    asks = replace(question, verb="plan", values={name: value for name, value in question.values.items()
                                                  if name in NAMES or name == FROM})
    data = parse(as_yaml(asks, catalog), FILE).data
    data["hardware"] = {"candidates": [node]}
    if "jobs" not in data:
        said = data.get("sourcing") or {}
        kept = {key: said[key] for key in _KEPT[how or "owned"] if key in said}
        data["sourcing"] = kept | _held(node, how, offer, catalog)
    fields = as_fields(dump(data), catalog)
    fields |= {name: str(value) for name, value in question.values.items() if name in OPTIONS["plan"] and name != FROM}
    page = "/portfolio" if "jobs" in data else "/plan"
    return f"{page}?{urlencode(fields | ({CONFIG: question.config} if question.config else {}))}"


def _held(node: str, how: str | None, offer: str | None, catalog: Catalog) -> dict[str, Any]:
    """Return what sourcing says of one offer alone; of owned nodes nothing, as who names them rents none."""
    if how == "buy":
        return {"rent": {"terms": [BOUGHT]}}
    named = offer_named(offer or "") if how == "rent" else None
    if named is None:
        return {}
    provider, instance, region, term = named
    like = {other.instance for prices in catalog.price_lists if prices.name == provider for other in prices.offers
            if other.region in {region, *prices.regions(region)} and other.term == term
            and catalog.node(other.node).name == node}
    only = {"instances": [instance]} if len(like) > 1 else {}  # no field says it: the file does
    return {"rent": {"terms": [term], "providers": [provider], "regions": [region], **only}}


def asked(question: Verb, page: str, more: Mapping[str, object], *, own: bool = True) -> str:
    """Return the address of a page that asks the question with some values changed."""
    names = {path: name for name, path in reversed(NAMES.items())}
    values = {names[NAMES[name]]: value for name, value in question.values.items() if name in NAMES and own}
    return f"{page}?{address(replace(question, values=values | dict(more)))}"
