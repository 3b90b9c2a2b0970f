"""This machine by torch: what it is, and the measurements of its GPU, or of its CPU where it has none."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from planner.probe.backend import Result, Torch, torch_of
from planner.probe.kernels import precisions, seconds
from planner.probe.ranks import BACKENDS, join, on_this_node, results
from planner.probe.tasks import COLLECTIVES, Machine, Operation, ProbeTask

CPU_RANKS = 4
"""Processes that stand in for GPUs on a CPU, at most; a core each."""
ON_CPU: tuple[Operation, ...] = ("all_reduce", "all_gather", "alltoall")
"""Collectives of gloo on a CPU."""


class TorchMachine:
    """A backend. Under torchrun (RANK and WORLD_SIZE are set) this process is one of its ranks."""

    def __init__(self) -> None:
        """Load torch. Raises InputError where it is not installed."""
        self._torch = torch_of()
        self._device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self._started = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"} <= os.environ.keys()

    @property
    def leads(self) -> bool:
        """Whether this is the first rank, or there are no others."""
        return not self._started or os.environ["RANK"] == "0"

    def machine(self) -> Machine:
        """Say what there is to measure."""
        torch, is_gpu = self._torch, self._device == "cuda"
        gpus = torch.cuda.device_count() if is_gpu else min(CPU_RANKS, os.cpu_count() or 1)
        if self._started:
            gpus = int(os.environ["LOCAL_WORLD_SIZE"])
        properties = torch.cuda.get_device_properties(0) if is_gpu else None
        return Machine(
            device="cuda" if is_gpu else "cpu", name=properties.name if properties else _processor(), gpus=gpus,
            ranks=int(os.environ["WORLD_SIZE"]) if self._started else gpus,
            memory=float(properties.total_memory) if properties else _host_memory(),
            precisions=precisions(torch, self._device),
            capability=f"{properties.major}.{properties.minor}" if properties else "",
            multiprocessors=properties.multi_processor_count if properties else 0,
            software=_software(torch, self._device), operations=COLLECTIVES if is_gpu else ON_CPU)

    def measured(self, tasks: Sequence[ProbeTask]) -> Iterator[Result]:
        """Yield the result of every task as it comes, on the rank that leads; collectives first."""
        together = [task for task in tasks if task.ranks > 1]
        if self._started:
            yield from self._among(together)
        elif together:
            yield from on_this_node(self._device, max(task.ranks for task in together), together)
        for task in tasks if self.leads else ():
            if task.ranks == 1:
                yield task, self._alone(task)

    def _among(self, together: Sequence[ProbeTask]) -> Iterator[Result]:
        """Yield what torchrun's ranks measure; which tasks are left, the first says."""
        rank, local, world = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
        torch = join(self._device, rank, local, world)
        said: list[Any] = [list(together)]
        torch.distributed.broadcast_object_list(said, src=0)
        for result in results(torch, self._device, said[0]):
            if rank == 0:
                yield result
        torch.distributed.destroy_process_group()

    def _alone(self, task: ProbeTask) -> float | str:
        try:
            return seconds(self._torch, self._device, task)
        except (RuntimeError, TypeError) as error:  # out of memory and not implemented are RuntimeErrors
            return str(error).splitlines()[0]


def _software(torch: Torch, device: str) -> dict[str, str]:
    versions = {"torch": str(torch.__version__)}
    if device == "cpu":
        return {**versions, "collectives": BACKENDS[device]}
    nccl = torch.cuda.nccl.version()
    runtime = {"rocm": str(torch.version.hip)} if torch.version.hip else {"cuda": str(torch.version.cuda)}
    return {**versions, **runtime, "driver": _driver(), "nccl": ".".join(map(str, nccl)) if isinstance(nccl, tuple)
            else str(nccl)}


def _driver() -> str:
    """Return the version of NVIDIA's driver, as its own tool prints it; empty where there is none."""
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.strip().splitlines()[0] if said.strip() else ""


def _processor() -> str:
    return platform.processor() or platform.machine() or "cpu"


def _host_memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
