"""Fabrics as collectives measured on them say: curves inside a node, and what the network between nodes keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from planner.catalog.hardware import MOST_OF_WIRE, Curve, Fabric
from planner.catalog.load import Catalog
from planner.evidence.rates import LinkRow, predicted_seconds
from planner.layouts.candidate import Candidate
from planner.text_io import read_text
from planner.units import BYTE_RATE
from planner.yaml_io import dump, parse

STEPS = (1.6, 0.8, 0.4, 0.2, 0.1, 0.05, 0.02)
"""Of the search for a network's rate and latency, in their logarithms."""
LATENCIES = (1e-7, 1e-2)
"""Seconds between which the latency of a hop is sought."""
SHARES = (1e-4, MOST_OF_WIRE)


def fabric_files(rows: Sequence[LinkRow], catalog: Catalog, source: str, as_of: str) -> dict[str, str]:
    """Return the text of every fabric that rows measure, by its file's name; its other figures stay as they are."""
    texts = {}
    inside = [row for row in rows if not row.crosses and row.candidate.scaleup is not None]
    for name, mine in _by_fabric(inside, lambda row: row.candidate.scaleup).items():
        scaleup = catalog.fabric(name)
        curves = _curves(scaleup, mine)
        figures = {"curves": [curve_file(curve.operation, curve.ranks, dict(zip(curve.sizes, curve.busbw, strict=True)))
                              for curve in curves]}
        texts[f"{name}.yaml"] = _file(catalog, scaleup, figures, source, as_of)
        rows = [_inside(row, scaleup.model_copy(update={"curves": curves})) for row in rows]
    for name, mine in _by_fabric((row for row in rows if row.crosses), lambda row: row.candidate.fabric).items():
        share, latency = _network(mine, catalog)
        texts[f"{name}.yaml"] = _file(catalog, catalog.fabric(name), {
            "efficiency": float(f"{share:.4g}"), "latency": f"{latency * 1e6:.4g} us"}, source, as_of)
    return texts


def _by_fabric(rows: Iterable[LinkRow], fabric: Callable[[LinkRow], Fabric | None]) -> Mapping[str, list[LinkRow]]:
    by_fabric: dict[str, list[LinkRow]] = {}
    for row in rows:
        used = fabric(row)
        assert used is not None
        by_fabric.setdefault(used.name, []).append(row)
    return by_fabric


def _inside(row: LinkRow, scaleup: Fabric) -> LinkRow:
    held = row.candidate.scaleup
    same = held is not None and held.name == scaleup.name
    return replace(row, candidate=replace(row.candidate, scaleup=scaleup)) if same else row


def _curves(fabric: Fabric, rows: Sequence[LinkRow]) -> tuple[Curve, ...]:
    """Return the curves that rows measure, and those of the fabric that they do not; repeats are averaged."""
    points: dict[tuple[str, int], dict[float, list[float]]] = {}
    for row in rows:
        factor = (2.0 if row.operation == "all_reduce" else 1.0) * (row.gpus - 1) / row.gpus
        at = points.setdefault((row.operation, row.gpus), {})
        at.setdefault(row.bytes, []).append(factor * row.bytes / row.seconds)
    measured = [Curve.model_validate(curve_file(operation, ranks, {size: float(np.median(at[size])) for size in at}))
                for (operation, ranks), at in sorted(points.items())]
    return (*measured, *(curve for curve in fabric.curves if (curve.operation, curve.ranks) not in points))


def curve_file(operation: str, ranks: int, busbw: Mapping[float, float]) -> dict[str, object]:
    """Return a curve as files write it. busbw: bytes/s on the bus by bytes of the buffer."""
    return {"operation": operation, "ranks": ranks, "sizes": [f"{size:.12g} B" for size in sorted(busbw)],
            "busbw": [f"{busbw[size] / BYTE_RATE['GB/s']:.4g} GB/s" for size in sorted(busbw)]}


def _network(rows: Sequence[LinkRow], catalog: Catalog) -> tuple[float, float]:
    """Return the share of the adapters' rate and the latency of a hop that lie nearest to the rows' times."""
    start = rows[0].candidate.fabric
    measured = np.log([row.seconds for row in rows])

    def off(share: float, latency: float) -> float:
        changed: dict[int, Candidate] = {}
        for row in rows:
            fabric = row.candidate.fabric.model_copy(update={"efficiency": share, "latency": latency})
            changed.setdefault(id(row.candidate), replace(row.candidate, fabric=fabric))
        took = predicted_seconds([replace(row, candidate=changed[id(row.candidate)]) for row in rows], catalog)
        return float(np.abs(np.log(took) - measured).sum())

    at, best = (start.efficiency, start.latency), off(start.efficiency, start.latency)
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for a, b in product((-step, 0.0, step), repeat=2):
                there = (float(np.clip(at[0] * np.exp(a), *SHARES)), float(np.clip(at[1] * np.exp(b), *LATENCIES)))
                if (value := off(*there)) < best - 1e-9:
                    at, best, moved = there, value, True
    return at


def _file(catalog: Catalog, fabric: Fabric, figures: Mapping[str, object], source: str, as_of: str) -> str:
    """Return the fabric's own file with some figures replaced, and where those come from."""
    path = catalog.files("fabrics")[fabric.name]
    data = dict(parse(read_text(path), str(path)).data)
    fact = {"source": source, "as_of": as_of, "kind": "measured"}
    return dump(data | dict(figures) | {"facts": data.get("facts", {}) | {name: dict(fact) for name in figures}})
