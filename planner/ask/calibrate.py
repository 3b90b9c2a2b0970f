"""`planner calibrate`: constants fitted to measured runs, and quantiles of what they leave, as a catalog folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.catalog.calibration import Residual, Residuals
from planner.catalog.fitted import FITTED, Fitted
from planner.catalog.folders import holds_entries
from planner.catalog.load import ALL_KINDS, Catalog, data_root
from planner.errors import InputError
from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence
from planner.evidence.residuals import LEAST_ROWS, Sample, classes, memory_samples, speed_samples, step_samples
from planner.evidence.rows import Evidence
from planner.evidence.summary import spread
from planner.fit.knobs import knobs_of
from planner.fit.rows import Measured, rows_of
from planner.fit.solve import Fit, Progress, fit
from planner.fit.write import fitted_file, residual_file, save
from planner.layouts.table import Floats
from planner.text_io import real
from planner.yaml_io import parse, validate

SCHEMA = "planner.calibration/1"
STEP, MEMORY, SERVING = "step-residuals", "memory-residuals", "serving-residuals"
RESIDUALS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    STEP: ("train_throughput", "step time", ("stack", "architecture")),
    MEMORY: ("train_memory", "peak memory", ("stack", "model", "method")),
    SERVING: ("serve_throughput", "speed", ("quantity", "engine", "architecture", "kind", "regime"))}
"""File of residual classes -> kind of evidence, what is compared, and the traits that tell classes apart."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A fit with the rows it stands on, and the files written."""

    rows: tuple[Measured, ...]
    fit: Fit
    files: tuple[Path, ...]

    def as_json(self) -> dict[str, Any]:
        """Return constants, errors and files, schema planner.calibration/1."""
        fit = self.fit
        constants = [{"entry": knob.place, "field": knob.field, "prior": knob.prior,
                      "value": knob.value(float(at)) if decided else knob.prior, "spread": float(spread),
                      "prior_spread": knob.spread, "rows": rows, "fitted": bool(decided)}
                     for knob, at, spread, decided, rows in zip(fit.knobs, fit.coordinates, fit.spreads, fit.decided,
                                                                fit.acting, strict=True)]
        return {"schema": SCHEMA, "rows": len(self.rows), "sources": sorted({row.source for row in self.rows}),
                "errors": {"before": summary(fit.before), "after": summary(fit.after),
                           "left_out": summary(fit.left_out)},
                "constants": constants, "files": [str(path) for path in self.files]}


def summary(residuals: Floats) -> dict[str, float]:
    """Return median and 90th percentile of the relative error of speed, and its signed median."""
    return spread(np.exp(-residuals) - 1)


def calibrate(paths: Sequence[Path], folder: Path, catalogs: Sequence[Path], as_of: str, *,
              progress: Progress = lambda share: None) -> Calibration:
    """Fit the catalog's constants to the evidence, and write them and their residuals to `folder`.

    The priors are the catalog's figures without what `folder` fitted before, so that the same evidence gives the same
    bytes. Raises InputError where no row has a measured step time.
    """
    real(folder)  # minutes before it is written to
    before = Catalog(catalogs, unfitted=folder)
    evidence = [read_evidence(path) for path in paths]
    rows = [row for one in evidence if one.kind == "train_throughput" for row in rows_of(one, before)]
    if not rows:
        raise InputError("no row has a measured step time or speed and a prediction: see planner validate -v",
                         file=str(paths[0]))
    knobs = knobs_of(before, [row.outcome for row in rows])
    found = fit(rows, knobs, before, progress)
    source = f"{len(rows)} runs of {', '.join(path.name for path in paths)}, by planner calibrate"
    fitted, residuals = fitted_file(found, source, as_of, _note(found)), dict[str, str]()
    own = [folder] if holds_entries(folder, ALL_KINDS) else []
    after = Catalog([*catalogs, *own], unfitted=folder).with_fitted(validate(parse(fitted, FITTED), Fitted))
    for name, (kind, what, traits) in RESIDUALS.items():
        samples = [sample for one in evidence if one.kind == kind for sample in _samples(name, one, after)]
        if len(samples) >= LEAST_ROWS:
            kept = () if real(folder) == real(data_root("catalogs")) else _held(before, name)
            residuals[name] = residual_file(name, what, source, as_of, _over(kept, samples, traits))
    return Calibration(tuple(rows), found, tuple(save(folder, fitted, residuals)))


def _note(fit: Fit) -> str:
    """Say how far off the rows are, before, after, and with their own source left out."""
    return "median and 90th percentile of the error of speed: " + ", ".join(
        f"{e['median_abs_error']:.1%} and {e['p90_abs_error']:.1%} {what}" for e, what in (
            (summary(fit.before), "before"), (summary(fit.after), "fitted"),
            (summary(fit.left_out), "fitted without the row's source")))


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
