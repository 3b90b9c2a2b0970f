"""Predicted against measured: one entry for each quantity that a row states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.catalog.quirk import Sources
from planner.evidence.diffusion import entries as diffusion_entries
from planner.evidence.diffusion_row import DiffusionRow
from planner.evidence.hardware import UNKNOWN_GPU
from planner.evidence.kinds import EvidenceFile
from planner.evidence.multimodal import CARD_SIZE
from planner.evidence.posttraining import RlRow
from planner.evidence.posttraining import entries as rl_entries
from planner.evidence.prediction import Prediction, predict
from planner.evidence.rates import LinkRow, RateRow, link_row, predicted_seconds
from planner.evidence.rows import ServeRow, TrainMeasured, TrainRow
from planner.evidence.serve_speed import Speed, predict_speeds
from planner.evidence.serve_speed import quantities as speed_quantities
from planner.evidence.serving import predict_serving, quantities
from planner.evidence.skipping import UNREADABLE, SkippedError, why
from planner.evidence.whole_rows import WholeRow
from planner.evidence.whole_runs import WholePrediction, predict_whole

MEMORY_FIRST = ("train_memory", "multimodal")
"""Kinds of file whose lengths are those of the peak."""


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """One row that has a prediction, with its entries."""

    row: TrainRow
    prediction: Prediction
    entries: tuple[Entry, ...]

    @property
    def measured_seconds(self) -> float | None:
        """Step time as measured: printed, else from the printed speed."""
        measured, step = self.row.measured, self.prediction.evaluation.step.seconds
        if measured.step_time_s is not None:
            return measured.step_time_s
        if measured.tokens_per_s_per_gpu is None:
            return None
        return step * self.prediction.tokens_per_second_per_gpu / measured.tokens_per_s_per_gpu


@dataclass(frozen=True, slots=True)
class EvidenceComparison:
    """A whole file: what was predicted, and (id, reason) of what was not."""

    outcomes: tuple[PredictedRow, ...]
    """Training rows."""
    served: tuple[Entry, ...]
    """Of rows of serving, and of diffusion models."""
    skipped: tuple[tuple[str, str], ...]
    speeds: tuple[tuple[ServeRow, Speed], ...] = ()
    """Of serving rows whose speed is predicted."""
    whole: tuple[tuple[WholeRow, WholePrediction, Entry], ...] = ()
    """Of whole runs."""
    links: tuple[Entry, ...] = ()
    """Of collectives."""

    @property
    def entries(self) -> list[Entry]:
        """All entries, training before serving."""
        return [*(entry for outcome in self.outcomes for entry in outcome.entries), *self.served,
                *(entry for _, _, entry in self.whole), *self.links]


def compare(evidence: EvidenceFile, catalog: Catalog) -> EvidenceComparison:
    """Predict every row of a file that can be predicted; what is wrong with any other is its reason to be skipped.

    Raises InputError for a catalog whose rules of evidence do not read.
    """
    said = catalog.sources
    outcomes: list[PredictedRow] = []
    served: list[Entry] = []
    skipped = list(evidence.unread)
    runs = {at: row.run for at, row in enumerate(evidence.rows) if isinstance(row, ServeRow) and not row.suspect}
    speeds = predict_speeds(runs, catalog) if evidence.kind == "serve_throughput" else {}
    fast: list[tuple[ServeRow, Speed]] = []
    whole: list[tuple[WholeRow, WholePrediction, Entry]] = []
    links: list[tuple[str, LinkRow]] = []
    for at, row in enumerate(evidence.rows):
        try:
            if row.suspect:
                raise SkippedError("marked suspect")
            if isinstance(row, TrainRow):
                prediction = predict(row.run, catalog, memory_only=evidence.kind in MEMORY_FIRST)
                outcomes.append(PredictedRow(row, prediction, _stated(_trained(row, prediction, catalog))))
            elif isinstance(row, WholeRow):
                whole.append(_whole(row, catalog))
            elif isinstance(row, RateRow):
                links.append((row.id, link_row(row, catalog)))
            elif isinstance(row, DiffusionRow | RlRow):
                served += _stated(diffusion_entries(row, catalog) if isinstance(row, DiffusionRow)
                                  else rl_entries(row, catalog))
            elif evidence.kind == "serve_memory":
                served += _stated(_served(row, catalog, said))
            else:
                speed = speeds[at]
                if isinstance(speed, str):
                    raise SkippedError(speed)
                served += _stated(_sped(row, speed, catalog))
                fast.append((row, speed))
        except UNREADABLE as reason:
            skipped.append((row.id, why(reason)))
    return EvidenceComparison(tuple(outcomes), tuple(served), tuple(skipped), tuple(fast), tuple(whole),
                      tuple(_linked(links, catalog)))


def _linked(rows: Sequence[tuple[str, LinkRow]], catalog: Catalog) -> Iterator[Entry]:
    """Yield the entries of collectives, whose curves have no interval."""
    took = predicted_seconds([row for _, row in rows], catalog) if rows else ()
    for (name, row), seconds in zip(rows, took, strict=True):
        yield Entry(id=name, quantity="seconds", predicted=float(seconds), measured=row.seconds,
                    error=float(seconds) / row.seconds - 1)


def _whole(row: WholeRow, catalog: Catalog) -> tuple[WholeRow, WholePrediction, Entry]:
    """Return a whole run with its prediction and its entry."""
    if row.measured.gpu_hours is None:
        raise SkippedError("GPU-hours not stated")
    prediction = predict_whole(row.run, catalog)
    return row, prediction, _number(row.id, "gpu_hours", prediction.hours, row.measured.gpu_hours,
                                    prediction.interval90,
                               prediction.assumed)


def _served(row: ServeRow, catalog: Catalog, said: Sources) -> Iterator[Entry]:
    """Yield the entries of a row of an engine's memory."""
    prediction = predict_serving(row.run, catalog)
    for name, predicted, measured, spread in quantities(row.run, row.measured, prediction, said):
        yield _number(row.id, name, predicted, measured, (predicted * (1 - spread), predicted * (1 + spread)),
                      prediction.assumed)


