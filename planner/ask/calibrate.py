"""`planner calibrate`: constants fitted to measured runs, and quantiles of what they leave, as a catalog folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.catalog.calibration import Residual, Residuals
from planner.catalog.fitted import FITTED, Fitted
from planner.catalog.folders import holds_entries
from planner.catalog.load import ALL_KINDS, Catalog, data_root
from planner.errors import InputError
from planner.evidence.compare import compare
from planner.evidence.kinds import Evidence
from planner.evidence.reading import read_evidence
from planner.evidence.residuals import LEAST_ROWS, Sample, classes, memory_samples, speed_samples, step_samples
from planner.evidence.summary import spread
from planner.fit.knobs import Knob, engine_knobs, knobs_of
from planner.fit.rows import Rows, TrainingRows, changed, rows_of
from planner.fit.serving_rows import ServingRows, serving_rows
from planner.fit.solve import Fit, Progress, fit
from planner.fit.whole import WHOLE, fit_whole, whole_file, whole_samples
from planner.fit.write import fitted_file, residual_file, save
from planner.layouts.table import Floats, Mask
from planner.text_io import real, write_folder
from planner.yaml_io import parse, validate

SCHEMA = "planner.calibration/1"
STEP, MEMORY, SERVING = "step-residuals", "memory-residuals", "serving-residuals"
RESIDUALS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    STEP: ("train_throughput", "step time", ("stack", "architecture")),
    MEMORY: ("train_memory", "peak memory", ("stack", "model", "method")),
    SERVING: ("serve_throughput", "speed", ("quantity", "engine", "architecture", "kind", "regime"))}
"""File of residual classes -> kind of evidence, what is compared, and the traits that tell classes apart."""


@dataclass(frozen=True, slots=True)
class Part:
    """One fit with the rows it stands on: of training, or of serving speed."""

    rows: Rows
    count: int
    fit: Fit


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was fitted, and the files written."""

    parts: tuple[Part, ...]
    files: tuple[Path, ...]
    whole: int = 0
    """Whole runs that were fitted beside."""

    def as_json(self) -> dict[str, Any]:
        """Return constants, errors and files, schema planner.calibration/1."""
        constants = [{"entry": knob.place, "field": knob.field, "prior": knob.prior,
                      "value": knob.value(float(at)) if decided else knob.prior, "spread": float(spread),
                      "prior_spread": knob.spread, "rows": rows, "fitted": bool(decided)}
                     for fit in (part.fit for part in self.parts)
                     for knob, at, spread, decided, rows in zip(fit.knobs, fit.coordinates, fit.spreads, fit.decided,
                                                                fit.acting, strict=True)]
        quantities = np.array([quantity for part in self.parts for quantity in part.rows.quantities])
        return {"schema": SCHEMA, "rows": self.whole + sum(part.count for part in self.parts),
                "sources": sorted({source for part in self.parts for source in part.rows.sources}),
                "errors": _errors(self.parts),
                "errors_by_quantity": {name: _errors(self.parts, quantities == name)
                                       for name in dict.fromkeys(quantities.tolist())},
                "constants": constants, "files": [str(path) for path in self.files]}


def _errors(parts: Sequence[Part], chosen: Mask | slice = slice(None)) -> dict[str, dict[str, float]]:
    """Return the errors of some figures with the catalog's constants, the fitted ones, and those of other sources."""
    fits = [part.fit for part in parts]
    if not fits:
        return {}
    return {name: summary(np.concatenate(each)[chosen]) for name, each in (
        ("before", [fit.before for fit in fits]), ("after", [fit.after for fit in fits]),
        ("left_out", [fit.left_out for fit in fits]))}


def summary(residuals: Floats) -> dict[str, float]:
    """Return median and 90th percentile of the relative error of speed, and its signed median."""
    return spread(np.exp(-residuals) - 1)


