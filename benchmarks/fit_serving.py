"""Fit the steps of each release of an inference engine to published speeds; write catalogs/speeds.

Run `python -m benchmarks.fit_serving [ENGINE ...]` at the top of the checkout: minutes on one core. Robust Gauss-Newton
on log-ratios of predicted to measured, from the figures that stand in the files, which are the priors too. Then
`planner calibrate` on all four evidence files writes the residuals that are left.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from planner.catalog.load import Catalog
from planner.catalog.speed import EngineSpeed
from planner.evidence.reading import read_evidence
from planner.evidence.rows import Evidence, ServeRow
from planner.evidence.serve_run import ServingRow, serving_row
from planner.evidence.serve_speed import Group, group_of, predict, quantities, shared
from planner.evidence.skipping import SkippedError
from planner.layouts.table import Floats

ROOT = Path(__file__).parents[1]
LEAST_PRODUCTS = 0.9
"""Of the time of products over the kernels' law: what fits find far below is saturation, and physics caps it."""
SPREAD = {"products": 0.15, "attention": 0.3, "experts": 0.3, "cache": 0.4}
"""Of the logarithm of a figure about its prior; one for all others."""
TYPICAL = {"products": 1.0, "saturation": 0.15, "attention": 1.0, "experts": 1.0, "cache": 1.0, "layer": 15e-6,
           "mixture": 25e-6, "step": 300e-6, "sequence": 3e-6, "prompt_step": 2e-3, "request": 30e-3, "exchange": 10e-6,
           "burst": 0.09}
"""Of engines that replay CUDA graphs: kernels at the rate of benchmarks with gaps of 1 to 2 us between some ten of a
layer, a few hundred us of scheduling a step, some ten ms of tokenizing and network a request."""
LOOSE = {"saturation": 0.7, "grouped": 0.4, "layer": 0.5, "mixture": 0.5, "step": 0.7, "sequence": 0.7,
         "prompt_step": 0.7, "request": 0.7, "exchange": 0.4, "burst": 0.7}
"""Spread about what is typical, beside that of all releases. With a quarter of models, GPUs and degrees left out,
TPOT of those is 35% off at p90 with this prior and law, where it was 44%."""
FIELDS = ("products", "saturation", "cache", "grouped", "attention", "experts", "layer", "mixture", "step", "sequence",
          "prompt_step", "request", "exchange", "burst")
TIMES = frozenset({"layer", "mixture", "step", "sequence", "prompt_step", "request", "exchange"})
"""Figures that files write as times."""
WEIGHTS = {"output_tok_s_per_gpu": 1.0, "tpot_ms": 1.0, "ttft_ms": 0.5}
EXPERIMENTAL = "SemiAnalysis"
"""A source whose folder says so of itself; its prompts run many times slower than those of all others."""
ROUNDS, STEP, LARGEST, BEND = 7, 0.05, 0.7, 0.15
FEWEST = 12
"""Rows below which a release keeps its figures."""


def main(engines: Sequence[str]) -> int:
    """Fit all releases of the named engines, or of all."""
    catalog = Catalog()
    evidence = read_evidence(ROOT / "tests" / "evidence" / "serve_throughput.csv")
    releases: dict[tuple[str, EngineSpeed], list[Group]] = {}
    for group in _groups(evidence, catalog):
        if not engines or group.engine in engines:
            releases.setdefault((group.engine, group.deployment.engine), []).append(group)
    for (engine, release), groups in releases.items():
        if sum(len(group.rows) for group in groups) < FEWEST:
            continue
        found, left = fit(groups, release, evidence)
        _write(ROOT / "catalogs" / "speeds" / f"{engine}.yaml", release, found)
        print(engine, release.version, *release.architectures, f"{left:.1%}", flush=True)
    return 0


def _groups(evidence: Evidence, catalog: Catalog) -> list[Group]:
    """Return the rows that decide: none of the rate within a level, whose limits are recalled."""
    rows: dict[int, ServingRow] = {}
    for at, row in enumerate(evidence.rows):
        assert isinstance(row, ServeRow)
        if row.suspect or EXPERIMENTAL in (row.run.source or ""):
            continue
        try:
            found = serving_row(row.run, catalog)
        except SkippedError:
            continue
        if found.regime != "server":
            rows[at] = found
    groups = []
    for members in shared(rows):
        try:
            groups.append(group_of(members, rows, catalog))
        except SkippedError:
            continue
    return groups


