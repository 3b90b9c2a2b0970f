"""The published runs behind the shipped intervals, one a line, which reports and pages show beside an answer.

Run `python -m benchmarks.published` at the top of the checkout after `benchmarks.intervals`, which runs it too.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Mapping

from benchmarks.intervals import ROOT, STEP, evidence_of
from planner.catalog.load import Catalog
from planner.catalog.published import OWN
from planner.evidence.compare import compare
from planner.evidence.residuals import speed_samples, step_samples
from planner.evidence.rows import StatedRun

RUNS = {STEP: "step-runs", "tpot-residuals": "tpot-runs"}
"""File of residuals -> the file of its runs."""
Line = Mapping[str, object]


def main() -> int:
    """Write the files of runs."""
    catalog = Catalog()
    for name, runs in RUNS.items():
        law = (catalog.step_residuals if name == STEP else catalog.serving_residuals("tpot_ms")).law
        lines = sorted((_step_lines if name == STEP else _token_lines)(catalog), key=str)
        text = io.StringIO()
        writer = csv.DictWriter(text, [*law.traits, *OWN], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        (ROOT / "catalogs" / "calibration" / f"{runs}.csv").write_text(text.getvalue(), encoding="utf-8")
    return 0


def _step_lines(catalog: Catalog) -> Iterator[Line]:
    for file in evidence_of(STEP):
        outcomes = compare(file, catalog).outcomes
        counted = {name for name, sample in step_samples(outcomes) if not sample.is_open}
        for outcome in outcomes:
            if outcome.row.id in counted and (seconds := outcome.measured_seconds) is not None:
                predicted = outcome.prediction.evaluation.step.seconds
                yield {**outcome.prediction.step_traits, **_told(outcome.row.run, outcome.prediction.gpu),
                       "measured": f"{seconds:.4g}", "predicted": f"{predicted:.4g}", "unit": "s a step"}


def _token_lines(catalog: Catalog) -> Iterator[Line]:
    for file in evidence_of("tpot-residuals"):
        found = compare(file, catalog)
        entries = {entry.id: entry for entry in found.served if entry.quantity == "tpot_ms"}
        traits = {key: sample.traits for key, _, sample in speed_samples(found, "tpot_ms", catalog.sources)}
        for row, _ in found.speeds:
            entry, alike = entries.get(row.id), traits.get(f"{row.id} tpot_ms")
            if entry is not None and alike is not None:
                yield {**alike, **_told(row.run, row.run.gpu or ""), "unit": "ms a token",
                       "measured": f"{float(entry.measured):.4g}", "predicted": f"{float(entry.predicted):.4g}"}


def _told(run: StatedRun, gpu: str) -> Line:
    return {"what": f"{run.model} on {gpu}", "gpus": run.gpus or 1, "source": run.source or "",
            "where": run.source_detail or ""}


if __name__ == "__main__":
    sys.exit(main())
