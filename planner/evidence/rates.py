"""Measured times of kernels, copies and collectives; the collectives are held against the links of a node type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import numpy as np

from planner.catalog.hardware import Operation
from planner.catalog.importers.gpu_names import GpuNames
from planner.catalog.load import Catalog
from planner.errors import UnknownName
from planner.evidence.hardware import candidate_of
from planner.evidence.rows import Cells, Count, EvidenceRow, Measured, OfNode, Positive, Text, TrainRun
from planner.evidence.skipping import UNREADABLE, SkippedError, why
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats
from planner.physics import collectives

COLLECTIVES = frozenset(get_args(Operation))


class RateRun(Cells):
    """What a row of rates says was run.

    Words: source, notes, operation (product, attention, attention_backward, memory, host_to_device, device_to_host, or
    a collective as nccl-tests has them: all_reduce, all_gather, reduce_scatter, alltoall), precision, gpu (a catalog
    name or as the driver prints it), node (a catalog name, instead of GPU and scaleout), scaleout, shape (m x n x k, or
    batch x heads x tokens x width). Counts: gpus that take part, gpus_per_node. Gbit/s: nic_gbit_per_gpu. bytes: of the
    whole buffer of a collective.
    """

    source: Text = None
    notes: Text = None
    operation: Text = None
    precision: Text = None
    node: Text = None
    gpu: Text = None
    gpus: Count = None
    gpus_per_node: OfNode = None
    scaleout: Text = None
    nic_gbit_per_gpu: Positive = None
    shape: Text = None
    bytes: Positive = None


class RateMeasured(Measured):
    """What a row of rates measured. Seconds: seconds, of one run."""

    seconds: Positive = None


class RateRow(EvidenceRow):
    """One kernel, copy or collective."""

    run: RateRun
    measured: RateMeasured


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One collective: among how many GPUs of which hardware, of how many bytes, and how long it took."""

    candidate: Candidate
    operation: Operation
    gpus: int
    bytes: float
    seconds: float

    @property
    def crosses(self) -> bool:
        """Whether it leaves the node."""
        return self.gpus > self.candidate.node.gpus


def link_row(row: RateRow, catalog: Catalog) -> LinkRow:
    """Return a row of a collective. Raises SkippedError where it is none, or leaves something open."""
    run, seconds = row.run, row.measured.seconds
    if run.operation not in COLLECTIVES:
        raise SkippedError(f"{run.operation or 'operation not stated'}: only collectives are predicted one by one")
    if run.gpus is None or run.gpus < 2 or run.bytes is None or seconds is None:
        raise SkippedError("expected gpus (2 or more), bytes and seconds")
    candidate = _node(run.node, catalog) if run.node else _hardware(run, run.gpus, catalog)
    if run.gpus > candidate.node.gpus and run.gpus % candidate.node.gpus:
        raise SkippedError(f"{run.gpus} GPUs are no whole nodes of {candidate.node.gpus}")
    return LinkRow(candidate, run.operation, run.gpus, run.bytes, seconds)  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def _node(name: str, catalog: Catalog) -> Candidate:
    node = catalog.node(name)
    return Candidate(node, catalog.gpu(node.gpu), catalog.fabric(node.scaleup) if node.scaleup else None,
                     catalog.fabric(node.fabric), node.nics)


def _hardware(run: RateRun, gpus: int, catalog: Catalog) -> Candidate:
    hardware = TrainRun(gpu=_gpu(run.gpu, catalog), gpus_per_node=run.gpus_per_node, scaleout=run.scaleout,
                        nic_gbit_per_gpu=run.nic_gbit_per_gpu, notes=run.notes, source=run.source)
    return candidate_of(hardware, None, catalog, [], gpus=gpus)


def _gpu(name: str | None, catalog: Catalog) -> str | None:
    """Return the catalog's name of a GPU, which may be given as its driver prints it."""
    if name is None:
        return None
    try:
        return catalog.gpu(name).name
    except UnknownName:
        return GpuNames(catalog).called(name) or name


def readable(rows: Sequence[RateRow], catalog: Catalog) -> tuple[list[LinkRow], str]:
    """Return the collectives among rows, and why the first that is none is left out."""
    kept, reasons = list[LinkRow](), list[str]()
    for row in rows:
        if row.run.operation in COLLECTIVES and not row.suspect:
            try:
                kept.append(link_row(row, catalog))
            except UNREADABLE as reason:
                reasons.append(why(reason))
    return kept, next(iter(reasons), "")


def predicted_seconds(rows: Sequence[LinkRow], catalog: Catalog) -> Floats:
    """Return the seconds that the links of each row's hardware give it."""
    numbers = {id(row.candidate): row.candidate for row in rows}
    order = list(numbers)
    of = np.array([order.index(id(row.candidate)) for row in rows])
    size, ones = np.array([row.gpus for row in rows]), np.ones(len(rows), np.int64)
    buffer, out = np.array([row.bytes for row in rows]), np.empty(len(rows))
    for operation in {row.operation for row in rows}:
        mine = np.flatnonzero([row.operation == operation for row in rows])
        out[mine] = collectives.seconds(catalog.collectives, tuple(numbers.values()),
                                        collectives.Ranks(of[mine], size[mine]), operation, size[mine], ones[mine],
                                        buffer[mine])
    return out
