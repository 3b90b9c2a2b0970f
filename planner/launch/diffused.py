"""The training of a diffusion model as emitters read it: every axis by its name, and what was asked beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.answer.assignment import Assignment, DiffusionAssignment
from planner.catalog.diffusion import Diffusion
from planner.catalog.diffusion_runs import DiffusionRuns
from planner.catalog.load import Catalog
from planner.catalog.releases import Target
from planner.errors import InputError, Unsupported
from planner.launch.hosts import on_hosts
from planner.launch.work import STEPS, gpus_each
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.portfolio_job import AnyWork

SHARES = {"none": 0.0, "mixed": 0.5, "full": 1.0}
"""Of the blocks that are recomputed; another share stands in the assignment."""


@dataclass(frozen=True, slots=True)
class Diffused:
    """One training of a diffusion model, placed: what an emitter turns into files."""

    placed: DiffusionAssignment
    asked: DiffusionTraining
    model: Diffusion
    runs: DiffusionRuns
    """What is known of the trainer, by model."""
    target: str
    release: Target

    @property
    def gpus_per_node(self) -> int:
        """GPUs that run on each node; raises Unsupported where nodes would run different numbers."""
        return gpus_each(self.placed)

    @property
    def steps(self) -> int:
        """Of the whole run."""
        return self.placed.time.steps or STEPS

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels; of sound nothing."""
        width, by, height = self.placed.resolution.partition("x")
        return (int(width), int(height)) if by else (0, 0)

    @property
    def names(self) -> Mapping[str, str]:
        """What the target calls the model. Raises Unsupported where it does not have it."""
        if self.model.name not in self.release.models:
            raise Unsupported(f"{self.model.name} by {self.target}: it has {', '.join(sorted(self.release.models))}")
        return self.release.models[self.model.name]

    def value(self, axis: str) -> object:
        """Return the value of an axis, or of a choice of the question."""
        return VALUES[axis](self)


def _share(work: Diffused) -> float:
    return work.placed.recomputed or SHARES[work.placed.layout.recompute]


VALUES: Mapping[str, Callable[[Diffused], object]] = {
    "model": lambda w: w.model.name,
    "candidate": lambda w: f"{w.placed.nodes} x {w.placed.node}",
    "precision": lambda w: w.placed.layout.precision,
    "dp": lambda w: w.placed.layout.dp,
    "cp": lambda w: w.placed.layout.cp,
    "zero": lambda w: w.placed.layout.zero,
    "mbs": lambda w: w.placed.layout.micro_batch,
    "micro_batches": lambda w: w.placed.layout.micro_batches,
    "recompute": _share,
    "offload_parameters": lambda w: w.placed.swapped,
    "offload_activations": lambda w: w.placed.layout.offload.activations,
    "offload_checkpoints": lambda w: w.placed.checkpoints,
    "offload_optimizer": lambda w: w.placed.layout.offload.optimizer,
    "base": lambda w: w.placed.base,
    "method": lambda w: w.placed.method,
    "lora_rank": lambda w: w.asked.lora_rank if w.placed.method == "lora" else None,
    "lokr_factor": lambda w: w.asked.lokr_factor if w.placed.method == "lokr" else None,
    "lora_targets": lambda w: "attention,mlp" if w.asked.adapts_mlp else "attention",
    "optimizer": lambda w: w.asked.optimizer,
    "latents": lambda w: w.asked.latents,
    "ema": lambda w: w.asked.ema,
    "resolution": lambda w: w.placed.resolution,
    "frames": lambda w: w.placed.frames,
    "audio": lambda w: w.placed.audio_seconds,
    "steps": lambda w: w.steps,
}
"""Every axis of such a job, and every choice of the question that a trainer has to be told."""


def diffused_of(placed: Assignment, asked: AnyWork | None, catalog: Catalog, target: str) -> Diffused:
    """Return what an emitter reads of an assignment. Raises InputError."""
    if not isinstance(placed, DiffusionAssignment) or placed.model is None:
        raise InputError(f"{target} trains images and clips, and the plan is of {placed.method or placed.kind}")
    if not isinstance(asked, DiffusionTraining):
        raise InputError("the plan does not say what was asked: plan again, with this release of planner")
    return Diffused(placed=on_hosts(placed, catalog), asked=asked, model=catalog.diffusion(placed.model),
                    runs=catalog.diffusion_runs, target=target, release=catalog.releases.target(target))
