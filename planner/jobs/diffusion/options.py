"""Every way to split one step of training a diffusion model over a number of GPUs, each with its bytes and seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from planner.catalog.diffusion import Diffusion
from planner.catalog.diffusion_law import DiffusionLaw, Residue
from planner.catalog.generation_law import GenerationLaw
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.layouts.candidate import Candidate
from planner.physics.collectives import single
from planner.physics.diffusion.generate import Picture, latents_made
from planner.physics.diffusion.rates import Rates
from planner.physics.diffusion.shape import parameters, sample_of
from planner.physics.diffusion.step import (
    StepSplit,
    Trainee,
    entering_bytes,
    memory,
    spilled_bytes,
    step_seconds,
    swapped_bytes,
    trained,
)
from planner.scenario.diffusion import DiffusionTraining

AXES = ("dp", "cp", "mbs", "zero", "recompute", "offload_parameters", "offload_activations", "offload_checkpoints",
        "offload_optimizer")
"""What `--layout` may name: copies, GPUs that share the tokens of a clip, samples of a micro-batch, 0 or 3 for shards
of everything (FSDP), recompute of none, mixed, full or a share of the blocks, the shares of blocks and of the
optimizer's states that wait on the host, and 1 where what attention keeps does, or what enters recomputed blocks."""
RECOMPUTED = {"none": 0.0, "mixed": 0.5, "full": 1.0}
"""Shares of the blocks that are recomputed; mixed is every other one."""
DEGREES = (1, 2, 4, 8)
"""GPUs that may share the tokens of a clip."""
STEPS = (0.0, 0.5, 1.0)
"""Shares of blocks that are tried on the host."""


@dataclass(frozen=True, slots=True)
class StepWay:
    """One way: where, how it is split, and what it takes. Bytes of one GPU, seconds of a step."""

    candidate: int
    gpus: int
    tuning: Trainee
    split: StepSplit
    parts: Mapping[str, float]
    seconds: Mapping[str, float]
    host: float
    """Bytes of one node's host memory."""
    likely: bool
    """Whether measured runs are like it."""

    @property
    def peak(self) -> float:
        """Bytes of one GPU at the median."""
        return math.fsum(self.parts.values())

    @property
    def step(self) -> float:
        """Seconds of a step at the median."""
        return math.fsum(self.seconds.values())

    @property
    def rank(self) -> tuple[float, ...]:
        """What is faster comes first, then what is simpler."""
        split = self.split
        return (self.step, split.swapped, split.states_out, split.spilled, 1 - split.entering, split.shard,
                split.sequence, split.micro_batches)


def quantile(law: DiffusionLaw | GenerationLaw, residue: Residue, share: float, *, likely: bool) -> float:
    """Return a quantile of measured over predicted; wider where no measured run is like what is predicted."""
    return residue.at(share, 1.0 if likely else law.unseen)


def interval(law: DiffusionLaw | GenerationLaw, residue: Residue, *, likely: bool) -> tuple[float, float]:
    """Return the ends of the 90% interval, over what is predicted."""
    return quantile(law, residue, 0.05, likely=likely), quantile(law, residue, 0.95, likely=likely)


def sure_bytes(way: StepWay, law: DiffusionLaw, confidence: float) -> float:
    """Return the bytes of one GPU that a way takes at a confidence: at least those at the median."""
    return way.peak * max(1.0, quantile(law, law.memory, confidence, likely=way.likely))


def tunings(work: DiffusionTraining, catalog: Catalog) -> list[Trainee]:
    """Return what trains, once for every format of the base that is asked for; of a resolved workload."""
    model = catalog.diffusion(work.model)
    size = model.extent(work.resolution, work.frames, work.audio)
    rank = work.lora_rank if work.method == "lora" else 0
    factor = work.lokr_factor if work.method == "lokr" else 0
    return [Trainee(model, sample_of(model, size[:2], size.frames), rank, base, work.optimizer, factor,
                    (rank or factor) if work.adapts_mlp else 0, work.latents == "cached", work.ema, extent=size)
            for base in work.quantization]


