"""What training a diffusion model lacks memory for, and what makes it smaller."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalog.diffusion_law import Base
from planner.jobs.diffusion.options import StepWay
from planner.jobs.job import Leaner, Short
from planner.layouts.candidate import Candidate
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.extent import said, sounding
from planner.scenario.pixels import Resolution
from planner.units import show_bytes

LEANER: tuple[Base, ...] = ("int8", "nf4")
"""Formats of a base that take less than 16 bits, the nearest first."""
SHARES = (0.75, 0.5, 0.25)
"""Of a side, of frames and of a batch that are tried instead."""
SIDE = 32
"""Pixels that a side is a multiple of."""


def short_of(work: DiffusionTraining, way: StepWay, candidate: Candidate, needs: float) -> Short:
    """Return by how much the leanest way misses, which needs so many bytes of a GPU. work: resolved."""
    asked = f"{work.batch} a step of {said(work.resolution, work.frames, work.audio)}"
    lacking, host = max(0.0, needs - candidate.gpu.usable_memory), max(0.0, way.host - candidate.node.cpu.memory)
    leanest = "full recompute" + ("" if work.method == "full" else " and every block swapped")
    return Short(f"no way to train {work.model} at {asked} fits, with {leanest}",
                 f"{candidate.node.name} needs {show_bytes(needs)} of {show_bytes(candidate.gpu.usable_memory)} per "
                 f"GPU, {show_bytes(lacking)} too much; {helps(work)}", lacking, host)


def helps(work: DiffusionTraining) -> str:
    """Return what takes less memory than what is asked for."""
    if work.method == "full":
        smaller = ["method lora", *([] if work.optimizer == "adamw-8bit" else ["optimizer adamw-8bit"])]
    else:
        smaller = [] if {"int8", "nf4"} & {*work.quantization} else ["quantization int8 or nf4"]
    if work.latents == "online":
        smaller.append("latents cached")
    return f"{', '.join([*smaller, less_of(work.audio)])} takes less"


def less_of(audio: float | None) -> str:
    """Return what of a sample may be less."""
    return "a smaller resolution, batch or number of frames" if audio is None else "shorter sound, a smaller batch"


def leaner(work: DiffusionTraining) -> Iterator[Leaner]:
    """Yield smaller formats, sizes, clips and batches than those asked for, key by key. work: resolved."""
    if work.method != "full":
        for base in LEANER:
            if base not in work.quantization:
                yield Leaner("quantization", ", ".join(work.quantization), base, 2.0, {"quantization": (base,)})
    yield from smaller(work.resolution, work.frames or 1, work.batch, work.audio)


def smaller(resolution: Resolution | None, frames: int, batch: int | None, audio: float | None) -> Iterator[Leaner]:
    """Yield smaller sizes, clips and batches than those asked for, key by key."""
    width, height = resolution or (0, 0)
    for share in SHARES:
        if audio is not None:
            yield Leaner("audio", sounding(audio), sounding(round(audio * share)), 1 / share,
                         {"audio": float(round(audio * share))})
            continue
        size = Resolution(max(SIDE, round(side * share / SIDE) * SIDE) for side in (width, height))
        yield Leaner("resolution", str(resolution), str(size), 1 / share**2, {"resolution": size})
    for key, value, least in (("frames", frames, 1), ("batch", batch or 1, 0)):
        for share in SHARES:
            # a clip has a first frame, and then as many as autoencoders take at once
            if 1 <= (less := int((value - least) * share) + least) < value:
                yield Leaner(key, f"{value}", f"{less}", value / less, {key: less})