def _sped(row: ServeRow, speed: Speed, catalog: Catalog) -> Iterator[Entry]:
    """Yield the entries of a row of serving speed."""
    for name, predicted, measured in speed_quantities(row.run, row.measured, speed):
        spread = catalog.serving_residuals(name).at(speed.traits)
        yield _number(row.id, name, predicted, measured, (predicted * spread.q05, predicted * spread.q95),
                      speed.row.assumed)


def _trained(row: TrainRow, prediction: Prediction, catalog: Catalog) -> Iterator[Entry]:
    """Yield the entries of a training row."""
    measured, assumed = row.measured, prediction.assumed
    # what a script prints by hand leaves lengths and kernels open
    is_open, is_new = row.stated is False or row.run.task is not None, row.prefix not in catalog.step_residuals.sources
    step = catalog.step_residuals.at(prediction.step_traits, prediction.sizes, is_open=is_open)
    memory = catalog.memory_residuals.at(prediction.memory_traits, prediction.sizes, is_open=is_open,
                                         guessed=prediction.guessed).of_parts(prediction.memory_parts)
    speed, seconds = prediction.tokens_per_second_per_gpu, prediction.evaluation.step.seconds
    if measured.tokens_per_s_per_gpu is not None:
        yield _number(row.id, "tokens_per_s_per_gpu", speed, measured.tokens_per_s_per_gpu,
                      (speed / step.q95, speed / step.q05), assumed, is_new=is_new)
    # a GPU that is assumed has a size, and no speed
    if measured.step_time_s is not None and row.run.gpu is not None:
        yield _number(row.id, "step_time_s", seconds, measured.step_time_s, (seconds * step.q05, seconds * step.q95),
                      assumed, is_new=is_new)
    if measured.needed_gib is not None and not (row.run.notes or "").startswith(CARD_SIZE):
        kind = kind_of(measured, prediction)
        peak = prediction.memory_gib(kind)
        hand = catalog.sources.number("rounding", row.run) or 0.0
        yield _number(row.id, "peak_mem_gib", peak, measured.needed_gib,
                      (peak * memory.q05 - hand, peak * memory.q95 + hand),
                      assumed if kind == measured.mem_kind else (*assumed, f"mem_kind={kind}"),
                      is_new=row.prefix not in catalog.memory_residuals.sources)
    if measured.fits is not None and UNKNOWN_GPU not in assumed:
        yield Entry(id=row.id, quantity="fits", predicted=prediction.fits, measured="yes" if measured.fits else "no",
                    error=None, assumed=assumed)


def _stated(entries: Iterator[Entry]) -> tuple[Entry, ...]:
    held = tuple(entries)
    if not held:
        raise SkippedError("no quantity stated that is compared")
    return held


def kind_of(measured: TrainMeasured, prediction: Prediction) -> str:
    """Return what a measured peak counts: allocated, reserved or nvidia-smi, as stated or as its source does."""
    known = ("allocated", "reserved", "nvidia-smi")
    return measured.mem_kind if measured.mem_kind in known and measured.mem_kind else prediction.usual_kind


def _number(identifier: str, quantity: str, predicted: float, measured: float, interval: tuple[float, float],
            assumed: tuple[str, ...], *, is_new: bool = False) -> Entry:
    if not all(map(math.isfinite, (predicted, *interval))):
        raise SkippedError(f"what is stated gives no finite {quantity}")
    return Entry(id=identifier, quantity=quantity, predicted=predicted, measured=measured,
                 error=predicted / measured - 1, interval90=interval, is_new=is_new, assumed=assumed)