def sequences(model: Diffusion, most: int, law: DiffusionLaw) -> tuple[int, ...]:
    """Return the numbers of GPUs of one node that may share the tokens of a sample: more than one of clips alone.

    Each GPU has whole heads.
    """
    heads = [block.inner // law.head for block in model.denoiser.blocks if block.inner]
    shared = model.media == "video" and all(block.inputs is None for block in model.denoiser.blocks)
    return tuple(degree for degree in DEGREES if degree == 1 or (
        shared and degree <= most and all(count % degree == 0 for count in heads)))


def divides(batch: int, gpus: int, shared: tuple[int, ...]) -> bool:
    """Say whether a batch divides over so many GPUs, of which some may share each sample."""
    return any(gpus % degree == 0 and batch % (gpus // degree) == 0 for degree in shared)


def splits(batch: int, gpus: int, held: Mapping[str, str], *, full: bool, shared: tuple[int, ...] = (1,)
           ) -> Iterator[StepSplit]:
    """Yield every split of a batch over so many GPUs that keeps the axes held. Raises InputError for another axis.

    shared: numbers of GPUs that may share a sample.
    """
    for axis in held:
        if axis not in AXES:
            raise InputError(f"layout: no axis {axis!r} of training a diffusion model: {', '.join(AXES)}")
    for degree in _kept(held, "cp", tuple(str(degree) for degree in shared)):
        copies = gpus // int(degree)
        if divides(batch, gpus, (int(degree),)) and held.get("dp", f"{copies}") == f"{copies}":
            yield from (replace(split, sequence=int(degree)) for split in _splits(batch, copies, gpus, held, full=full))


def acting(found: Iterable[StepSplit], model: Diffusion, held: Mapping[str, str], catalog: Catalog) -> list[StepSplit]:
    """Return the splits whose recompute the trainer acts on; of some models a setting changes nothing.

    Raises InputError where what is held changes nothing.
    """
    runs = catalog.diffusion_runs
    acts = "layer" if model.name in runs.acting else runs.ineffective.get(model.name)
    unspilled = model.name in runs.unspilled
    holding = (model.like or model.name) in runs.holding
    taken = {"none": (0.0,), "layer": (0.0, 1.0)}.get(acts or "")
    every = list(found)
    kept = [split for split in every if (taken is None or split.recomputed in taken) and not (
        (unspilled and split.spilled) or (holding and split.entering < 1))]
    if every and not kept and holding and held.get("offload_checkpoints") == "1":
        raise InputError(f"layout: offload_checkpoints=1: of {model.name} what enters blocks stays on the GPU in "
                         f"{catalog.diffusion_law.stack}: expected 0")
    if every and not kept:
        axis = "offload_activations" if taken is None or held.get("recompute") is None else "recompute"
        can = "0" if axis == "offload_activations" else "none" if acts == "none" else "none or full"
        raise InputError(f"layout: {axis}={held[axis]}: of {model.name} this changes nothing in "
                         f"{catalog.diffusion_law.stack}: expected {can}")
    return kept


def _splits(batch: int, copies: int, gpus: int, held: Mapping[str, str], *, full: bool) -> Iterator[StepSplit]:
    each = batch // copies
    sizes = tuple(str(size) for size in range(1, each + 1) if each % size == 0)
    swaps = _shares(held, "offload_parameters", (0.0,) if full else STEPS)
    states = _shares(held, "offload_optimizer", (0.0, 1.0) if full else (0.0,))
    again = ((RECOMPUTED[held["recompute"]],) if held.get("recompute") in RECOMPUTED
             else _shares(held, "recompute", tuple(RECOMPUTED.values()), "none, mixed, full or "))
    for size, zero, recomputed, out, spilled, away, state in product(
            _kept(held, "mbs", sizes), _kept(held, "zero", ("0", "3") if gpus > 1 else ("0",)), again, swaps,
            _kept(held, "offload_activations", ("0", "1")), _kept(held, "offload_checkpoints", ("0", "1")), states):
        # what enters blocks leaves the GPU where all are recomputed and attention's own does not already
        if (zero == "0" or not out) and (away == "0" or (recomputed == 1 and spilled == "0")):
            yield StepSplit(copies, gpus if zero == "3" else 1, int(size), each // int(size), recomputed, swapped=out,
                            states_out=state, spilled=spilled == "1", entering=float(away == "0"))


def _kept(held: Mapping[str, str], axis: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of an axis, or the one that is held. Raises InputError for another."""
    if axis not in held:
        return values
    if held[axis] not in values:
        raise InputError(f"layout: {axis}={held[axis]}: expected {' or '.join(values)}")
    return (held[axis],)


def _shares(held: Mapping[str, str], axis: str, values: tuple[float, ...], also: str = "") -> tuple[float, ...]:
    """Return the shares of an axis, or the one that is held. Raises InputError for what is none."""
    if axis not in held:
        return values
    try:
        share = float(held[axis])
    except ValueError:
        share = -1.0
    if not 0 <= share <= (1.0 if max(values) else 0.0):
        most = f"{also}a share from 0 to 1" if max(values) else "0 with this method"
        raise InputError(f"layout: {axis}={held[axis]}: expected {most}")
    return (share,)


def option(catalog: Catalog, candidates: tuple[Candidate, ...], at: int, tuning: Trainee, split: StepSplit) -> StepWay:
    """Return one way on one candidate. Raises MissingFact for a GPU without a rate in 16 bits."""
    candidate, law = candidates[at], catalog.diffusion_law
    rates = catalog.rates(candidate.gpu.architecture)
    parts, spent = memory(tuning, split, law), step_seconds(
        tuning, split, law, candidate.gpu, rates, catalog.kernels)
    if not tuning.cached and tuning.extent is not None:
        each = Picture(tuning.model, tuning.sample, tuning.extent.width * tuning.extent.height, tuning.extent.frames,
                       steps=1, passes=1)
        taken, alive = latents_made(each, split.micro_batch, catalog.generation_law, Rates(candidate.gpu, rates))
        spent = {**spent, "compute": spent["compute"] + split.micro_batches * taken}
        # latents are made before the denoiser keeps anything
        parts = {**parts, "activations": max(parts["activations"], alive)}
    count, base = trained(tuning), law.bases[tuning.base]
    weights = tuning.model.denoiser.parameters * (base.weight if tuning.frozen else 2.0)

    def exchange(operation: str, size: float, ranks: int = split.gpus) -> float:
        return single(catalog.collectives, candidate, operation, ranks, split.gpus, size)

    exposed = 0.0
    if split.shard > 1:
        passes = split.micro_batches * (2 + split.recomputed)
        gathered = passes * exchange("all_gather", weights) + exchange("reduce_scatter", count * 2.0)
        # the next block's shards come while one is at work
        exposed = max(0.0, gathered - spent["compute"] - spent["recompute"])
    elif split.gpus > 1:
        exposed = exchange("all_reduce", count * 2.0)
    swapped = sum(times * exchange("all_to_all", size, split.sequence) for times, size in swapped_bytes(tuning, split))
    host_each = split.swapped * parameters(tuning.model) * base.weight
    host_each += spilled_bytes(tuning, split, law) + entering_bytes(tuning, split)
    host_each += split.states_out * count * law.optimizers[tuning.optimizer] / split.shard
    seen = law.seen
    likely = (candidate.gpu.architecture in seen.architectures and tuning.model.media in seen.media
              and tuning.frozen and tuning.base in seen.bases and tuning.optimizer in seen.optimizers
              and split.gpus == 1 and tuning.cached and not tuning.ema
              and not split.states_out and (seen.swapped or not split.swapped))
    return StepWay(at, split.gpus, tuning, split, parts,
                   {**spent, "data_parallel": exposed, "context_parallel": swapped},
                   host_each * min(split.gpus, candidate.node.gpus), likely)


def smallest(options: list[StepWay]) -> StepWay:
    """Return the way that takes least memory of those that its host holds, or of all."""
    return min(options, key=lambda each: (each.peak, each.step))

