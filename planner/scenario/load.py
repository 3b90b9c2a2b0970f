"""A question from a scenario file, from flags, or from both; then its open ends filled in, and said.

Flags are merged as plain data before validation, so a value is checked once, wherever it came from, and a
wrong one is named as the user wrote it: by file, line and key, or by its flag.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from planner.catalog.hardware import Gpu, Node
from planner.catalog.load import Catalog, data_root
from planner.catalog.price import Purchase
from planner.errors import InputError, UnknownName
from planner.scenario.limits import Rent, Sourcing
from planner.scenario.scenario import Scenario
from planner.scenario.workload import Batch
from planner.yaml_io import Document, Frozen, dump, read, validate

FLAGS: dict[str, str] = {
    "model": "workload.model", "method": "workload.method", "tokens": "workload.tokens",
    "seq_len": "workload.sequence_length", "global_batch": "workload.global_batch",
    "precision": "workload.precision", "stack": "workload.stack", "on": "hardware.candidates",
    "provider": "sourcing.rent.providers", "region": "sourcing.rent.regions", "terms": "sourcing.rent.terms",
    "deadline": "limits.deadline", "budget": "limits.budget", "gpus": "limits.gpus",
    "max_gpus": "limits.max_gpus", "max_nodes": "limits.max_nodes", "max_power": "limits.max_power",
    "price_age": "sourcing.price_age", "objective": "objective",
}
"""Flag (and keyword of `planner.plan`) -> the scenario value that it sets."""
ANY = "any"
"""The candidate that stands for every node type with an admitted offer; used where no hardware is named."""
DEFAULT_STACK = {"pretrain": "megatron-core", "full": "megatron-core", "lora": "hf-peft", "qlora": "hf-peft",
                 "inference": "megatron-core"}
"""Stack by method, where none is named."""
_COUNTED = re.compile(r"(\d+)\s*x\s*(.+)", re.IGNORECASE)
E = TypeVar("E")
_FLAGS_ALONE = Document({}, "", {})
Defaults = list[str]


def load_scenario(reference: str | None, overrides: Mapping[str, object], catalog: Catalog, *,
                  labels: Mapping[str, str] | None = None) -> tuple[Scenario, Defaults]:
    """Return the resolved question and the defaults that decided it, as "key=value".

    `reference` is a path or the name of a shipped scenario; `overrides` maps dotted paths (`limits.deadline`)
    to values as text, and a list may be text with commas. `labels` gives paths the names that messages use
    ("--deadline"). Raises InputError.
    """
    if reference is None and not overrides:
        raise InputError(f"nothing to plan: name a scenario (a file, or {', '.join(shipped())}), "
                         "or give at least --model and --tokens")
    document = read(find(reference)) if reference is not None else _FLAGS_ALONE
    document = merge(document, overrides, labels or {})
    return _resolve(validate(document, Scenario), catalog, document)


def shipped() -> list[str]:
    """Return the names of the scenarios that come with the planner."""
    return sorted(path.stem for path in data_root("scenarios").glob("*.yaml"))


def find(reference: str) -> Path:
    """Return the file that `reference` means: an existing path, else a shipped scenario by name."""
    name = reference.lower().removesuffix(".yaml")
    if os.path.exists(reference):
        return Path(reference)
    if name in shipped():
        return data_root("scenarios") / f"{name}.yaml"
    if os.path.dirname(reference):
        raise InputError("cannot read: no such file", file=reference)
    raise UnknownName("scenario (no such file, and none shipped)", reference, shipped())


def paths(model: type[Frozen] = Scenario, prefix: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the dotted path of every scenario value, and whether it is a list."""
    for name, field in model.model_fields.items():
        types = (field.annotation, *get_args(field.annotation))
        nested = [t for t in types if isinstance(t, type) and issubclass(t, Frozen)]
        for inner in nested:
            yield from paths(inner, f"{prefix}{name}.")
        if not nested:
            yield prefix + name, get_origin(field.annotation) is tuple


