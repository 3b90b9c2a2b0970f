"""The published runs behind the intervals of reinforcement learning and of diffusion models, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.intervals import EVIDENCE
from benchmarks.rl import is_guessed
from planner.catalog.addresses import page_of
from planner.catalog.load import Catalog
from planner.catalog.published import DIFFUSION, LEARNING, MAKING, TASK
from planner.evidence.compare import compare
from planner.evidence.diffusion_row import DiffusionRow
from planner.evidence.diffusion_stacks import stack_of
from planner.evidence.posttraining import MICRO_BATCH, RlRow
from planner.evidence.reading import read_evidence

Line = Mapping[str, object]
CALLS, STEP = ("latency_s", "throughput"), "step_time_s"


def learning_lines(catalog: Catalog) -> Iterator[Line]:
    """Yield the steps of reinforcement learning, and the micro-batches where a framework has no steps, of runs that
    tell how long their answers are.
    """
    read = read_evidence(EVIDENCE / "rl.csv")
    rows = {row.id: row.run for row in read.rows if isinstance(row, RlRow)}
    for entry in compare(read, catalog).entries:
        run = rows[entry.id]
        if entry.quantity == "step_s" and not is_guessed(entry):
            yield {TASK: LEARNING, "framework": catalog.posttraining_law.framework((run.framework or "").lower()),
                   **_told(run.model, run.gpu, run.gpus, run.source), "measured": f"{float(entry.measured):.4g}",
                   "predicted": f"{float(entry.predicted):.4g}",
                   "unit": "s a micro-batch" if run.kind == MICRO_BATCH else "s a step"}


def making_lines(catalog: Catalog) -> Iterator[Line]:
    """Yield the published calls of making images and clips; of a rate, the seconds that a batch takes."""
    runs, law = catalog.generation_runs, catalog.generation_law
    read = read_evidence(EVIDENCE / "diffusion.csv")
    rows = {row.id: row.run for row in read.rows if isinstance(row, DiffusionRow) and row.run.kind == "inference"}
    for entry in compare(read, catalog).entries:
        if entry.quantity in CALLS and entry.id in rows and page_of(rows[entry.id].source or ""):
            run, stack = rows[entry.id], stack_of(rows[entry.id])
            measured, predicted = float(entry.measured), float(entry.predicted)
            if entry.quantity == "throughput":
                samples = (run.batch or runs.batches.get(stack, 1)) * (run.gpus or 1)
                measured, predicted = (samples / rate for rate in (measured, predicted))
            model = runs.models.get((run.model or "").lower(), run.model)
            yield {TASK: MAKING, "stack": law.stack if stack.startswith(law.stack) else stack,
                   **_told(model, run.gpu, run.gpus, run.source), "measured": f"{measured:.4g}",
                   "predicted": f"{predicted:.4g}", "unit": "s a call"}


def diffusion_lines(catalog: Catalog) -> Iterator[Line]:
    """Yield the published steps of training diffusion models."""
    read = read_evidence(EVIDENCE / "diffusion.csv")
    rows = {row.id: row.run for row in read.rows if isinstance(row, DiffusionRow)}
    for entry in compare(read, catalog).entries:
        if entry.quantity == STEP and page_of(rows[entry.id].source or ""):
            run = rows[entry.id]
            model = catalog.diffusion_runs.models.get((run.model or "").lower(), run.model)
            yield {TASK: DIFFUSION, "stack": stack_of(run), **_told(model, run.gpu, run.gpus, run.source),
                   "measured": f"{float(entry.measured):.4g}", "predicted": f"{float(entry.predicted):.4g}",
                   "unit": "s a step"}


def _told(model: str | None, gpu: str | None, gpus: int | None, source: str | None) -> Line:
    """Return what a run is called; its source is one address with the place in it."""
    return {"what": f"{model} on {gpu}", "gpus": gpus or 1, "source": source or "", "where": ""}
