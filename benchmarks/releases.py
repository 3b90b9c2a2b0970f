"""Fits the releases of engines to published speed, all together, and writes `catalogs/speeds`: run
`python -m benchmarks.releases [rounds]`; it starts from what typical engines take and needs some minutes.

The logarithm of each constant of a release on an architecture has a normal prior. Its covariance falls off with the
time between releases and with how unlike engines and architectures are (a Gaussian process), so that a release or an
architecture without rows takes the mean that the others leave it. Residuals are Student-t.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from planner.catalog.load import Catalog
from planner.catalog.speed import EngineSpeed
from planner.evidence.reading import read_evidence
from planner.evidence.serve_speed import Group, as_it_ran, predict, quantities
from planner.fit.serving_rows import RATES, ServingRows, serving_rows
from planner.layouts.table import Floats

Place = tuple[str, str, str]
"""Engine, first version of a release, architecture."""
EVIDENCE, SPEEDS = Path("tests/evidence/serve_throughput.csv"), Path("catalogs/speeds")
TYPICAL = {"products": (1.0, .15), "saturation": (.3, 1.0), "attention": (1.1, .35), "experts": (1.1, .3),
           "cache": (.95, .25), "layer": (20e-6, .7), "mixture": (30e-6, .7), "step": (300e-6, .8),
           "sequence": (4e-6, .8), "prompt_step": (800e-6, 1.0), "request": (30e-3, 1.0), "exchange": (10e-6, .5),
           "burst": (.1, .8)}
"""Constant -> median and spread of its logarithm over engines with CUDA graphs, before any row."""
KERNELS = frozenset({"products", "saturation", "attention", "experts", "cache", "exchange"})
"""Constants that the GPU decides; the engine's host decides the others."""
LEAST = {"nvidia": {"products": .85, "cache": .8}, "amd": {"products": .65, "cache": .6}}
"""Below which a constant is no longer of this GPU: products beyond benchmarks, bytes beyond the bandwidth."""
RELEASES = {"vllm": {"0.1": 2024.4, "0.6": 2024.95, "0.8": 2025.4, "0.12": 2025.95, "0.15": 2026.15, "0.18": 2026.3},
            "sglang": {"0.1": 2024.7, "0.5": 2025.65, "0.5.6": 2025.95, "0.5.9": 2026.15},
            "tensorrt-llm": {"0.1": 2024.2, "0.12": 2024.8, "0.20": 2025.5, "1.1": 2025.9, "1.2": 2026.1}}
"""First version of each release that is told apart, and the year of it."""
ARCHITECTURES = {"hopper": ("hopper",), "ampere": ("ampere", "pascal", "turing", "volta"),
                 "ada": ("ada", "blackwell-rtx"), "blackwell": ("blackwell",), "cdna2": ("cdna2",), "cdna3": ("cdna3",),
                 "cdna4": ("cdna4",)}
"""Those told apart; the first holds for all that no entry names."""
APART = {"ampere": 0.0, "ada": .4, "hopper": .9, "blackwell": 1.6, "cdna2": 3.6, "cdna3": 4.4, "cdna4": 4.8}
"""How far architectures are apart, along a line."""
FREEDOM, STEP, TRUST = 4.0, .03, .8
SCALES = {"output_tok_s_per_gpu": .12, "tpot_ms": .1, "ttft_ms": .25}


