"""Every way to make a batch of images or clips on the GPUs of a node, each with its bytes and seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from planner.answer.breakdown import Fits
from planner.catalog.generation_law import GenerationLaw
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.diffusion.options import interval, quantile
from planner.layouts.candidate import Candidate
from planner.physics.collectives import single
from planner.physics.diffusion.generate import (
    Bytes,
    CallSplit,
    Moment,
    Offloaded,
    Picture,
    call_seconds,
    moments,
    on_host,
)
from planner.physics.diffusion.rates import Rates
from planner.physics.diffusion.shape import sample_of
from planner.scenario.generation import Generation

AXES = ("mbs", "cfg", "ulysses", "ring", "pipefusion", "offload", "vae")
"""What `--layout` may name: images of a call, GPUs by what they share out, parts on the host, how the VAE decodes."""
BATCHES = (1, 2, 4, 8, 16, 32)
DEGREES = (1, 2, 4, 8)
LEANER: tuple[tuple[Offloaded, bool], ...] = (
    ("none", False), ("none", True), ("model", False), ("model", True), ("sequential", True))
"""Parts on the host, and whether the autoencoder works on tiles: each takes less memory and more time than the one
before.
"""
OFFLOADS: tuple[Offloaded, ...] = ("none", "model", "sequential")


@dataclass(frozen=True, slots=True)
class CallWay:
    """One way: where, how it is split, and what a call takes. Bytes of one GPU, seconds of a call."""

    candidate: int
    picture: Picture
    split: CallSplit
    moments: Mapping[Moment, Bytes]
    seconds: Mapping[str, float]
    alone: float
    """Seconds of a call for one image, run the same way."""
    host: float
    """Bytes of one node's host memory, of one call."""
    context: float
    wasted: float
    likely: bool
    """Whether measured runs are like it."""
    alike: bool
    """Whether measured peaks are like its own: also of parts that wait on the host, as autoencoders ran alone."""

    @property
    def worst(self) -> Moment:
        """The moment that takes most."""
        return max(self.moments, key=self.bytes_at)

    def bytes_at(self, moment: Moment) -> float:
        """Return the bytes of a moment as the device shows them."""
        there = self.moments[moment]
        return there.weights * (1 + self.wasted) + there.activations * there.held + self.context

    @property
    def peak(self) -> float:
        """Bytes of one GPU at the median."""
        return self.bytes_at(self.worst)

    @property
    def call(self) -> float:
        """Seconds of a call at the median."""
        return math.fsum(self.seconds.values())

    @property
    def rate(self) -> float:
        """Images or clips a second while it is never idle."""
        return self.split.batch / self.call

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.split.gpus

    def takes(self, images: int) -> float:
        """Return the seconds of a call for so many images."""
        if self.split.batch == 1:
            return self.call
        return self.alone + (self.call - self.alone) * (images - 1) / (self.split.batch - 1)


def pictures(work: Generation, catalog: Catalog) -> list[Picture]:
    """Return what is made, once for every format of the denoiser that is asked for; of a resolved workload."""
    model = catalog.diffusion(work.model)
    size = model.extent(work.resolution, work.frames, work.audio)
    guidance = model.sampling.guidance if work.guidance is None else work.guidance
    return [Picture(model, sample_of(model, size[:2], size.frames), size.width * size.height, size.frames,
                    work.steps or model.sampling.steps, model.sampling.passes if guidance > 1 else 1, stored,
                    work.compile, work.step_cache) for stored in work.quantization or ("bf16",)]


def sure_bytes(way: CallWay, law: GenerationLaw, confidence: float) -> float:
    """Return the bytes of one GPU that a way takes at a confidence: at least those at the median."""
    return way.peak * max(1.0, quantile(law, law.memory, confidence, likely=way.alike))


