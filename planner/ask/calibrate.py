"""`planner calibrate`: constants fitted to measured runs, and quantiles of what they leave, as a catalog folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.catalog.fitted import FITTED, Fitted
from planner.catalog.folders import holds_entries
from planner.catalog.load import ALL_KINDS, Catalog, data_root
from planner.catalog.nearness import Cell
from planner.catalog.residuals import Law, Quantiles, Residuals, Spreading
from planner.errors import InputError
from planner.evidence.compare import compare
from planner.evidence.kinds import EvidenceFile
from planner.evidence.rates import RateRow, readable
from planner.evidence.reading import read_evidence
from planner.evidence.residuals import LEAST_ROWS, OWN_ROWS, as_first, memory_samples, speed_samples, step_samples
from planner.evidence.run_logs import Ran
from planner.evidence.spread import NONE, Left, LogRatio, as_they_are, cells_of, residuals_of
from planner.evidence.summary import spread
from planner.fit.cluster import fit_cluster
from planner.fit.knobs import FitConstant, engine_knobs, knobs_of
from planner.fit.learned import LEARNED, factors_of, learned_file
from planner.fit.links import fabric_files
from planner.fit.rows import Rows, TrainingRows, changed, rows_of
from planner.fit.serving_rows import ServingRows, serving_rows
from planner.fit.solve import Fit, Linearized, Progress, fit
from planner.fit.whole import WHOLE, fit_whole, whole_file, whole_samples
from planner.fit.write import fitted_file, residual_file, save
from planner.layouts.table import Floats, Ints, Mask
from planner.text_io import real, write_folder
from planner.yaml_io import parse, validate

SCHEMA = "planner.calibration/1"
STEP, MEMORY = "step-residuals", "memory-residuals"
SERVING = {"output-residuals": "output_tok_s_per_gpu", "tpot-residuals": "tpot_ms", "ttft-residuals": "ttft_ms"}
"""File of residuals of serving -> the quantity that it is of."""
RESIDUALS: dict[str, tuple[tuple[str, ...], str]] = {
    STEP: (("train_throughput",), "step time"), MEMORY: (("train_memory", "train_throughput"), "peak memory"),
    **{name: (("serve_throughput",), what) for name, what in SERVING.items()}}
"""File of residuals -> kinds of evidence, and what is compared."""


@dataclass(frozen=True, slots=True)
class FittedPart:
    """One fit with the rows it stands on: of training, or of serving speed."""

    rows: Rows
    count: int
    fit: Fit


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was fitted, and the files written."""

    parts: tuple[FittedPart, ...]
    files: tuple[Path, ...]
    whole: int = 0
    """Whole runs that were fitted beside."""
    links: int = 0
    """Collectives that fabrics were written from."""
    learned: int = 0
    """Runs of reinforcement learning that its phases were fitted to."""

    def as_json(self) -> dict[str, Any]:
        """Return constants, errors and files, schema planner.calibration/1."""
        constants = [{"entry": knob.place, "field": knob.field, "prior": knob.prior,
                      "value": knob.value(float(at)) if decided else knob.prior, "spread": float(spread),
                      "prior_spread": knob.spread, "rows": rows, "fitted": bool(decided)}
                     for fit in (part.fit for part in self.parts)
                     for knob, at, spread, decided, rows in zip(fit.knobs, fit.coordinates, fit.spreads, fit.decided,
                                                                fit.acting, strict=True)]
        quantities = np.array([quantity for part in self.parts for quantity in part.rows.quantities])
        count = self.whole + self.links + self.learned + sum(part.count for part in self.parts)
        return {"schema": SCHEMA, "rows": count,
                "sources": sorted({source for part in self.parts for source in part.rows.sources}),
                "errors": _errors(self.parts),
                "errors_by_quantity": {name: _errors(self.parts, quantities == name)
                                       for name in dict.fromkeys(quantities.tolist())},
                "links": self.links, "learned": self.learned, "constants": constants,
                "files": [str(path) for path in self.files]}


NOTHING = Calibration((), ())


