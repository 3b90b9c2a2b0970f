"""What is typical of the releases of inference engines before any row, and how alike they are (a Gaussian process)."""

from __future__ import annotations

from functools import cache

import numpy as np

from planner.catalog.load import Catalog
from planner.evidence.serve_speed import DeploymentRows
from planner.layouts.table import Floats

Place = tuple[str, str, str]
"""Engine, first version of a release, architecture."""
TYPICAL = {"products": (1.0, .15), "saturation": (.3, 1.0), "attention": (1.1, .35), "experts": (1.1, .3),
           "cache": (.95, .25), "layer": (20e-6, .7), "mixture": (30e-6, .7), "step": (300e-6, .8),
           "sequence": (4e-6, .8), "prompt_step": (800e-6, 1.0), "request": (30e-3, 1.0), "exchange": (10e-6, .5),
           "burst": (.05, .4)}
"""Constant -> median and spread of its logarithm over engines with CUDA graphs, before any row.

Of clients that each ask again when answered those at the start wait for half of the others; a run of ten requests a
client, as InferenceX has them (its recipes: --num-prompts CONC * 10), has a tenth of them (a closed loop replayed: 0.05
to 0.06).
"""
IN_STEP = 4.0
"""Times that median where prompts go first: answers of one length then end together, and all ask again at once (0.5 in
the same replay, 0.05 where lengths vary by a fifth), so that what a run is like decides it; the spread is doubled.
"""
UNTUNED = {("vllm", "0.2.7", "cdna2"): {"products": 2.7}, ("vllm", "0.2.7", "cdna3"): {"products": 2.7}}
"""Place -> times a constant's median: tuning products was worth up to 7.2 times (Nscale, MI300X, vLLM 0.4.3, 2024),
so that untuned ones take between once and 7.2 times as long; their geometric mean.
"""
EAGER, UNHURRIED = 10.0, 10.0
"""Times medians of vLLM's first releases. Of `layer`: kernels launched one by one from Python, before CUDA graphs
(0.2.7, pull request 1926). Of `sequence`: Python that looked after each in turn while the GPU waited, before V1: of an
8B on H100 scheduling took 29% of the time where the GPU took 38 (vLLM's blog, 2024-09-05), some 40 us a sequence.
"""
GAPS = {"layer": 2.6, "mixture": 1.7}
"""Times medians on AMD: of kernels replayed in a graph each starts 3.9 us after the one before (ROCm/rocm-systems issue
10834, 941 on a Radeon Pro W7900), on NVIDIA 0.6 us (ahrefs/ocannl issue 488). A layer has some ten, experts six more.
"""
KERNELS = frozenset({"products", "saturation", "attention", "experts", "cache", "exchange", "mixture"})
"""Constants that the GPU decides, gaps among the small kernels of experts too; the engine's host decides the others."""
LEAST = {"nvidia": {"products": .85, "cache": .8}, "amd": {"products": .65, "cache": .6}}
"""Below which a constant is no longer of this GPU: products beyond benchmarks, bytes beyond the bandwidth."""
RELEASES = {"vllm": {"0.1": 2023.6, "0.2.7": 2024.4, "0.6": 2024.95, "0.8": 2025.4, "0.12": 2025.95, "0.15": 2026.15,
                     "0.18": 2026.3},
            "sglang": {"0.1": 2024.7, "0.5": 2025.65, "0.5.6": 2025.95, "0.5.9": 2026.15},
            "tensorrt-llm": {"0.1": 2024.2, "0.12": 2024.8, "0.20": 2025.5, "1.1": 2025.9, "1.2": 2026.1}}
"""First version of each release that is told apart, and the year of it."""
ARCHITECTURES = {"hopper": ("hopper",), "ampere": ("ampere", "pascal", "turing", "volta"),
                 "ada": ("ada", "blackwell-rtx"), "blackwell": ("blackwell",), "cdna2": ("cdna2",), "cdna3": ("cdna3",),
                 "cdna4": ("cdna4",)}
"""Those told apart; the first holds for all that no entry names."""
APART = {"ampere": 0.0, "ada": .4, "hopper": .9, "blackwell": 1.6, "cdna2": 3.6, "cdna3": 4.4, "cdna4": 4.8}
"""How far architectures are apart, along a line."""
TODAY, SLOPES = 2026.0, (.2, .2)
"""The year that medians of what the host decides are of, and by how much their logarithm changes in a year: for all
engines alike, and for each beside it. Graphs, fused kernels and schedulers that run ahead come to all of them. Without
any of the three large sources, the likelihood of the others is the larger for it.
"""
LAW = {"narrow.fp8": (1.0, .15), "narrow.fp4": (1.0, .2), "narrow_experts.fp8": (1.0, .15),
       "narrow_experts.fp4": (1.0, .2), "expanded": (.8, .15)}
