"""What is measured on a machine: a list that follows from what the machine has, each task with a key of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Literal

Operation = Literal["product", "attention", "attention_backward", "memory", "host_to_device", "device_to_host",
                    "all_reduce", "all_gather", "reduce_scatter", "alltoall"]
COLLECTIVES: tuple[Operation, ...] = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
"""Operations that several ranks do together; the bytes are those of the whole buffer, as nccl-tests counts them."""
SECONDS = 0.3
"""For which a task is repeated, beside its first run."""
START = 8.0
"""Seconds to load torch and to start the ranks."""
LARGE, SMALL = (1024, 2048, 4096, 8192), (256, 512, 1024)
"""Sides of square products on a GPU and on a CPU."""
ROWS = (1, 16, 64, 256)
"""Tokens of a decode step, through the largest matrices: on a GPU more than its cache holds."""
LENGTHS = {True: (1024, 4096, 16384), False: (256, 1024)}
"""Tokens of attention, by whether it is on a GPU."""
HEADS, WIDTH = 32, 128
"""As models of 7 to 8 billion parameters have."""
SIZES = {True: tuple(4**n * 2**10 for n in range(11)), False: tuple(4**n * 2**10 for n in range(8))}
"""Bytes of collectives, from 1 KiB to 1 GiB on GPUs and to 16 MiB on a CPU."""
COPY = {True: 2**30, False: 2**26}
"""Bytes of a copy."""


_OTHER = ("ranks", "operations", "precisions")
"""Fields of a machine that may differ between two runs of one probe."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What is probed. Bytes: memory. `ranks` are those of all nodes, `gpus` those of one."""

    device: Literal["cuda", "cpu"]
    name: str
    """As the driver prints it."""
    gpus: int
    """Of this node; on a CPU the processes that stand in for them."""
    ranks: int
    memory: float
    """That programs see of a GPU; of the host on a CPU."""
    precisions: tuple[str, ...]
    capability: str = ""
    multiprocessors: int = 0
    software: dict[str, str] = field(default_factory=dict)
    """Versions: torch, driver, CUDA or ROCm, NCCL or gloo."""
    operations: tuple[Operation, ...] = COLLECTIVES
    """Collectives that its library has."""

    @property
    def identity(self) -> dict[str, object]:
        """What two runs of one probe must share; a later one may have more nodes."""
        return {name: value for name, value in asdict(self).items() if name not in _OTHER}

    @property
    def is_gpu(self) -> bool:
        """Whether there is a GPU."""
        return self.device == "cuda"

    @property
    def nodes(self) -> int:
        """Nodes that take part."""
        return max(1, self.ranks // self.gpus)


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """One figure: `shape` is m, n, k of a product, batch, heads, tokens, width of attention, else bytes."""

    operation: Operation
    shape: tuple[int, ...]
    precision: str = ""
    ranks: int = 1

    @property
    def key(self) -> str:
        """The task's name in the journal and in evidence."""
        parts = [self.operation, self.precision, "x".join(map(str, self.shape)), f"r{self.ranks}"]
        return "-".join(part for part in parts if part)

    @property
    def work(self) -> float:
        """FLOPs of products and attention (causal), bytes moved of all others."""
        if self.operation == "product":
            m, n, k = self.shape
            return 2.0 * m * n * k
        if self.operation.startswith("attention"):
            batch, heads, tokens, width = self.shape
            return 2.0 * batch * heads * tokens**2 * width * (2.5 if self.operation == "attention_backward" else 1.0)
        return float(self.shape[0]) * (2.0 if self.operation == "memory" else 1.0)

    def bus_rate(self, seconds: float) -> float:
        """Return bytes/s on the bus as nccl-tests counts them: twice (n - 1)/n of the buffer for an all-reduce."""
        n = self.ranks
        return (2.0 if self.operation == "all_reduce" else 1.0) * (n - 1) / n * self.shape[0] / seconds


def tasks_of(machine: Machine) -> list[ProbeTask]:
    """Return all tasks of a machine, those of one GPU first."""
    return [*_alone(machine), *_together(machine)]


def seconds_of(tasks: list[ProbeTask]) -> float:
    """Return about how long tasks take, in seconds."""
    return START + 2 * SECONDS * len(tasks) if tasks else 0.0


def _alone(machine: Machine) -> Iterator[ProbeTask]:
    sides = LARGE if machine.is_gpu else SMALL
    for precision in machine.precisions:
        yield from (ProbeTask("product", (side, side, side), precision) for side in sides)
        yield from (ProbeTask("product", (rows, sides[-1], sides[-1]), precision) for rows in ROWS)
    half = next((p for p in ("bf16", "fp16") if p in machine.precisions), machine.precisions[0])
    for tokens in LENGTHS[machine.is_gpu]:
        shape = (max(1, LENGTHS[machine.is_gpu][-1] // tokens // 4), HEADS, tokens, WIDTH)
        yield ProbeTask("attention", shape, half)
        yield ProbeTask("attention_backward", shape, half)
    yield ProbeTask("memory", (COPY[machine.is_gpu],))
    if machine.is_gpu:
        yield ProbeTask("host_to_device", (COPY[True] // 4,))
        yield ProbeTask("device_to_host", (COPY[True] // 4,))


def _together(machine: Machine) -> Iterator[ProbeTask]:
    inside = {2**n for n in range(1, machine.gpus.bit_length()) if 2**n <= machine.gpus} | {machine.gpus}
    for ranks in sorted((inside | {machine.ranks}) - {1}):
        for operation in COLLECTIVES:
            if operation in machine.operations:
                yield from (ProbeTask(operation, (size,), ranks=ranks) for size in SIZES[machine.is_gpu])
