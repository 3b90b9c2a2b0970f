"""Rows of training diffusion models: what was run and measured, and what is predicted of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.answer.validation import Entry
from planner.catalog.diffusion_runs import DiffusionRuns, Example, Recomputing
from planner.catalog.load import Catalog
from planner.errors import UnknownName
from planner.evidence.diffusion_row import DiffusionRow, DiffusionRun
from planner.evidence.diffusion_stacks import shared_out, stack_of, trained_on, translated
from planner.evidence.generation import CONFIDENCE, GenerationAsked, generation_entries
from planner.evidence.skipping import SkippedError
from planner.jobs.diffusion.assignment import verdict
from planner.jobs.diffusion.options import StepWay, interval, tunings
from planner.money.rent import usual_candidate
from planner.physics.diffusion.step import StepSplit, Trainee, allocated
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.hardware_names import node_named
from planner.scenario.pixels import resolution_of
from planner.units import GIB

TRAINING = ("training", "training to target")
MAKING = ("inference", "component inference")
LOADED = "Server"
"""In the name of MLPerf's scenario whose latency is that of requests that wait."""


def example_of(run: DiffusionRun, catalog: Catalog) -> tuple[str, Example | None]:
    """Return the name of the example configuration that a run is of, and what is known of it."""
    called = (run.notes or "").partition(";")[0].removeprefix("example ").strip()
    return called, catalog.diffusion_runs.examples.get(called)


@dataclass(frozen=True, slots=True)
class DiffusionPrediction:
    """What a run is predicted to take, and what had to be assumed of it."""

    option: StepWay
    fits: str
    assumed: tuple[str, ...]


def predict_diffusion(run: DiffusionRun, catalog: Catalog) -> DiffusionPrediction:
    """Return what a run takes. Raises SkippedError, or UnknownName for a GPU."""
    runs, law = catalog.diffusion_runs, catalog.diffusion_law
    if run.kind not in TRAINING:
        raise SkippedError(f"{run.kind or 'a run of no kind'} of a diffusion model is not modeled")
    if run.method not in ("lora", "full", *runs.kronecker):
        raise SkippedError(f"method {run.method} is not modeled: lora, lokr and full are")
    if run.gpu is None or (stack_of(run) == law.stack and (run.gpus or 1) != 1):
        raise SkippedError("of one GPU that is told apart, and this is not")
    candidate = usual_candidate(catalog.node(node_named(run.gpu, catalog, run.gpus or 1)[0]), catalog)
    worded, elsewhere = translated(run, runs, law)
    tuning, split, assumed = asked(worded, catalog)
    made = shared_out(run, tuning, split, candidate, catalog)
    if elsewhere:
        made = replace(made, likely=False)
    return DiffusionPrediction(made, verdict(made, candidate, law, CONFIDENCE), (*assumed, *elsewhere))


def asked(run: DiffusionRun, catalog: Catalog) -> tuple[Trainee, StepSplit, tuple[str, ...]]:
    """Return what a run trains and its split, and what is taken from elsewhere than the row. Raises SkippedError."""
    runs = catalog.diffusion_runs
    called, example = example_of(run, catalog)
    if called in runs.unlike:
        raise SkippedError(f"{called}: {runs.unlike[called]}")
    name = (example and example.model) or runs.models.get((run.model or "").lower(), run.model or "")
    try:
        model = catalog.diffusion(name)
    except UnknownName:
        raise SkippedError(f"the denoiser of {run.model} is not in the catalog") from None
    base = runs.bases.get(run.precision or "")
    if base is None:
        raise SkippedError(f"a base in {run.precision} is not modeled")
    kept = _recomputing(run.checkpointing or "none", model.name, runs, run.source or "")
    factors = runs.kronecker.get(run.method or "")
    stated = resolution_of((run.resolution or "").partition(",")[0])
    if example is None and (stated is None or model.media == "audio"):
        raise SkippedError(f"the resolution is not stated: {run.resolution}" if model.media != "audio" else
                           "the length of the sound is not stated")
    size, frames = (example.resolution, example.frames) if example else (stated, int(run.frames or 1))
    assumed: tuple[str, ...] = (f"resolution={size[0]}x{size[1]}", f"frames={frames}") if example and size else ()
    if example is not None and example.audio:
        assumed = (f"audio={example.audio:g} s",)
    work = DiffusionTraining.model_validate(
        {"model": model.name, "method": "lokr" if factors else run.method, "resolution": size, "frames": frames,
         "audio": example and example.audio, "latents": example.latents if example else "cached",
         "batch": int(run.batch or 1),
         "quantization": [base], "optimizer": runs.optimizers.get(run.optimizer or "", "adamw"),
         **({"lora_rank": int(run.lora_rank)} if run.lora_rank and run.method == "lora" else {}),
         **({"lora_targets": ["attention", "mlp"]} if run.method == "lora" and model.name in runs.fed else {}),
         **({"lokr_factor": factors.attention, "lora_targets": ["attention"] + ["mlp"] * bool(factors.mlp)}
            if factors else {})})
    split = StepSplit(micro_batch=work.batch, recomputed=kept.share, segment=kept.segment, spilled=kept.spilled,
                      entering=kept.entering)
    (tuning,) = tunings(work, catalog)
    if factors:
        tuning = replace(tuning, mlp=factors.mlp)
    if example is not None and example.wide:
        tuning = replace(tuning, wide=True)
    return tuning, replace(split, swapped=example.swapped) if example else split, assumed


