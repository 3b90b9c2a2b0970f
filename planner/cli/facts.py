"""Catalog entries as figures, each with where it comes from; for `planner catalog`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.catalog.architecture import Model
from planner.catalog.engine import Engine
from planner.catalog.figures import figures
from planner.catalog.hardware import Fabric, Gpu, Node
from planner.catalog.load import KINDS, Catalog
from planner.catalog.price import PriceList
from planner.catalog.sourced import Sourced
from planner.catalog.speed import Speeds
from planner.catalog.spelling import canonical
from planner.catalog.stack import Stack
from planner.errors import InputError, UnknownName
from planner.physics.shapes import parameters
from planner.units import plural, show_count

ALL_KINDS = (*KINDS, "calibration")


def entries(catalog: Catalog, kind: str) -> list[Sourced]:
    """Return every entry of `kind`, sorted by name."""
    return catalog.calibration_entries() if kind == "calibration" else list(catalog.all(kind, KINDS[kind]))


def find(catalog: Catalog, name: str) -> tuple[str, Sourced]:
    """Return the entry called `name`, of any kind, and its kind; `nodes/x` names the kind as well.

    Raises UnknownName, or InputError where entries of two kinds share the name.
    """
    kind, slash, rest = name.partition("/")
    kinds, wanted = ((kind,), rest) if slash and kind in ALL_KINDS else (ALL_KINDS, name)
    found = [(k, entry) for k in kinds if (entry := _find(catalog, k, wanted)) is not None]
    if not found:
        raise UnknownName("catalog entry", name, [n for k in kinds for n in catalog.names(k)])
    if len(found) > 1:
        choices = " or ".join(f"{k}/{entry.name}" for k, entry in found)
        raise InputError(f"{name!r} is the name of several entries: write {choices}")
    return found[0]


def _find(catalog: Catalog, kind: str, name: str) -> Sourced | None:
    find_entry = {"gpus": catalog.gpu, "nodes": catalog.node, "fabrics": catalog.fabric,
                  "models": catalog.model, "stacks": catalog.stack}.get(kind)
    if find_entry is not None:
        try:
            return find_entry(name)
        except UnknownName:
            return None
    wanted = canonical(name)
    return next((e for e in entries(catalog, kind) if wanted in map(canonical, (e.name, *e.aliases))), None)


def key_facts(entry: Sourced) -> str:
    """Return the few facts by which one knows an entry, for `catalog list`."""
    data: Mapping[str, Any] = entry.model_dump(mode="json")
    match entry:
        case Gpu():
            parts = [entry.architecture, data["memory"], data["memory_bandwidth"],
                     f"bf16 {data['peak'].get('bf16', 'none')}"]
        case Node():
            parts = [f"{entry.gpus} x {entry.gpu}", entry.scaleup or "no scale-up fabric",
                     f"{entry.nics.count} x {data['nics']['bandwidth']}"]
        case Fabric():
            parts = [entry.level, entry.topology, data["bandwidth"] or "bandwidth of the NICs"]
        case Model():
            parts = [f"{show_count(parameters(entry))} parameters", f"{entry.layers} layers",
                     f"hidden {entry.hidden}"]
        case PriceList():
            parts = [f"{len(entry.offers)} offers", *dict.fromkeys(offer.term for offer in entry.offers)]
        case Stack():
            stages = " ".join(map(str, entry.zero_stages))
            parts = [f"ZeRO {stages}", "pipeline" if entry.pipeline else "no pipeline"]
        case Engine():
            share = (f"{entry.memory_fraction:g} of {entry.fraction_of}" if entry.fraction_of != "nothing"
                     else "no memory fraction")
            parts = [share, f"{plural(entry.block, 'token')} a block",
                     _releases(release.version for release in entry.releases)]
        case Speeds():
            own = sorted({name for release in entry.releases for name in release.architectures})
            parts = [_releases(release.version for release in entry.releases),
                     f"own figures for {' '.join(own)}" if own else "the same for all GPUs"]
        case _:
            parts = [entry.note] if entry.note else [figure.path for figure in figures(entry)[:4]]
    return ", ".join(parts)


def _releases(versions: Iterable[str]) -> str:
    """Return the versions at which an entry's figures change."""
    return f"releases {' '.join(dict.fromkeys(versions))}"