def merge(document: Document, overrides: Mapping[str, object], labels: Mapping[str, str]) -> Document:
    """Return `document` with `overrides` put in, labeled for messages; hardware left open becomes `any`."""
    lists, data = dict(paths()), document.data
    named: dict[tuple[Hashable, ...], str] = {}
    for path, value in overrides.items():
        if path not in lists:
            raise UnknownName("scenario value", path, lists)
        data = _put(data, path.split("."), _parts(value) if lists[path] else value)
        named[tuple(path.split("."))] = labels.get(path, path)
    if not document.file:
        named |= {tuple(path.split(".")): label for path, label in labels.items()}
        data = {"workload": {}, **data}
    if isinstance(data, dict) and data.get("hardware") is None:
        data = _put(data, ["hardware", "candidates"], [ANY])
    return Document(data, document.file, document.lines, named)


def _parts(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _put(data: object, path: Sequence[str], value: object) -> object:
    """Return `data` with `value` at `path`; what is no mapping stays, for validation to refuse."""
    if not path:
        return value
    if data is not None and not isinstance(data, dict):
        return data
    inner = data or {}
    return {**inner, path[0]: _put(inner.get(path[0]), path[1:], value)}


def resolve(scenario: Scenario, catalog: Catalog) -> tuple[Scenario, Defaults]:
    """Return `scenario` with the catalog's names and no open ends, and the defaults that closed them."""
    return _resolve(scenario, catalog, _FLAGS_ALONE)


def _resolve(scenario: Scenario, catalog: Catalog, document: Document) -> tuple[Scenario, Defaults]:
    work, sourcing, defaults = scenario.workload, scenario.sourcing, []
    with _named(document, "workload", "model"):
        models = [catalog.model(name) for name in work.models]
    # several are compared at a length that all of them have
    model = min(models, key=lambda one: one.sequence_length)
    chosen: dict[str, object] = {"model": ", ".join(one.name for one in models)}
    if work.tokens is not None:
        chosen["method"] = method = work.method or "pretrain"
        with _named(document, "workload", "stack"):
            chosen["stack"] = catalog.stack(work.stack or DEFAULT_STACK[method]).name
    chosen |= {"precision": work.precision, "sequence_length": work.sequence_length or model.sequence_length}
    if work.tokens is not None:
        chosen["global_batch"] = work.global_batch or Batch(model.global_batch)
    elif scenario.objective != "gpus" and "objective" in scenario.model_fields_set:
        raise document.error(("objective",), f"objective: {scenario.objective} needs workload.tokens; without tokens "
                             "the question is the fewest GPUs that hold the model")
    stated = {name for name in work.model_fields_set if getattr(work, name) is not None}
    defaults += [f"{name}={_text(value)}" for name, value in chosen.items() if name not in stated]
    rent = sourcing.rent
    if rent is not None:
        if "terms" not in rent.model_fields_set:
            defaults.append(f"terms={_text(rent.terms)}")
        rent = _offers_asked(rent, catalog, document)
    own = _owned(sourcing, catalog, document, defaults)
    # what holds a model is no question of offers, so every kind of GPU is a candidate
    def everything() -> Sequence[str]:
        if work.tokens is None:
            return catalog.names("nodes")
        bought = [catalog.node(one.node).name for one in catalog.all("purchases", Purchase)] if sourcing.buy else []
        return sorted({*own, *bought, *(_offered(rent, catalog) if rent is not None else ())})

    candidates = _candidates(scenario.hardware.candidates, everything, catalog, document)
    if ANY in scenario.hardware.candidates:
        defaults.append(f"candidates={_text(candidates) if work.tokens is not None else 'every GPU of the catalog'}")
    return scenario.model_copy(update={
        "objective": scenario.objective if work.tokens is not None else "gpus",
        "workload": work.model_copy(update=chosen),
        "hardware": scenario.hardware.model_copy(update={"candidates": candidates}),
        "sourcing": sourcing.model_copy(update={"rent": rent, "own": own}),
    }), defaults


def _text(value: object) -> str:
    return ",".join(map(str, value)) if type(value) is tuple else str(value)


@contextmanager
def _named(document: Document, *path: str | int) -> Iterator[None]:
    """Say of an unknown name where it was written."""
    try:
        yield
    except UnknownName as error:
        raise document.error(path, error.problem) from None


def _owned(sourcing: Sourcing, catalog: Catalog, document: Document, defaults: Defaults) -> dict[str, int]:
    """Return the owned nodes by their catalog names; the site is said where it decides."""
    own = {}
    for name, count in sourcing.own.items():
        with _named(document, "sourcing", "own", name):
            own[catalog.node(name).name] = count
    if own:
        with _named(document, "sourcing", "site"):
            site = catalog.site(sourcing.site)
        if "site" not in sourcing.model_fields_set:
            defaults.append(f"site={site.name}")
    return own


def _offers_asked(rent: Rent, catalog: Catalog, document: Document) -> Rent:
    """Return `rent` with providers and regions spelled as the catalog spells them."""
    providers = {name.lower(): name for name in catalog.names("prices")} if rent.providers else {}
    offers = [offer for prices in catalog.price_lists for offer in prices.offers] if rent.regions else []
    regions = {offer.region.lower(): offer.region for offer in offers}
    update: dict[str, tuple[str, ...]] = {"terms": rent.terms}
    for field, known in (("providers", providers), ("regions", regions)):
        names = []
        for at, name in enumerate(getattr(rent, field)):
            with _named(document, "sourcing", "rent", field, at):
                if name.lower() not in known:
                    raise UnknownName(field.removesuffix("s"), name, known.values())
                names.append(known[name.lower()])
        update[field] = tuple(names)
    return rent.model_copy(update=update)


def _candidates(names: Sequence[str], everything: Callable[[], Sequence[str]], catalog: Catalog,
                document: Document) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for at, name in enumerate(names):
        if name.lower() == ANY:
            found |= dict.fromkeys(everything())
            continue
        with _named(document, "hardware", "candidates", at):
            found |= dict.fromkeys(candidate_nodes([name], catalog))
    return tuple(found)


def _offered(rent: Rent, catalog: Catalog) -> list[str]:
    """Return the node types that some admitted offer names, sorted."""
    nodes = {catalog.node(offer.node).name for prices in catalog.price_lists for offer in prices.offers
             if offer.term in rent.terms and (not rent.providers or prices.name in rent.providers)
             and (not rent.regions or offer.region in rent.regions)}
    if not nodes:
        raise InputError(f"no offer in the catalog has terms {_text(rent.terms)} with the providers and "
                         "regions asked for, so there is no hardware to choose from")
    return sorted(nodes)


def candidate_nodes(names: Sequence[str], catalog: Catalog) -> list[str]:
    """Return the node types meant by `names`: a node, a GPU (every node type with it), or "8xh100".

    Upper and lower case are alike. Raises UnknownName, also for a GPU that no node type has in that count.
    """
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys(_nodes_named(name, catalog))
    return list(found)


def _nodes_named(name: str, catalog: Catalog) -> list[str]:
    if (node := _known(catalog.node, name)) is not None:
        return [node.name]
    counted = _COUNTED.fullmatch(name.strip())
    gpu = _known(catalog.gpu, counted.group(2) if counted else name)
    nodes = catalog.all("nodes", Node)
    if gpu is None:
        raise UnknownName("node or GPU", name, [*_spellings(nodes), *_spellings(catalog.all("gpus", Gpu))])
    having = [node for node in nodes if catalog.gpu(node.gpu).name == gpu.name]
    fitting = [node.name for node in having if not counted or node.gpus == int(counted.group(1))]
    if not fitting:
        known = [f"{node.gpus}x{gpu.name}" for node in having]
        raise UnknownName("hardware (the GPU exists, but no such node type)", name, known)
    return fitting


def _known(find_entry: Callable[[str], E], name: str) -> E | None:
    try:
        return find_entry(name)
    except UnknownName as error:
        if error.name != name:
            raise
        return None


def _spellings(entries: Sequence[Node] | Sequence[Gpu]) -> list[str]:
    return [spelling for entry in entries for spelling in (entry.name, *entry.aliases)]


def to_yaml(scenario: Scenario) -> str:
    """Return `scenario` as a file that reads back to the same scenario; what is open or empty is left out."""
    return dump(_stated(scenario.model_dump(mode="json", exclude_none=True)))


def _stated(data: dict[str, Any]) -> dict[str, Any]:
    kept = {key: _stated(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in kept.items() if value not in ({}, [])}
