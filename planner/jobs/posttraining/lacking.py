"""What reinforcement learning lacks memory for, and what makes it smaller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.jobs.job import Leaner, Short
from planner.jobs.posttraining.way import RlWay
from planner.layouts.candidate import Candidate
from planner.scenario.posttraining import PostTraining
from planner.units import plural, show_bytes

SHARES = (0.75, 0.5, 0.25)
"""Of the longest answer that are tried instead."""


def short_of(work: PostTraining, way: RlWay, candidate: Candidate) -> Short:
    """Return by how much the leanest way misses. work: resolved."""
    lacking, host = max(0.0, way.peak - way.usable), max(0.0, way.host - way.host_usable)
    where = (f"{show_bytes(way.peak)} of {show_bytes(way.usable)} per GPU in "
             f"{way.made.fullest.name.replace('_', ' ')}"
             if lacking else f"{show_bytes(way.host)} of {show_bytes(way.host_usable)} of the host's memory per node")
    return Short(f"no way to run {work.method} of {work.model} fits, with states on the host and full recompute",
                 f"{candidate.node.name} with {plural(way.gpus, 'GPU')} needs {where}; {helps(work)} takes less",
                 lacking, host)


def unheld(work: PostTraining, weights: float, drawing: Iterable[Candidate]) -> str:
    """Return why no replica of the rollouts holds an answer. weights: bytes of the policy; work: resolved."""
    largest = max(drawing, key=lambda candidate: candidate.node.gpus * candidate.gpu.usable_memory)
    room = largest.node.gpus * largest.gpu.usable_memory
    if weights > room:
        return (f"no replica of the rollouts fits: the weights of {work.model} alone take {show_bytes(weights)}, and "
                f"{largest.node.name} has {show_bytes(room)} on {plural(largest.node.gpus, 'GPU')}")
    return (f"no layout of {', '.join(work.stack)} is legal, or no replica of the rollouts holds an answer of "
            f"{work.max_model_len:,} tokens with its prompt")


def helps(work: PostTraining) -> str:
    """Return what takes less memory than what is asked for."""
    smaller = ["more GPUs", *(["tuning lora"] if work.tuning == "full" else []),
                         *(["tuning qlora on unsloth or trl"] if work.tuning == "lora" else []),
               *(["method grpo, which has no critic"] if work.method == "ppo" else []), "a smaller max_model_len"]
    return ", or ".join(smaller)


def leaner(work: PostTraining) -> Iterator[Leaner]:
    """Yield less to hold than what is asked for, key by key. work: resolved."""
    if work.tuning == "full":
        yield Leaner("tuning", "full", "lora", 4.0, {"tuning": "lora"})
    longest = work.max_model_len or 0
    for share in SHARES:
        less = round(longest * share)
        if less > work.input.mean + work.output.mean:
            yield Leaner("max_model_len", f"{longest}", f"{less}", 1 / share, {"max_model_len": less})