def _errors(parts: Sequence[FittedPart], chosen: Mask | slice = slice(None)) -> dict[str, dict[str, float]]:
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
              stated: Mapping[str, str] | None = None, started: Ran | None = None,
              progress: Progress = lambda share: None) -> Calibration:
    """Fit the catalog's constants to the evidence, and write them and their residuals to `folder`.

    Training rows decide stacks and calibration; serving rows then decide the steps of engines under what was fitted.
    The priors are the catalog's figures without what `folder` fitted before, so that the same evidence gives the same
    bytes. Whole runs decide what runs add to their steps, once the others are in the catalog. started: what a log of
    training is of. Raises InputError where no row has a measured speed.
    """
    real(folder)  # minutes before it is written to
    before = Catalog(catalogs, unfitted=folder)
    evidence = [read_evidence(path, stated, started) for path in paths]
    ships = real(folder) == real(data_root("catalogs"))
    links = _links(evidence, before, paths, folder, as_of)
    parts = _fits(evidence, before, progress, own=not ships)
    runs = [file for file in evidence if file.kind == "train_runs"]
    learned = _learned(evidence, before, paths, folder, as_of)
    beside = _with(links, learned)
    if beside.files and not parts and not runs:
        return beside
    if not parts and not runs:
        raise InputError("no row has a measured step time or speed and a prediction: see planner validate -v",
                         file=str(paths[0]))
    own = [folder] if holds_entries(folder, ALL_KINDS) else []
    if not parts:
        return _with(beside, _whole(runs, paths, folder, Catalog([*catalogs, *own]), as_of))
    source = f"{sum(p.count for p in parts)} runs of {', '.join(path.name for path in paths)}, by planner calibrate"
    fitted = fitted_file([part.fit for part in parts], source, as_of, _note(parts))
    residuals: dict[str, str] = {}
    after = Catalog([*catalogs, *own], unfitted=folder).with_fitted(validate(parse(fitted, FITTED), Fitted))
    linear = next((part.fit.linear for part in parts if isinstance(part.rows, TrainingRows)), None)
    for name, (kinds, what) in RESIDUALS.items():
        known = refit_of(linear) if linear is not None and name == STEP else None
        samples, left = learnt(name, [file for file in evidence if file.kind in kinds], after, known)
        if len(samples) >= (LEAST_ROWS if ships else OWN_ROWS):
            how = before.spreading
            law = (residuals_of(samples, how.laws[name], how, left) if ships
                   else _over(before.residuals(name), samples, how, left))
            residuals[name] = residual_file(name, what, source, as_of, *law)
    done = _with(beside, Calibration(tuple(parts), tuple(save(folder, fitted, residuals))))
    return _with(done, _whole(runs, paths, folder, after, as_of)) if runs else done


def _with(done: Calibration, more: Calibration) -> Calibration:
    """Return two calibrations of one folder as one."""
    return Calibration((*done.parts, *more.parts), (*done.files, *more.files), done.whole + more.whole,
                       done.links + more.links, done.learned + more.learned)


def _whole(evidence: Sequence[EvidenceFile], paths: Sequence[Path], folder: Path, catalog: Catalog,
           as_of: str) -> Calibration:
    """Fit what whole runs add to their steps, and write it. Raises InputError where no run has a prediction."""
    samples = [sample for file in evidence for sample in whole_samples(compare(file, catalog).whole)]
    if not samples:
        raise InputError("no row has GPU-hours and a prediction: see planner validate -v", file=str(paths[0]))
    source = f"{len(samples)} runs of {', '.join(path.name for path in paths)}, by planner calibrate"
    text = whole_file(fit_whole(samples, catalog.whole_runs.prior), catalog.whole_runs, source, as_of)
    return Calibration((), tuple(write_folder(folder / "calibration", {f"{WHOLE}.yaml": text})), len(samples))


def _learned(evidence: Sequence[EvidenceFile], catalog: Catalog, paths: Sequence[Path], folder: Path,
             as_of: str) -> Calibration:
    """Write the factors of phases of reinforcement learning; nothing where no run says a phase."""
    entries = [entry for file in evidence if file.kind == "rl" for entry in compare(file, catalog).entries]
    factors = factors_of(entries, catalog.posttraining_law)
    if not factors:
        return NOTHING
    count = len({entry.id for entry in entries})
    source = f"{count} runs of {', '.join(path.name for path in paths)}, by planner calibrate"
    text = learned_file(factors, catalog.posttraining_law, source, as_of)
    return Calibration((), tuple(write_folder(folder / "calibration", {f"{LEARNED}.yaml": text})), learned=count)


def _links(evidence: Sequence[EvidenceFile], catalog: Catalog, paths: Sequence[Path], folder: Path,
           as_of: str) -> Calibration:
    """Write the fabrics that measured collectives say; nothing where there are none. Raises InputError."""
    given = [row for file in evidence for row in file.rows if isinstance(row, RateRow)]
    rows, why = readable(given, catalog)
    if not rows:
        if given:
            raise InputError(f"no collective can be read: {why or 'none is measured'}", file=str(paths[0]))
        return NOTHING
    source = f"{len(rows)} collectives of {', '.join(path.name for path in paths)}, by planner calibrate"
    files = write_folder(folder / "fabrics", fabric_files(rows, catalog, source, as_of))
    return Calibration((), tuple(files), links=len(rows))


