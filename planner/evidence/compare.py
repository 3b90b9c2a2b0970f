"""Predicted against measured: one entry for each quantity that a row states."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.evidence.hardware import UNKNOWN_GPU
from planner.evidence.prediction import Prediction, predict
from planner.evidence.rows import Evidence, Row, ServeMeasured, ServeRun, TrainMeasured, TrainRun
from planner.evidence.serve_speed import Speed, predict_speeds
from planner.evidence.serve_speed import quantities as speed_quantities
from planner.evidence.serving import predict_serving, quantities
from planner.evidence.skipping import SkippedError


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row that has a prediction, with its entries."""

    row: Row
    prediction: Prediction
    entries: tuple[Entry, ...]

    @property
    def measured_seconds(self) -> float | None:
        """Step time as measured: printed, else from the printed speed."""
        measured, step = self.row.measured, self.prediction.evaluation.step.seconds
        assert isinstance(measured, TrainMeasured)
        if measured.step_time_s is not None:
            return measured.step_time_s
        if measured.tokens_per_s_per_gpu is None:
            return None
        return step * self.prediction.evaluation.tokens_per_second_per_gpu / measured.tokens_per_s_per_gpu


@dataclass(frozen=True, slots=True)
class Comparison:
    """A whole file: what was predicted, and (id, reason) of what was not."""

    outcomes: tuple[Outcome, ...]
    """Training rows."""
    served: tuple[Entry, ...]
    """Of serving rows."""
    skipped: tuple[tuple[str, str], ...]
    speeds: tuple[tuple[Row, Speed], ...] = ()
    """Of serving rows whose speed is predicted."""

    @property
    def entries(self) -> list[Entry]:
        """All entries, training before serving."""
        return [*(entry for outcome in self.outcomes for entry in outcome.entries), *self.served]


def compare(evidence: Evidence, catalog: Catalog) -> Comparison:
    """Predict every row of a file that can be predicted."""
    outcomes: list[Outcome] = []
    served: list[Entry] = []
    skipped: list[tuple[str, str]] = []
    runs = {at: row.run for at, row in enumerate(evidence.rows)
            if isinstance(row.run, ServeRun) and not row.suspect and row.problem is None}
    speeds = predict_speeds(runs, catalog) if evidence.kind == "serve_throughput" else {}
    fast: list[tuple[Row, Speed]] = []
    for at, row in enumerate(evidence.rows):
        try:
            if row.problem is not None:
                raise SkippedError(row.problem)
            if row.suspect:
                raise SkippedError("marked suspect")
            if at in speeds:
                found = speeds[at]
                served += _sped(row, found, catalog)
                if isinstance(found, Speed):
                    fast.append((row, found))
            elif isinstance(row.run, ServeRun):
                served += _served(row, catalog)
            else:
                outcomes.append(_outcome(row, evidence.kind, catalog))
        except (SkippedError, PlannerError) as reason:
            # whatever is wrong with one row, the others are judged
            skipped.append((row.id, str(reason)))
    return Comparison(tuple(outcomes), tuple(served), tuple(skipped), tuple(fast))


def _served(row: Row, catalog: Catalog) -> list[Entry]:
    """Return the entries of a row of an engine's memory."""
    assert isinstance(row.run, ServeRun)
    assert isinstance(row.measured, ServeMeasured)
    found = predict_serving(row.run, catalog)
    return _stated([_number(row.id, name, predicted, measured, (predicted * (1 - spread), predicted * (1 + spread)),
                            found.assumed)
                    for name, predicted, measured, spread in quantities(row.run, row.measured, found)])


def _sped(row: Row, found: Speed | str, catalog: Catalog) -> list[Entry]:
    """Return the entries of a row of serving speed, or raise the reason why it has none."""
    assert isinstance(row.run, ServeRun)
    assert isinstance(row.measured, ServeMeasured)
    if isinstance(found, str):
        raise SkippedError(found)
    entries = []
    for name, predicted, measured in speed_quantities(row.run, row.measured, found):
        spread = catalog.serving_residuals.match(quantity=name, **found.traits)
        entries.append(_number(row.id, name, predicted, measured, (predicted * spread.q05, predicted * spread.q95),
                               found.row.assumed))
    return _stated(entries)


def _stated(entries: list[Entry]) -> list[Entry]:
    if not entries:
        raise SkippedError("no quantity stated that is compared")
    return entries


def _outcome(row: Row, kind: str, catalog: Catalog) -> Outcome:
    assert isinstance(row.run, TrainRun)
    assert isinstance(row.measured, TrainMeasured)
    prediction = predict(row.run, catalog, memory_only=kind == "train_memory")
    entries = tuple(_stated(list(_entries(row.id, row.measured, prediction))))
    return Outcome(row, prediction, entries)


def _entries(identifier: str, measured: TrainMeasured, prediction: Prediction) -> Iterator[Entry]:
    step, memory = prediction.step_residual, prediction.memory_residual
    speed = prediction.evaluation.tokens_per_second_per_gpu
    if measured.tokens_per_s_per_gpu is not None:
        yield _number(identifier, "tokens_per_s_per_gpu", speed, measured.tokens_per_s_per_gpu,
                      (speed / step.q95, speed / step.q05), prediction.assumed)
    if measured.step_time_s is not None:
        seconds = prediction.evaluation.step.seconds
        yield _number(identifier, "step_time_s", seconds, measured.step_time_s,
                      (seconds * step.q05, seconds * step.q95), prediction.assumed)
    if measured.peak_mem_gib is not None:
        kind = kind_of(measured, prediction)
        assumed = prediction.assumed if kind == measured.mem_kind else (*prediction.assumed, f"mem_kind={kind}")
        peak = prediction.memory_gib(kind)
        yield _number(identifier, "peak_mem_gib", peak, measured.peak_mem_gib, (peak * memory.q05, peak * memory.q95),
                      assumed)
    if measured.fits is not None and UNKNOWN_GPU not in prediction.assumed:
        yield Entry(id=identifier, quantity="fits", predicted=prediction.fits,
                    measured="yes" if measured.fits else "no", error=None, assumed=prediction.assumed)


def kind_of(measured: TrainMeasured, prediction: Prediction) -> str:
    """Return what a measured peak counts: allocated, reserved or nvidia-smi, as stated or as its source does."""
    known = ("allocated", "reserved", "nvidia-smi")
    return measured.mem_kind if measured.mem_kind in known and measured.mem_kind else prediction.usual_kind


def _number(identifier: str, quantity: str, predicted: float, measured: float, interval: tuple[float, float],
            assumed: tuple[str, ...]) -> Entry:
    if not all(map(math.isfinite, (predicted, *interval))):
        raise SkippedError(f"what is stated gives no finite {quantity}")
    return Entry(id=identifier, quantity=quantity, predicted=predicted, measured=measured,
                 error=predicted / measured - 1, interval90=interval, assumed=assumed)
