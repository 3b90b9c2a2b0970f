"""What running a diffusion model lacks memory for, and what makes it smaller."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalog.generation_law import Stored
from planner.jobs.diffusion.lacking import less_of, smaller
from planner.jobs.generation.options import CallWay
from planner.jobs.job import Leaner
from planner.layouts.candidate import Candidate
from planner.scenario.generation import Generation
from planner.units import show_bytes

FORMATS: tuple[Stored, ...] = ("fp8-weights", "nf4")
"""Of a denoiser that take less than 16 bits, the nearest first."""


def helps(work: Generation) -> str:
    """Return what takes less memory than what is asked for."""
    formats = [] if set(work.quantization or ()) - {"bf16"} else ["quantization fp8-weights or nf4"]
    return f"{', '.join([*formats, less_of(work.audio)])} takes less"


def nearest(way: CallWay, candidate: Candidate, needs: float) -> str:
    """Return by how much the leanest way misses, which needs so many bytes of a GPU."""
    lacking = needs - candidate.gpu.usable_memory
    if lacking <= 0:
        return (f"{candidate.node.name} needs {show_bytes(way.host)} of host memory for every GPU, of "
                f"{show_bytes(candidate.node.cpu.memory)} for all")
    return (f"{candidate.node.name} needs {show_bytes(needs)} of {show_bytes(candidate.gpu.usable_memory)} per GPU, "
            f"{show_bytes(lacking)} too much")


def leaner(work: Generation) -> Iterator[Leaner]:
    """Yield smaller formats, sizes and clips than those asked for. work: resolved."""
    for stored in FORMATS:
        if stored not in (work.quantization or ()):
            yield Leaner("quantization", ", ".join(work.quantization or ("bf16",)), stored, 2.0,
                         {"quantization": (stored,)})
    yield from smaller(work.resolution, work.frames or 1, None, work.audio)
