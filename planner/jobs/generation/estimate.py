"""The estimate of making images or clips on one node type: the fastest way that fits, or the leanest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from planner.answer.assignment import Assignment
from planner.catalog.generation_law import GenerationLaw
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.generation.assignment import generation_assignment
from planner.jobs.generation.lacking import helps
from planner.jobs.generation.options import CallWay, fits, option, pictures, splits, sure_bytes
from planner.jobs.generation.queue import Queue
from planner.jobs.idle import Idle, idle, several
from planner.jobs.serving.assignment import ReplicaPlace
from planner.layouts.candidate import Candidate
from planner.money.rent import usual_candidate
from planner.scenario.generation import Generation
from planner.units import plural, show_bytes

SHARED = ("cfg", "ulysses", "ring", "pipefusion")
"""Axes of a layout that share a call out over GPUs, of which it has as many as they make together."""


def idle_keys(work: Generation) -> Iterator[Idle]:
    """Yield the keys that an estimate does not heed: it is of one way to make images."""
    yield from (idle(key, "is what a plan keeps to; an estimate says what one way does", left_to_plan=True)
                for key in ("day", "startup", "headroom", "spare_replicas", "spare_nodes", "samples"))
    yield from several("quantization", work.quantization or ())


def estimate_generation(work: Generation, catalog: Catalog, node: str, gpus: int | None, layout: Mapping[str, str],
                        confidence: float) -> tuple[Assignment, tuple[str, ...]]:
    """Return the fastest way that fits a node type, or what comes nearest, and how it was chosen.

    At a rate or with a latency target the soonest to make an image is taken, else what makes most. GPUs beyond those
    of one batch run further replicas. Raises InputError.
    """
    candidate, law = usual_candidate(catalog.node(node), catalog), catalog.generation_law
    shared = prod(int(said) for axis in SHARED if (said := layout.get(axis, "1")).isdecimal() and int(said) > 0)
    count = gpus or (candidate.node.gpus if work.rate is not None else shared)
    (picture,) = pictures(work, catalog)
    ways = list[CallWay]()
    for leaner in splits(work, picture, count, layout):
        for split in leaner:
            way = option(catalog, (candidate,), 0, picture, split)
            ways.append(way)
            if fits(way, candidate, law, confidence) == "fits" and not layout.keys() & {"offload", "vae"}:
                break
    if not ways:
        raise InputError(f"gpus: {plural(count, 'GPU')} cannot be divided so")
    fitting = [way for way in ways if fits(way, candidate, law, confidence) == "fits"]
    soon = work.rate is None and work.batch is None and "mbs" not in layout

    def rank(way: CallWay) -> tuple[float, ...]:
        queue = _queue(work, way, count)
        late = 0.0 if work.e2e is None else max(0.0, queue.latency(
            None if work.e2e.percentile is None else work.e2e.percentile / 100) - work.e2e.seconds)
        answered = min(way.rate * count / way.gpus, work.rate or 0.0)
        return (late, -answered, way.call if soon or work.rate else -way.rate / way.gpus, way.split.batch, way.gpus)

    if fitting:
        best = min(fitting, key=rank)
        why = (f"Chosen: the fastest of the {len(fitting)} ways that fit, of {len(ways)}",) if len(ways) > 1 else ()
    else:
        best = min(ways, key=lambda way: (way.host > candidate.node.cpu.memory, way.peak, way.call))
        host = _host(ways, candidate, law, confidence)
        why = (f"Of {plural(len(ways), 'way')} none fits: this one takes least memory; {helps(work)}{host}",)
    queue = _queue(work, best, count)
    placed = ReplicaPlace(queue.replicas, -(-count // candidate.node.gpus), None)
    made = generation_assignment(work.label, work, best, candidate, law, confidence, placed, queue)
    return made, why


def _host(ways: list[CallWay], candidate: Candidate, law: GenerationLaw, confidence: float) -> str:
    """Return how much host memory would be enough for a way that fits the GPU; nothing where none does."""
    enough = [way for way in ways if sure_bytes(way, law, confidence) <= candidate.gpu.usable_memory]
    if not enough:
        return ""
    way = min(enough, key=lambda each: each.host)
    return (f"; with parts on the host the GPU would hold it, but these take {show_bytes(way.host)} of host memory "
            f"and the node has {show_bytes(candidate.node.cpu.memory)}")


def _queue(work: Generation, way: CallWay, gpus: int) -> Queue:
    replicas = max(1, gpus // way.gpus)
    return Queue(way, replicas, way.rate if work.rate is None else min(work.rate / replicas, way.rate))


