"""The estimate of training a diffusion model on one node type: the fastest way that fits, or the leanest."""

from __future__ import annotations

from collections.abc import Mapping

from planner.answer.assignment import Assignment
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.diffusion.assignment import assignment_of, verdict
from planner.jobs.diffusion.lacking import helps
from planner.jobs.diffusion.options import acting, divides, option, sequences, smallest, splits, tunings
from planner.money.rent import usual_candidate
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.extent import said


def estimate_diffusion(work: DiffusionTraining, catalog: Catalog, node: str, gpus: int | None,
                       layout: Mapping[str, str], confidence: float) -> tuple[Assignment, tuple[str, ...]]:
    """Return the fastest way that fits a node type, or what comes nearest, and how it was chosen. Raises InputError."""
    candidate, law = usual_candidate(catalog.node(node), catalog), catalog.diffusion_law
    (tuning,) = tunings(work, catalog)
    shared = sequences(tuning.model, candidate.node.gpus, law)
    # all copies that the batch has work for; that a clip is shared is asked for, by GPUs or by layout
    asked = tuple(degree for degree in shared if f"{degree}" == layout.get("cp")) or (1,)
    most = gpus or max(count for count in range(1, candidate.node.gpus + 1) if divides(work.batch, count, asked))
    every = splits(work.batch, most, layout, full=not tuning.frozen, shared=shared)
    ways = [option(catalog, (candidate,), 0, tuning, split) for split in acting(every, tuning.model, layout, catalog)]
    if not ways:
        raise InputError(f"gpus: a batch of {work.batch} is not divided over {most} GPUs"
                         + (f" with {', '.join(f'{key}={value}' for key, value in layout.items())}" if layout else ""))
    name = f"{work.model} {work.method}, {work.batch} of {said(work.resolution, None, work.audio)}"
    fitting = [way for way in ways if verdict(way, candidate, law, confidence) == "fits"]
    way = min(fitting, key=lambda each: each.rank) if fitting else smallest(ways)
    made = assignment_of(name, work, way, candidate, law, confidence)
    if len(ways) == 1:
        return made, ()
    if fitting:
        return made, (f"Chosen: the fastest of the {len(fitting)} ways that fit, of {len(ways)}",)
    return made, (f"Of {len(ways)} ways none fits: this one takes least memory; {helps(work)}",)