"""Constants of the law that are fitted with the releases: median and spread of the logarithm before any row."""
SHRUNK = 0.5
"""Of the variances of TYPICAL, where the error of what is left out is least."""


def place_of(group: DeploymentRows) -> Place | None:
    """Return the release that ran a group on its architecture; none of engines that are not fitted."""
    engine, row = group.engine, group.rows[0]
    if engine not in RELEASES:
        return None
    known = [version for version in RELEASES[engine] if order(version) <= order(row.version)]
    own = group.deployment.candidates[0].gpu.architecture
    return engine, max(known or [min(RELEASES[engine], key=order)], key=order), next(
        name for name, names in ARCHITECTURES.items() if own in names)


def order(version: str) -> tuple[int, ...]:
    """Return a version as numbers."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def typical(name: str, places: tuple[Place, ...]) -> Floats:
    """Return the prior mean of a constant's logarithm, by place."""
    return np.log([TYPICAL[name][0] * UNTUNED.get(place, {}).get(name, 1.0) * _early(name, place)
                   * (GAPS.get(name, 1.0) if _vendor(place[2]) == "amd" else 1.0)
                   * (IN_STEP if name == "burst" and _prompts_first(place) else 1.0) for place in places])


def least(places: tuple[Place, ...]) -> Floats:
    """Return the least coordinates of constants, place after place."""
    return np.log([LEAST[_vendor(place[2])].get(name, 1e-12) for place in places for name in TYPICAL])


def _early(name: str, place: Place) -> float:
    engine, version, _ = place
    return (EAGER if name == "layer" and not _has_graphs(place) else
            UNHURRIED if name == "sequence" and engine == "vllm" and order(version) < (0, 8) else 1.0)


def _has_graphs(place: Place) -> bool:
    engine, version, _ = place
    return engine != "vllm" or order(version) >= (0, 2, 7)


@cache
def _prompts_first(place: Place) -> bool:
    engine, version, _ = place
    return Catalog().speeds(engine).release(version, place[2]).prefill_first


def _vendor(architecture: str) -> str:
    return "amd" if architecture.startswith("cdna") else "nvidia"


def _covariance(name: str, one: Place, other: Place) -> float:
    """Return the prior covariance of a constant in two places."""
    engine, years = one[0] == other[0], abs(RELEASES[one[0]][one[1]] - RELEASES[other[0]][other[1]])
    near, trend = float(np.exp(-abs(APART[one[2]] - APART[other[2]]))), 0.0
    if name in KERNELS:
        # kernels of AMD differ more by release, and what an architecture is good at fades with time
        vary = (1 + (_vendor(one[2]) == "amd")) * (1 + (_vendor(other[2]) == "amd"))
        parts = .15, .3 * np.exp(-years / 1.5), .25 * np.exp(-years / .6), .15, .15
    else:
        vary, parts = 1, (.35, .1, .15 * np.exp(-years), .25, .15)
        ahead = (RELEASES[one[0]][one[1]] - TODAY) * (RELEASES[other[0]][other[1]] - TODAY)
        trend = (SLOPES[0]**2 + SLOPES[1]**2 * engine) * ahead
    if name == "burst":
        # what one way to schedule does with a queue says nothing of the other
        first = _prompts_first(one), _prompts_first(other)
        vary, trend = (1 + first[0]) * (1 + first[1]) * (first[0] == first[1]), 0.0
    if name == "layer" and _has_graphs(one) != _has_graphs(other):
        # who replays graphs launches nothing
        vary, trend = 0, 0.0
    alone, of_gpu, of_both, of_time, own = parts
    shared = alone * engine + of_gpu * near + of_both * engine * near + of_time * engine * np.exp(-years / .8)
    return float(trend + SHRUNK * vary * (shared + own * (one == other)) * TYPICAL[name][1]**2)


def matrix(name: str, ones: tuple[Place, ...], others: tuple[Place, ...]) -> Floats:
    """Return the prior covariance of a constant between places."""
    found: Floats = np.array([[_covariance(name, one, other) for other in others] for one in ones])
    return found