def calibrate(paths: Sequence[Path], folder: Path, catalogs: Sequence[Path], as_of: str, *,
              progress: Progress = lambda share: None) -> Calibration:
    """Fit the catalog's constants to the evidence, and write them and their residuals to `folder`.

    Training rows decide stacks and calibration; serving rows then decide the steps of engines under what was fitted.
    The priors are the catalog's figures without what `folder` fitted before, so that the same evidence gives the same
    bytes. Whole runs decide what runs add to their steps, once the others are in the catalog. Raises InputError where
    no row has a measured speed.
    """
    real(folder)  # minutes before it is written to
    before = Catalog(catalogs, unfitted=folder)
    evidence = [read_evidence(path) for path in paths]
    parts = _fits(evidence, before, progress)
    runs = [one for one in evidence if one.kind == "train_runs"]
    if not parts and not runs:
        raise InputError("no row has a measured step time or speed and a prediction: see planner validate -v",
                         file=str(paths[0]))
    own = [folder] if holds_entries(folder, ALL_KINDS) else []
    if not parts:
        return _whole(runs, paths, folder, Catalog([*catalogs, *own]), as_of)
    source = f"{sum(p.count for p in parts)} runs of {', '.join(path.name for path in paths)}, by planner calibrate"
    fitted = fitted_file([part.fit for part in parts], source, as_of, _note(parts))
    residuals: dict[str, str] = {}
    after = Catalog([*catalogs, *own], unfitted=folder).with_fitted(validate(parse(fitted, FITTED), Fitted))
    for name, (kind, what, traits) in RESIDUALS.items():
        samples = [sample for one in evidence if one.kind == kind for sample in _samples(name, one, after)]
        if len(samples) >= LEAST_ROWS:
            kept = () if real(folder) == real(data_root("catalogs")) else _held(before, name)
            residuals[name] = residual_file(name, what, source, as_of, _over(kept, samples, traits))
    files = tuple(save(folder, fitted, residuals))
    if not runs:
        return Calibration(tuple(parts), files)
    beside = _whole(runs, paths, folder, after, as_of)
    return replace(beside, parts=tuple(parts), files=(*files, *beside.files))


def _whole(evidence: Sequence[Evidence], paths: Sequence[Path], folder: Path, catalog: Catalog,
           as_of: str) -> Calibration:
    """Fit what whole runs add to their steps, and write it. Raises InputError where no run has a prediction."""
    samples = [sample for one in evidence for sample in whole_samples(compare(one, catalog).whole)]
    if not samples:
        raise InputError("no row has GPU-hours and a prediction: see planner validate -v", file=str(paths[0]))
    source = f"{len(samples)} runs of {', '.join(path.name for path in paths)}, by planner calibrate"
    text = whole_file(fit_whole(samples, catalog.whole_runs.prior), catalog.whole_runs, source, as_of)
    return Calibration((), tuple(write_folder(folder / "calibration", {f"{WHOLE}.yaml": text})), len(samples))


def _fits(evidence: Sequence[Evidence], catalog: Catalog, progress: Progress) -> list[Part]:
    """Return the fit to training rows and the fit to serving rows, each where there are any."""
    trained = TrainingRows(tuple(row for one in evidence if one.kind == "train_throughput"
                                 for row in rows_of(one, catalog)))
    serving = [one for one in evidence if one.kind == "serve_throughput"]
    share, parts = 0.5 if trained.rows and serving else 1.0, []
    if trained.rows:
        knobs = knobs_of(catalog, [row.outcome for row in trained.rows])
        found = fit(trained, knobs, catalog, lambda done: progress(share * done))
        parts.append(Part(trained, len(trained.rows), found))
        catalog = changed(catalog, knobs, found.coordinates)
    served = serving_rows(serving, catalog)
    if served.runs:
        parts.append(Part(served, len(served.runs), fit(
            served, _engine_knobs(served), catalog, lambda done: progress(1 - share + share * done))))
    return parts


def _engine_knobs(rows: ServingRows) -> list[Knob]:
    releases = [(group.engine, group.deployment.engine) for group in rows.groups]
    return [knob for knob in engine_knobs(releases) if len(rows.acting(knob))]


def _note(parts: Sequence[Part]) -> str:
    """Say how far off the rows are, before, after, and with their own source left out."""
    errors = _errors(parts)
    return "median and 90th percentile of the error of speed: " + ", ".join(
        f"{errors[name]['median_abs_error']:.1%} and {errors[name]['p90_abs_error']:.1%} {what}" for name, what in (
            ("before", "before"), ("after", "fitted"), ("left_out", "fitted without the row's source")))


def _samples(name: str, evidence: Evidence, catalog: Catalog) -> list[Sample]:
    found = compare(evidence, catalog)
    if name == SERVING:
        return speed_samples(found)
    return step_samples(found.outcomes) if name == STEP else memory_samples(found.outcomes)


def _held(catalog: Catalog, name: str) -> Sequence[Residual]:
    held: dict[str, Residuals] = {STEP: catalog.step_residuals, MEMORY: catalog.memory_residuals,
                                  SERVING: catalog.serving_residuals}
    return held[name].classes


def _over(kept: Sequence[Residual], samples: Sequence[Sample], traits: Sequence[str]) -> list[Residual]:
    """Return the classes of `samples`, ahead of those of the catalog, whose last then stands for the rest."""
    own = classes(samples, *traits)
    return [*own[:-1], *kept] if kept else own