def _recomputing(how: str, model: str, runs: DiffusionRuns, source: str) -> Recomputing:
    """Return what a setting of checkpointing does to a model in runs of a source. Raises SkippedError."""
    known = runs.recompute if model in runs.in_rows else runs.alone
    if how not in known:
        raise SkippedError(f"checkpointing {how} is not modeled")
    kept = known[how]
    acts = model in runs.acting and runs.acting[model] in source
    if kept.share and model in runs.ineffective and not acts:
        kept = known[runs.ineffective[model]].model_copy(update={"spilled": kept.spilled})
    if kept.share == 1 and model in runs.unspilled:
        kept = kept.model_copy(update={"spilled": False})
    return kept


def _generated(row: DiffusionRow, catalog: Catalog) -> Iterator[Entry]:
    run, measured = row.run, row.measured
    asked = GenerationAsked(
        stack=run.stack or "", model=run.model or "", component=run.component or "", gpu=run.gpu,
        gpus=int(run.gpus or 1), resolution=run.resolution or "", frames=int(run.frames or 1),
        batch=None if run.batch is None else int(run.batch), steps=run.steps, precision=run.precision or "",
        quantization=run.quantization or "", offload=run.offload or "", compiled=bool(run.compile),
        parallel=run.parallel or "")
    yield from generation_entries(row.id, asked, (measured.latency_s, measured.throughput, measured.peak_mem_gib),
                                  measured.fits, loaded=LOADED in (run.stack or ""), catalog=catalog)


def peak_gib(tuning: Trainee, split: StepSplit, catalog: Catalog) -> float:
    """Return PyTorch's peak of allocated memory in GiB, which the runs print."""
    return allocated(tuning, split, catalog.diffusion_law) / GIB


def entries(row: DiffusionRow, catalog: Catalog) -> Iterator[Entry]:
    """Yield the entries of a row. Raises SkippedError."""
    if row.run.kind in MAKING:
        yield from _generated(row, catalog)
        return
    made, measured, law = predict_diffusion(row.run, catalog), row.measured, catalog.diffusion_law
    way, (_, example) = made.option, example_of(row.run, catalog)
    for name, value, predicted, residue in (
            ("step_time_s", measured.step_time_s, way.step, law.step),
            ("throughput", measured.throughput, trained_on(way.split) / way.step, law.step),
            ("peak_mem_gib", measured.peak_mem_gib, peak_gib(way.tuning, way.split, catalog), law.memory)):
        if value is not None and (name != "step_time_s" or example is None or example.timed):
            low, high = interval(law, residue, likely=way.likely)
            ends = (predicted / high, predicted / low) if name == "throughput" else (predicted * low, predicted * high)
            yield Entry(id=row.id, quantity=name, predicted=predicted, measured=value, error=predicted / value - 1,
                        interval90=ends, assumed=made.assumed)
    if measured.fits is not None:
        yield Entry(id=row.id, quantity="fits", predicted=made.fits, measured="yes" if measured.fits else "no",
                    error=None, assumed=made.assumed)
