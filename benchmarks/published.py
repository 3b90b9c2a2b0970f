"""The published runs behind the shipped intervals, one a line, which reports and pages show beside an answer.

Run `python -m benchmarks.published` at the top of the checkout after `benchmarks.intervals`, which runs it too.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.intervals import ROOT, STEP, evidence_of
from benchmarks.published_media import diffusion_lines, learning_lines, making_lines
from planner.catalog.load import Catalog
from planner.catalog.published import DIFFUSION, LEARNING, MAKING, OWN, RUNS, TASK
from planner.evidence.compare import compare
from planner.evidence.residuals import speed_samples, step_samples
from planner.evidence.rows import StatedRun

Line = Mapping[str, object]


def main() -> int:
    """Write the files of runs, or those that are named."""
    catalog = Catalog()
    files: dict[str, tuple[Sequence[str], Callable[[Catalog], Iterator[Line]]]] = {
        "step-runs": (catalog.step_residuals.law.traits, _step_lines),
        "tpot-runs": (catalog.serving_residuals("tpot_ms").law.traits, _token_lines),
        RUNS[LEARNING]: ((TASK, "framework"), learning_lines), RUNS[MAKING]: ((TASK, "stack"), making_lines),
        RUNS[DIFFUSION]: ((TASK, "stack"), diffusion_lines)}
    for name in sys.argv[1:] or files:
        traits, lines = files[name]
        text = io.StringIO()
        writer = csv.DictWriter(text, [*traits, *OWN], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines(catalog), key=str))
        (ROOT / "catalogs" / "calibration" / f"{name}.csv").write_text(text.getvalue(), encoding="utf-8")
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
