"""A node type that no file describes: some of the GPUs of a larger one, with their share of its host."""

from __future__ import annotations

import re
from collections.abc import Iterable

from planner.catalog.hardware import Node

_NAMED = re.compile(r"(?P<gpu>.+)-(?P<count>\d{1,5})x", re.ASCII)


def part_name(gpu: str, gpus: int) -> str:
    """Return what a node type with so many of a GPU is called."""
    return f"{gpu}-{gpus}x"


def part_named(name: str, nodes: Iterable[Node]) -> Node | None:
    """Return the node type of a name such as `rtx-3090-6x`, cut from the smallest that has more GPUs; else none."""
    named = _NAMED.fullmatch(name)
    gpus = int(named["count"]) if named else 0
    larger = [node for node in nodes if named and node.gpu == named["gpu"] and node.gpus > gpus]
    return cut(min(larger, key=lambda node: (node.gpus, node.name)), gpus) if larger and gpus else None


def cut(node: Node, gpus: int) -> Node:
    """Return a node type with the first GPUs of another, and as large a share of its host, NICs and power."""
    share = gpus / node.gpus
    cpu = node.cpu.model_copy(update={"memory": share * node.cpu.memory, "sockets": max(
        1, round(share * node.cpu.sockets)), "memory_bandwidth": share * node.cpu.memory_bandwidth})
    nvme = node.nvme and node.nvme.model_copy(update={
        name: share * getattr(node.nvme, name) for name in ("capacity", "read", "write")})
    power = node.power.model_copy(update={"idle": share * node.power.idle, "load": share * node.power.load})
    return node.model_copy(update={
        "name": part_name(node.gpu, gpus), "aliases": (), "gpus": gpus, "cpu": cpu, "nvme": nvme, "power": power,
        "nics": node.nics.model_copy(update={"count": max(1, round(share * node.nics.count))}),
        "scaleup": node.scaleup if gpus > 1 else None, "source": f"{gpus} of the {node.gpus} GPUs of {node.name}, and "
        "as large a share of its host", "kind": "assumed", "facts": {}, "note": ""})
