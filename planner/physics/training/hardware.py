"""Facts of the candidates of a question as columns, looked up once for all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.catalog.calibration import ArchitectureRates
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats, Ints
from planner.physics.collectives import Neighbors, neighbors_of


@dataclass(frozen=True, slots=True)
class HardwareColumns:
    """One value a candidate: bytes, bytes/s, and GPUs of a node. `links` is what stages send over."""

    gpus: Ints
    usable: Floats
    memory_bandwidth: Floats
    """As kernels reach it."""
    pcie: Floats
    switches: Floats
    """PCIe switches; inf where every GPU has a link of its own."""
    host: Floats
    host_bandwidth: Floats
    host_threads: Floats
    """Of a node that states none: inf."""
    flash: Floats
    flash_read: Floats
    flash_write: Floats
    """Of a node without flash none is asked: inf."""
    links: Neighbors


def hardware_of(candidates: Sequence[Candidate], rates: Sequence[ArchitectureRates]) -> HardwareColumns:
    """Return the facts of the candidates, which pair with `rates`."""
    def column(of: Callable[[Candidate], float]) -> Floats:
        return np.array([of(candidate) for candidate in candidates], np.float64)

    return HardwareColumns(
        gpus=np.array([candidate.node.gpus for candidate in candidates], np.int64),
        usable=column(lambda candidate: candidate.gpu.usable_memory),
        memory_bandwidth=np.array([candidate.gpu.memory_bandwidth * rate.memory
                                   for candidate, rate in zip(candidates, rates, strict=True)], np.float64),
        pcie=column(lambda candidate: candidate.gpu.pcie_bandwidth),
        switches=column(lambda candidate: candidate.node.pcie.switches or np.inf),
        host=column(lambda candidate: candidate.node.cpu.memory),
        host_bandwidth=column(lambda candidate: candidate.node.cpu.memory_bandwidth),
        host_threads=column(lambda candidate: candidate.node.cpu.threads or np.inf),
        flash=column(lambda candidate: candidate.node.nvme.capacity if candidate.node.nvme else 0.0),
        flash_read=column(lambda candidate: candidate.node.nvme.read if candidate.node.nvme else np.inf),
        flash_write=column(lambda candidate: candidate.node.nvme.write if candidate.node.nvme else np.inf),
        links=neighbors_of(candidates))