def fit(groups: Sequence[Group], release: EngineSpeed, evidence: Evidence) -> tuple[dict[str, float], float]:
    """Return the figures of a release and the median error they leave."""
    fields = [field for field in FIELDS if getattr(release, field) > 0]
    figures, spread = {field: getattr(release, field) for field in FIELDS}, SPREAD
    if _online(groups):
        figures, spread = {**figures, **TYPICAL}, {**SPREAD, **LOOSE}
    start = np.log([figures[field] for field in fields])
    if figures["products"] < LEAST_PRODUCTS:
        start[fields.index("products")] = np.log(LEAST_PRODUCTS)
    tight = np.array([(BEND / spread.get(field, 1.0)) ** 2 for field in fields])

    def errors(at: Floats) -> tuple[Floats, Floats]:
        return _errors(groups, release, dict(zip(fields, np.exp(at).tolist(), strict=True)), evidence)

    def cost(left: Floats, weights: Floats, at: Floats) -> float:
        size = np.abs(left)
        bent = np.where(size < BEND, size**2 / 2, BEND * (size - BEND / 2))
        return float(weights @ bent + tight @ (at - start) ** 2 / 2)

    at = start.copy()
    left, weights = errors(at)
    for _ in range(ROUNDS):
        slopes = np.stack([(errors(at + STEP * one)[0] - left) / STEP for one in np.eye(len(fields))], axis=1)
        heavy = weights * np.minimum(1.0, BEND / np.maximum(np.abs(left), 1e-9))
        square = (slopes * heavy[:, None]).T @ slopes
        before, damping = cost(left, weights, at), 1e-3
        for _ in range(5):
            move = np.linalg.solve(square + np.diag(tight + damping * np.diag(square)),
                                   -slopes.T @ (heavy * left) - tight * (at - start))
            trial = at + np.clip(move, -LARGEST, LARGEST)
            if cost(*(after := errors(trial)), trial) < before:
                at, (left, weights) = trial, after
                break
            damping = max(10 * damping, 0.1)
        else:
            break
    return dict(zip(fields, np.exp(at).tolist(), strict=True)), float(np.median(np.abs(np.expm1(left))))


def _online(groups: Sequence[Group]) -> bool:
    """Say whether most rows are of clients that each ask again, as engines of today are measured."""
    regimes = [row.regime for group in groups for row in group.rows]
    return regimes.count("closed") > len(regimes) / 2


def _errors(groups: Sequence[Group], release: EngineSpeed, figures: Mapping[str, float],
            evidence: Evidence) -> tuple[Floats, Floats]:
    """Return logarithms of predicted over measured, and their weights."""
    speed = release.model_copy(update=dict(figures))
    left, weights = [], []
    for group in groups:
        changed = replace(group, deployment=replace(group.deployment, engine=speed))
        for at, found in zip(group.at, predict(changed), strict=True):
            row = evidence.rows[at]
            assert isinstance(row, ServeRow)
            for name, predicted, measured in quantities(row.run, row.measured, found):
                # what handing over takes is no figure of a release
                if name in WEIGHTS and not (found.row.decode and name == "ttft_ms"):
                    left.append(np.log(max(predicted, 1e-9) / measured))
                    weights.append(WEIGHTS[name])
    return np.array(left), np.array(weights)


def _write(path: Path, release: EngineSpeed, figures: Mapping[str, float]) -> None:
    """Put the figures of one release in the place of those that its file has."""
    blocks = re.split(r"(?m)^(?=  - version:)", path.read_text(encoding="utf-8"))
    for number, block in enumerate(blocks):
        named = re.search(r"architectures: \[(.*)\]", block)
        architectures = tuple(named[1].split(", ")) if named else ()
        if f'version: "{release.version}"' in block and architectures == release.architectures:
            for field, value in figures.items():
                bound = min(value, 1.0) if field == "grouped" else value
                text = f"{value * 1e6:.3g} us" if field in TIMES else f"{bound:.3g}"
                blocks[number] = re.sub(rf"(?m)^(    {field}:) .*$", rf"\1 {text}", blocks[number])
    path.write_text("".join(blocks), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