def _fits(evidence: Sequence[EvidenceFile], catalog: Catalog, progress: Progress, *, own: bool) -> list[FittedPart]:
    """Return the fit to training rows and the fit to serving rows, each where there are any.

    own: whether the rows of training are of one cluster.
    """
    trained = TrainingRows(tuple(row for file in evidence if file.kind == "train_throughput"
                                 for row in rows_of(file, catalog)))
    serving = [file for file in evidence if file.kind == "serve_throughput"]
    share, parts = 0.5 if trained.rows and serving else 1.0, []
    if trained.rows:
        knobs = knobs_of(catalog, [row.outcome for row in trained.rows], own=own)
        fitted = (fit_cluster if own else fit)(trained, knobs, catalog, lambda done: progress(share * done))
        parts.append(FittedPart(trained, len(trained.rows), fitted))
        catalog = changed(catalog, knobs, fitted.coordinates)
    served = serving_rows(serving, catalog)
    if served.runs:
        parts.append(FittedPart(served, len(served.runs), fit(
            served, _engine_knobs(served), catalog, lambda done: progress(1 - share + share * done))))
    return parts


def _engine_knobs(rows: ServingRows) -> list[FitConstant]:
    releases = [(group.engine, group.deployment.engine) for group in rows.groups]
    return [knob for knob in engine_knobs(releases) if len(rows.acting(knob))]


def _note(parts: Sequence[FittedPart]) -> str:
    """Say how far off the rows are, before, after, and with their own source left out."""
    errors = _errors(parts)
    return "median and 90th percentile of the error of speed: " + ", ".join(
        f"{errors[name]['median_abs_error']:.1%} and {errors[name]['p90_abs_error']:.1%} {what}" for name, what in (
            ("before", "before"), ("after", "fitted"), ("left_out", "fitted without the row, or its source")))


@dataclass(frozen=True, slots=True)
class Refit:
    """Rows about the constants of the catalog: their places by id, and of some places the logarithms of measured over
    predicted under constants fitted without them, and without others beside them.
    """

    places: Mapping[str, int]
    without: Callable[[Ints, Ints], Floats]


def refit_of(linear: Linearized) -> Refit:
    """Return rows of training about the constants of the catalog."""
    assert isinstance(linear.rows, TrainingRows)
    return Refit({row.outcome.row.id: place for place, row in enumerate(linear.rows.rows)},
                 lambda places, beside: -linear.without(np.concatenate([places, beside]))[:len(places)])


def learnt(name: str, evidence: Sequence[EvidenceFile], catalog: Catalog, refit: Refit | None
           ) -> tuple[list[LogRatio], Left | None]:
    """Return the samples of a file of residuals, and how they lie with constants that were fitted without some.

    refit: by id; of serving by id and quantity.
    """
    compared = [compare(file, catalog) for file in evidence]
    firsts = catalog.first_predictions.of(name)
    if name in SERVING:
        quantity = SERVING[name]
        signed = as_first(firsts, [
            sample for one in compared for sample in speed_samples(one, quantity, catalog.sources)])
        return [sample for *_, sample in signed], None if refit is None else _refitted(signed, refit)
    outcomes = [outcome for comparison in compared for outcome in comparison.outcomes]
    found = memory_samples(outcomes, catalog.sources) if name == MEMORY else step_samples(outcomes)
    signed = as_first(firsts, [(row, 1.0, sample) for row, sample in found
                               if catalog.first_predictions.decides(name, row)])
    return [sample for *_, sample in signed], None if refit is None else _refitted(signed, refit)


def _refitted(signed: Sequence[tuple[str, float, LogRatio]], refit: Refit) -> Left:
    """Return the logarithms of samples under constants fitted without them; of those that took no part as they are."""
    def known(chosen: Ints) -> Ints:
        names = [signed[int(place)][0] for place in chosen]
        return np.array([refit.places[name] for name in names if name in refit.places], np.int64)

    def left(chosen: Ints, beside: Ints = NONE, /) -> Floats:
        mine = [signed[int(place)] for place in chosen]
        logs = np.array([sample.log for *_, sample in mine])
        took = np.array([place for place, (name, *_) in enumerate(mine) if name in refit.places], np.int64)
        if len(took):
            signs = np.array([mine[int(place)][1] for place in took])
            logs[took] = signs * refit.without(known(chosen), known(beside))
        return logs

    return left


def _over(kept: Residuals, samples: Sequence[LogRatio], how: Spreading, left: Left | None
          ) -> tuple[Law, Quantiles, list[Cell], None]:
    """Return the cells of a cluster's samples before those of the catalog, under its law.

    left: constants without some samples, so that each is judged by the others.
    """
    without = left or as_they_are(samples)
    logs = np.concatenate([without(np.array([place])) for place in range(len(samples))])
    own = [cell.model_copy(update={"own": True}) for cell in cells_of(samples, logs, kept.law, how,
                                                                      kept.cells[-1].spread) if cell.traits]
    names = [cell.traits for cell in own]
    return kept.law, kept.quantiles, [*own, *(cell for cell in kept.cells if cell.traits not in names)], None