def main() -> None:
    """Fit, print errors, and write the files."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    rows = _Rows.of(Catalog())
    at = np.log(np.tile([median for median, _ in TYPICAL.values()], (len(rows.places), 1)))
    for number in range(rounds):
        at = np.maximum(at + _step(rows, at), _least(rows.places))
        print(number + 1, rows.errors(rows.residuals(at)), flush=True)
    for engine in RELEASES:
        _write(engine, rows, at)


@dataclass(frozen=True)
class _Rows:
    """Rows of serving speed by the release that they ran."""

    catalog: Catalog
    rows: ServingRows
    places: tuple[Place, ...]
    of_group: tuple[int, ...]
    """Place of each group; below zero of engines that are not fitted here."""

    @classmethod
    def of(cls, catalog: Catalog) -> _Rows:
        rows = serving_rows([read_evidence(EVIDENCE)], catalog)
        each = [_place(group) for group in rows.groups]
        places = tuple(sorted({place for place in each if place}))
        return cls(catalog, rows, places, tuple(places.index(place) if place else -1 for place in each))

    def figures(self, place: int) -> list[int]:
        return [at for at, figure in enumerate(self.rows.figures) if self.of_group[figure.group] == place]

    def residuals_at(self, place: int, coordinates: Floats) -> Floats:
        """Return the logarithm of predicted over measured time of the figures of a place."""
        speeds = {}
        for number, group in enumerate(self.rows.groups):
            if self.of_group[number] == place:
                usual = _speed(self.catalog, self.places[place], np.exp(coordinates))
                engine = as_it_ran(usual, group.rows[0], group.deployment.candidates[0].gpu, self.catalog)
                speeds[number] = predict(replace(group, deployment=replace(group.deployment, engine=engine)))
        found = []
        for figure in (self.rows.figures[at] for at in self.figures(place)):
            said = quantities(*self.rows.runs[figure.row], speeds[figure.group][figure.place])
            predicted, measured = next((p, m) for name, p, m in said if name == figure.quantity)
            log = np.log(max(predicted, 1e-9) / measured)
            found.append(np.clip(-log if figure.quantity in RATES else log, -4, 4))
        return np.array(found)

    def residuals(self, at: Floats) -> list[Floats]:
        return [self.residuals_at(place, at[place]) for place in range(len(self.places))]

    def errors(self, residuals: list[Floats]) -> dict[str, str]:
        """Return median and 90th percentile of the relative error of each quantity."""
        logs: dict[str, list[float]] = {name: [] for name in SCALES}
        for place, found in enumerate(residuals):
            for figure, log in zip(self.figures(place), found, strict=True):
                name = self.rows.figures[figure].quantity
                logs[name].append(-log if name in RATES else log)
        return {name: "{:.1%} / {:.1%}".format(*np.quantile(np.abs(np.expm1(held)), (.5, .9)))
                for name, held in logs.items() if held}


def _place(group: Group) -> Place | None:
    engine, row = group.engine, group.rows[0]
    if engine not in RELEASES:
        return None
    known = [version for version in RELEASES[engine] if _order(version) <= _order(row.version)]
    own = group.deployment.candidates[0].gpu.architecture
    return engine, max(known or [min(RELEASES[engine], key=_order)], key=_order), next(
        name for name, names in ARCHITECTURES.items() if own in names)


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _speed(catalog: Catalog, place: Place, values: Floats) -> EngineSpeed:
    """Return a release of the catalog, which says how it schedules, with other times."""
    engine, version, architecture = place
    usual = catalog.speeds(engine).release(version, architecture)
    return usual.model_copy(update=dict(zip(TYPICAL, values.tolist(), strict=True)))


def _least(places: tuple[Place, ...]) -> Floats:
    return np.log([[LEAST[_vendor(place[2])].get(name, 1e-12) for name in TYPICAL] for place in places])


def _vendor(architecture: str) -> str:
    return "amd" if architecture.startswith("cdna") else "nvidia"


def _covariance(name: str, one: Place, other: Place) -> float:
    """Return the prior covariance of a constant in two places."""
    engine, years = one[0] == other[0], abs(RELEASES[one[0]][one[1]] - RELEASES[other[0]][other[1]])
    near = float(np.exp(-abs(APART[one[2]] - APART[other[2]])))
    if name in KERNELS:
        # kernels of AMD differ more by release, and what an architecture is good at fades with time
        vary = (1 + (_vendor(one[2]) == "amd")) * (1 + (_vendor(other[2]) == "amd"))
        parts = .15, .3 * np.exp(-years / 1.5), .25 * np.exp(-years / .6), .15, .15
    else:
        vary, parts = 1, (.35, .1, .15 * np.exp(-years), .25, .15)
    alone, of_gpu, of_both, of_time, own = parts
    shared = alone * engine + of_gpu * near + of_both * engine * near + of_time * engine * np.exp(-years / .8)
    return float(vary * (shared + own * (one == other)) * TYPICAL[name][1]**2)


def _matrix(name: str, ones: tuple[Place, ...], others: tuple[Place, ...]) -> Floats:
    found: Floats = np.array([[_covariance(name, one, other) for other in others] for one in ones])
    return found


def _step(rows: _Rows, at: Floats) -> Floats:
    """Return the move of one Gauss-Newton round, no larger than TRUST in any coordinate."""
    many, constants = at.shape
    curve, slope = np.zeros((at.size, at.size)), np.zeros(at.size)
    for number, (name, (median, spread)) in enumerate(TYPICAL.items()):
        mine = np.arange(many) * constants + number
        inverse = np.linalg.inv(_matrix(name, rows.places, rows.places) + 1e-6 * spread**2 * np.eye(many))
        curve[np.ix_(mine, mine)] = inverse
        slope[mine] = inverse @ (at[:, number] - np.log(median))
    sources = rows.rows.sources
    for place in range(many):
        now, figures = rows.residuals_at(place, at[place]), rows.figures(place)
        jacobian = np.stack([(rows.residuals_at(place, at[place] + STEP * unit) - now) / STEP
                             for unit in np.eye(constants)], axis=1)
        scale = np.array([SCALES[rows.rows.figures[figure].quantity] for figure in figures])
        here = [sources[figure] for figure in figures]
        weight = (FREEDOM + 1) / (FREEDOM + (now / scale)**2) / scale**2 / np.array([here.count(s) for s in here])**.25
        mine = np.arange(place * constants, (place + 1) * constants)
        curve[np.ix_(mine, mine)] += jacobian.T @ (jacobian * weight[:, None])
        slope[mine] += jacobian.T @ (weight * now)
    return np.clip(-np.linalg.solve(curve, slope).reshape(at.shape), -TRUST, TRUST)


def _write(engine: str, rows: _Rows, at: Floats) -> None:
    """Write an engine's file: its releases by every architecture that it has entries for."""
    path = SPEEDS / f"{engine}.yaml"
    head = path.read_text(encoding="utf-8").split("releases:\n")[0]
    have = {name for one in rows.catalog.speeds(engine).releases for name in one.architectures} | {"hopper"}
    places = tuple((engine, version, name) for version in RELEASES[engine] for name in ARCHITECTURES if name in have)
    means = np.empty((len(places), len(TYPICAL)))
    for number, (name, (median, spread)) in enumerate(TYPICAL.items()):
        held = _matrix(name, rows.places, rows.places) + 1e-6 * spread**2 * np.eye(len(rows.places))
        over = np.linalg.solve(held, at[:, number] - np.log(median))
        means[:, number] = np.log(median) + _matrix(name, places, rows.places) @ over
    means = np.exp(np.maximum(means, _least(places)))
    order = sorted(range(len(places)), key=lambda n: (_order(places[n][1]), () if places[n][2] == "hopper"
                                                      else ARCHITECTURES[places[n][2]]))
    entries = [_entry(rows, places[n], dict(zip(TYPICAL, means[n].tolist(), strict=True))) for n in order]
    path.write_text(head + "releases:\n" + "\n".join(entries) + "\n", encoding="utf-8", newline="\n")


