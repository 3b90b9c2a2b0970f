"""Runs of other stacks than the one whose runs the law of training is fitted to, in the words that it knows."""

from __future__ import annotations

import re
from dataclasses import replace

from planner.catalog.diffusion_law import DiffusionLaw
from planner.catalog.diffusion_runs import DiffusionRuns, OtherWords
from planner.catalog.load import Catalog
from planner.evidence.diffusion_row import DiffusionRun
from planner.evidence.skipping import SkippedError
from planner.jobs.diffusion.assignment import verdict
from planner.jobs.diffusion.options import StepWay, option
from planner.layouts.candidate import Candidate
from planner.physics.diffusion.step import StepSplit, Trainee
from planner.scenario.pixels import resolution_of

_SPLIT = re.compile(r"\bTP ?=? ?[2-9]", re.IGNORECASE)
"""Of what a run says of its layout: matrices that several GPUs share."""


def stack_of(run: DiffusionRun) -> str:
    """Return the stack of a run in small letters, without its version."""
    return (run.stack or "").partition(" v")[0].strip().lower()


def translated(run: DiffusionRun, runs: DiffusionRuns, law: DiffusionLaw) -> tuple[DiffusionRun, tuple[str, ...]]:
    """Return a run of another stack in the words of the law's own, and what is assumed of it. Raises SkippedError."""
    if stack_of(run) == law.stack:
        return run, ()
    elsewhere = runs.elsewhere
    if _SPLIT.search(run.parallel or ""):
        raise SkippedError(f"matrices split over GPUs ({run.parallel}) are not modeled of a denoiser")
    said = (run.quantization or run.precision or "").lower()
    if said not in elsewhere.bases:
        raise SkippedError(f"a base in {said} is not modeled")
    how = (run.checkpointing or "").lower()
    if how not in elsewhere.checkpointing:
        raise SkippedError(f"checkpointing {run.checkpointing} is not modeled")
    size = elsewhere.sizes.get((run.model or "").lower())
    assumed = [f"stack={law.stack}"]
    resolution = run.resolution
    if size is not None and resolution_of(resolution or "") is None:
        resolution = f"{size[0]}x{size[1]}"
        assumed.append(f"resolution={resolution}")
    return run.model_copy(update={
        "precision": elsewhere.bases[said], "checkpointing": elsewhere.checkpointing[how], "resolution": resolution,
        "optimizer": _optimizer(run.optimizer or "", elsewhere)}), tuple(assumed)


def trained_on(split: StepSplit) -> int:
    """Return the samples of a step on all GPUs."""
    return split.copies * split.micro_batch * split.micro_batches


def _optimizer(said: str, elsewhere: OtherWords) -> str:
    return next((name for word, name in elsewhere.optimizers.items() if word in said.lower()), "adamw")


def shared_out(run: DiffusionRun, tuning: Trainee, split: StepSplit, candidate: Candidate, catalog: Catalog) -> StepWay:
    """Return a run on its GPUs: as many copies, or shards of everything where copies do not fit, in the largest
    micro-batch that does.

    split.micro_batch: samples of a step on all of them together.
    """
    runs, law, gpus = catalog.diffusion_runs, catalog.diffusion_law, run.gpus or 1
    if stack_of(run) in runs.elsewhere.graphed:
        tuning = replace(tuning, graphed=True)
    if run.method == "full":
        tuning = replace(tuning, scaled=runs.elsewhere.scaled.get((run.precision or "").lower()))
    if gpus == 1:
        return option(catalog, (candidate,), 0, tuning, split)
    if split.micro_batch % gpus:
        raise SkippedError(f"a batch of {split.micro_batch} is not divided over {gpus} GPUs")
    each = split.micro_batch // gpus
    ways = [option(catalog, (candidate,), 0, tuning, replace(
        split, copies=gpus, shard=shard, micro_batch=each // times, micro_batches=times))
        for times in range(1, each + 1) if each % times == 0 for shard in (1, gpus)]
    return next((way for way in ways if verdict(way, candidate, law, 0.5) == "fits"), ways[-1])
