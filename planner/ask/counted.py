"""Whether the GPUs that a question counts, or one with the memory that it names, hold the model: yes or no."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from planner.answer.assignment import Assignment
from planner.answer.schema import Counted
from planner.ask.fastest import fastest
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.holding import trained_by
from planner.jobs.kinds import on_node
from planner.scenario.scenario import AnyScenario

_GB = 1e9
"""Bytes by which cards are sold."""


def counted(scenario: AnyScenario, catalog: Catalog, best: Sequence[Assignment], others: Sequence[Assignment],
            without: Sequence[str]) -> Counted | None:
    """Return whether the GPUs of the one node type named hold the model, with the fastest layout for one method.

    None where several models or kinds of GPU are asked about, or limits say how many GPUs there must be. Some of the
    GPUs are enough for a yes, as the others may stay idle. Of all kinds with the same memory it is told of one GPU.
    """
    limits, (name, *more) = scenario.limits, scenario.hardware.candidates
    work = trained_by(scenario)
    kinds = {catalog.node(each).gpu for each in scenario.hardware.candidates}
    cluster = limits.max_gpus is not None and len(kinds) == 1
    if (work and work.has_several) or (limits.gpus, limits.max_nodes) != (None, None):
        return None
    if more and not cluster:
        return _of_memory(scenario, kinds, catalog, (*best, *others), without)
    node = catalog.node(name)
    gpus = limits.max_gpus or node.gpus * scenario.sourcing.own.get(name, 1)
    fastest_of: tuple[Assignment, ...] = ()
    if work and work.method is not None and work.method != "inference" and not limits.max_gpus and (
            best and best[0].gpus <= gpus):
        with suppress(InputError):
            assignment = fastest(on_node(scenario, catalog, name), gpus, {}).assignment
            fastest_of = (assignment,) if assignment.memory.fits == "fits" else ()
    return Counted(gpu=catalog.gpu(node.gpu).name, gpus=gpus, fastest=fastest_of, holds={
        **{other.workload: other.gpus <= gpus for other in best}, **dict.fromkeys(without, False)})


def _of_memory(scenario: AnyScenario, kinds: Collection[str], catalog: Catalog, found: Sequence[Assignment],
               without: Sequence[str]) -> Counted | None:
    """Return whether so many GPUs of a size of memory hold the model, of which there are these kinds: 24 GB.

    None where they have memory of several sizes, or where some of them hold it and others do not.
    """
    sizes = {round(catalog.gpu(kind).memory / _GB) for kind in kinds}
    if len(kinds) < 2 or len(sizes) > 1 or scenario.limits.max_gpus is not None or scenario.sourcing.own:
        return None
    counts = {catalog.node(name).gpus for name in scenario.hardware.candidates}
    gpus = counts.pop() if len(counts) == 1 else 1
    holders: dict[str, set[str]] = {}
    for made in found:
        holders.setdefault(made.workload, set()).update([made.gpu] if made.gpus <= gpus else [])
    holds = {method: bool(those) for method, those in holders.items() if those in (set(), set(kinds))}
    holds |= dict.fromkeys(without, False)
    return Counted(gpu=f"GPU of {sizes.pop()} GB", gpus=gpus, holds=holds) if holds else None