def fits(way: CallWay, candidate: Candidate, law: GenerationLaw, confidence: float) -> Fits:
    """Return whether it fits the GPU at a confidence, only at the median, or not; the host must hold its part."""
    usable = candidate.gpu.usable_memory
    together = max(1, candidate.node.gpus // way.gpus)
    if way.peak > usable or way.host * together > candidate.node.cpu.memory:
        return "does not fit"
    return "fits" if sure_bytes(way, law, confidence) <= usable else "tight"


def option(catalog: Catalog, candidates: tuple[Candidate, ...], at: int, picture: Picture, split: CallSplit) -> CallWay:
    """Return one way on one candidate. Raises MissingFact for a GPU without the rate of a format."""
    law, candidate = catalog.generation_law, candidates[at]
    if picture.bf16 is None:  # as planner launch starts it
        picture = replace(picture, bf16="bf16" in candidate.gpu.peak)
    rates = Rates(candidate.gpu, catalog.rates(candidate.gpu.architecture))

    def exchange(operation: str, size: float, ranks: int) -> float:
        return single(catalog.collectives, candidate, operation, ranks, split.gpus, size)

    spent = call_seconds(picture, split, law, rates, exchange)
    alone = spent if split.batch == 1 else call_seconds(picture, replace(split, batch=1), law, rates, exchange)
    alike = (candidate.gpu.architecture in law.seen.architectures and picture.model.media in law.seen.media
             and picture.stored in law.seen.formats
             and split.gpus == 1 and split.offload != "sequential" and picture.cache == "none")
    return CallWay(at, picture, split, moments(picture, split, law), spent, math.fsum(alone.values()),
                   on_host(picture, split, law), law.context, law.wasted, alike and split.offload == "none", alike)


def splits(work: Generation, picture: Picture, gpus: int, held: Mapping[str, str]) -> Iterator[list[CallSplit]]:
    """Yield for every batch and way to share it out the splits, each leaner than the one before. Raises InputError.

    gpus: of a replica at most, or with `held` degrees exactly these.
    """
    for axis in held:
        if axis not in AXES:
            raise InputError(f"layout: no axis {axis!r} of running a diffusion model: {', '.join(AXES)}")
    batches = _whole(held, "mbs", tuple(size for size in BATCHES if size <= (work.batch or BATCHES[-1])))
    if work.batch and "mbs" not in held:
        batches = (*[size for size in batches if size < work.batch], work.batch)
    cfg = _whole(held, "cfg", (1, 2) if picture.passes > 1 else (1,))
    if max(cfg) > picture.passes:
        raise InputError(f"layout: cfg={max(cfg)}: guidance takes {picture.passes} pass of the denoiser here")
    unet = any(block.inputs is not None for block in picture.model.denoiser.blocks)
    degrees = (1,) if unet else DEGREES
    offloads = [pair for pair in (LEANER if not held.keys() & {"offload", "vae"} else list(
        product(OFFLOADS, (False, True)))) if _said(held, "offload", OFFLOADS, pair[0])
        and _said(held, "vae", ("whole", "tiled"), "tiled" if pair[1] else "whole")]
    for batch, two, ulysses, ring, stages in product(
            batches, cfg, _whole(held, "ulysses", degrees), _whole(held, "ring", (1,)),
            _whole(held, "pipefusion", degrees)):
        split = CallSplit(batch, cfg=two, ulysses=ulysses, ring=ring, pipefusion=stages)
        if unet and split.sequence > 1:
            raise InputError(f"layout: {picture.model.name} is a UNet, whose tokens are not split over GPUs")
        if split.gpus <= gpus and not gpus % split.gpus and (ulysses == 1 or stages == 1 or held):
            yield [replace(split, offload=offload, tiled=tiled) for offload, tiled in offloads
                   if split.gpus == 1 or offload == "none"]


def _whole(held: Mapping[str, str], axis: str, values: tuple[int, ...]) -> tuple[int, ...]:
    if axis not in held:
        return values
    if not held[axis].isdecimal() or not 0 < int(held[axis]) <= 1024:
        raise InputError(f"layout: {axis}={held[axis]}: expected a whole number above zero")
    return (int(held[axis]),)


def _said(held: Mapping[str, str], axis: str, values: tuple[str, ...], value: str) -> bool:
    if axis in held and held[axis] not in values:
        raise InputError(f"layout: {axis}={held[axis]}: expected {' or '.join(values)}")
    return held.get(axis, value) == value


def ends(law: GenerationLaw, way: CallWay) -> tuple[float, float]:
    """Return the ends of the 90% interval of the seconds, over what is predicted."""
    return interval(law, law.seconds, likely=way.likely)
