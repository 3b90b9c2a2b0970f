"""One kind of hardware that could do the work: a node type with the fabric and NICs an offer brings."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.hardware import Fabric, Gpu, Nics, Node


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node type resolved to its facts. `clustered` is false where several nodes cannot form one job."""

    node: Node
    gpu: Gpu
    scaleup: Fabric | None
    fabric: Fabric
    nics: Nics
    clustered: bool = True

    @property
    def label(self) -> str:
        """Name of the node, with the fabric where it is not the node's usual one; nodes that never meet have none."""
        if not self.clustered:
            return f"{self.node.name} (single nodes)"
        return self.node.name if self.fabric.name == self.node.fabric else f"{self.node.name} ({self.fabric.name})"

    @property
    def scaleup_gpus(self) -> int:
        """GPUs of one scale-up domain, in which tensor parallelism stays by default."""
        return self.node.gpus

    @property
    def nic_bandwidth(self) -> float:
        """Bytes/s per GPU and direction if all GPUs of the node share its NICs evenly."""
        return self.nics.count * self.nics.bandwidth / self.node.gpus