def _entry(rows: _Rows, place: Place, values: Mapping[str, float]) -> str:
    """Return the YAML of a release: fitted times, and scheduling as the catalog has it."""
    _, version, architecture = place
    kept = _speed(rows.catalog, place, np.array(list(values.values())))
    count = 0
    if place in rows.places:
        count = rows.rows.count(np.array(rows.figures(rows.places.index(place)), np.int64))
    parts = [f'version: "{version}"']
    parts += [f"architectures: [{', '.join(ARCHITECTURES[architecture])}]"] if architecture != "hopper" else []
    for name, value in values.items():
        parts.append(f"{name}: " + (f"{float(f'{1e6 * value:.3g}'):g} us" if TYPICAL[name][0] < .05
                                    else f"{float(f'{value:.3g}'):g}"))
    parts += ["stream: 1", f"chunk: {kept.chunk}", f"sequences: {kept.sequences}"]
    parts += [f"grouped: {kept.grouped}"] if kept.grouped else []
    parts += [f"rows: {kept.rows}"] if kept.rows != EngineSpeed.model_fields["rows"].default else []
    parts += ["prefill_first: true"] if kept.prefill_first else []
    joined = [re.sub(" ", "\x00", part) for part in parts]
    text = textwrap.fill(", ".join(joined), 112, break_long_words=False, break_on_hyphens=False).replace("\x00", " ")
    said = f"{count} row{'s' if count > 1 else ''}" if count else "no rows: what others say of it"
    return f"  # {said}\n  - {{" + text.replace("\n", "\n     ") + "}"


if __name__ == "__main__":
    main()
