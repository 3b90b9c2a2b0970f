"""GPUs, nodes and fabrics as the catalog states them. Bandwidths are per direction unless a name says otherwise."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.catalog.ranges import MOST_GPUS, DeviceBytes, Factor, Few, Share
from planner.catalog.sourced import Sourced
from planner.units import ByteRate, Bytes, FlopRate, Seconds, Watts
from planner.yaml_io import Frozen

Precision = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "fp4", "int8"]
"""Formats of matrix products: fp8 with a scale for each tensor, mxfp8 one for each 32 elements, fp4 is NVFP4."""
LOW_PRECISION = frozenset({"fp8", "mxfp8", "fp4"})
"""Formats that tensors are cast to for a product and back."""
MOST_OF_WIRE = 1.2
"""Bus bandwidth over wire bandwidth, at most: reduction in a switch lifts it above one."""
Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall"]


class Gpu(Sourced):
    """One GPU. `memory` is what is sold, `usable_memory` what a program can allocate; `peak` is dense FLOP/s."""

    vendor: Literal["nvidia", "amd"]
    architecture: str
    memory: DeviceBytes
    usable_memory: DeviceBytes
    memory_bandwidth: ByteRate
    peak: dict[Precision, FlopRate]
    multiprocessors: Few
    cache: Bytes = 0.0
    """The last-level cache, where it is large enough to hold what one kernel leaves to the next."""
    pcie_bandwidth: ByteRate
    power: Watts
    gemm_efficiency: dict[Precision, Share] = Field(default_factory=dict)
    """Measured fraction of `peak` that large matrix products reach in a benchmark; else the architecture's."""

    attention_gain: Factor = 1.0
    """Rate of attention over that of the architecture's other parts, at the same peak."""

    @property
    def halves(self) -> float | None:
        """FLOP/s of products of 16-bit numbers, run in 32 bits where that is faster (Pascal); none is not known."""
        known = self.peak.get("bf16") or self.peak.get("fp16")
        return None if known is None else max(known, self.peak.get("fp32", 0.0))

    @model_validator(mode="after")
    def _usable_within_sold(self) -> Gpu:
        if self.usable_memory > self.memory * 1.08:
            raise ValueError("usable_memory exceeds memory")
        return self


class Curve(Frozen):
    """Measured bus bandwidth of one collective among `ranks` GPUs, by message size.

    `busbw` follows nccl-tests: all_reduce counts 2(n-1)/n of the buffer, the others (n-1)/n.
    """

    operation: Operation
    ranks: Annotated[int, Field(ge=2, le=10**6)]
    sizes: tuple[Bytes, ...]
    busbw: tuple[ByteRate, ...]

    @model_validator(mode="after")
    def _paired(self) -> Curve:
        if len(self.sizes) != len(self.busbw) or list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError("sizes must rise and pair with busbw one to one")
        return self


class FabricParts(Frozen):
    """What a network between nodes is bought as: names of catalog parts. Cables with ends need no optics."""

    switch: str
    node_cable: str
    """From a NIC to its leaf switch."""
    trunk_cable: str
    """Between switches."""
    nic: str | None = None
    optic: str | None = None


class Fabric(Sourced):
    """A way GPUs or nodes are joined: a scale-up domain inside a node, or a network between nodes."""

    level: Literal["scale-up", "scale-out"]
    topology: Literal["switch", "mesh", "cube-mesh", "pairs", "pcie", "rail-optimized", "fat-tree"]
    """Scale-up: a switch, links between all, the hybrid cube mesh of eight V100, bridges between neighbors, or none."""
    bandwidth: ByteRate | None = None
    """Scale-up: per GPU and direction. Scale-out takes it from the node's NICs."""
    efficiency: float = Field(ge=1e-4, le=MOST_OF_WIRE)
    """Bus bandwidth of large messages over wire bandwidth."""
    latency: Seconds
    """Fixed time of one small collective (scale-up) or of one network hop (scale-out)."""
    oversubscription: Annotated[float, Field(ge=1.0, le=1000)] = 1.0
    in_switch_reduction: bool = False
    curves: tuple[Curve, ...] = ()
    parts: FabricParts | None = None
    """Scale-out: what it is built of, where it can be bought."""


class Nics(Frozen):
    """Network adapters of one node used by GPU traffic."""

    count: Few
    bandwidth: ByteRate


class Cpu(Frozen):
    """The host of one node."""

    sockets: Few
    memory: Bytes
    memory_bandwidth: ByteRate
    threads: Few | None = None
    """Hardware threads; where none are stated, there are enough to use the memory's bandwidth."""


class Nvme(Frozen):
    """Local flash of one node, all drives together."""

    capacity: Bytes
    read: ByteRate
    write: ByteRate


class Pcie(Frozen):
    """How GPUs hang on the host: switches with one uplink each (0: every GPU straight on a socket), and peer access."""

    switches: Annotated[int, Field(ge=0, le=10_000)]
    peer_access: bool


class NodePower(Frozen):
    """Draw of the whole node, from the wall."""

    idle: Watts
    load: Watts


class Node(Sourced):
    """One server: its GPUs, how they are joined, its host and its NICs. `fabric` is the usual network."""

    gpu: str
    gpus: Annotated[int, Field(gt=0, le=MOST_GPUS)]
    hosts: Annotated[int, Field(gt=0, le=MOST_GPUS)] = 1
    """Servers with an operating system each, as the trays of a rack: what starts a program counts them as nodes."""
    scaleup: str | None = None
    pcie: Pcie
    cpu: Cpu
    nvme: Nvme | None = None
    nics: Nics
    fabric: str
    power: NodePower
