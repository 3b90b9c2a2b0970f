"""The hardware of a row: GPU, node, NICs and fabric by the catalog, with what the row says on top."""

from __future__ import annotations

import re
from functools import lru_cache

from planner.catalog.hardware import Fabric, Gpu, Nics, Node
from planner.catalog.load import Catalog
from planner.catalog.price import Host
from planner.catalog.stack import Stack
from planner.errors import UnknownName
from planner.evidence.rows import TrainRun
from planner.evidence.skipping import SkippedError
from planner.layouts.candidate import Candidate
from planner.units import BYTE_RATE, GIB

UNKNOWN_GPU = "gpu=any"
"""A row that does not state its GPU has a peak to predict, but no verdict."""
STAND_IN = "h100-sxm"
"""Lends its rates, which no memory prediction reads, to a GPU of which only the memory is known."""
GBIT = BYTE_RATE["Gbit/s"]
_RATE = re.compile(r"(?:(\d{1,4}) ?x ?)?(\d{1,5}) ?Gb((?:it|ps)?(?:/s)? ?/ ?GPU)?", re.IGNORECASE)
"""How many adapters where they are counted, the Gbit/s of one, and whether that is of a GPU."""


def candidate_of(run: TrainRun, stack: Stack | None, catalog: Catalog, assumed: list[str], *, gpus: int,
                 memory_only: bool = False) -> Candidate:
    """Return the hardware of a row on `gpus` GPUs. Raises SkippedError where the GPU is not known.

    stack: none where no training is run. memory_only: no time is asked for, so a GPU that the catalog lacks is one of
    the stated memory.
    """
    gpu = _gpu(run, catalog, memory_only, assumed)
    node = _node(run, gpu, gpus, catalog, assumed)
    threads = catalog.sources.whole("host_threads", run)
    if threads is not None:
        node = Host(vcpus=threads * node.gpus).of(node)
    nics = _nics(run, node, catalog)
    scaleup = catalog.fabric(node.scaleup) if node.scaleup else None
    copies = stack is not None and catalog.sources.flag("copy_engines", run, stack=stack.name)
    if copies and scaleup is not None and scaleup.topology == "pcie":
        scaleup = None  # what NCCL reaches there does not bind these
    return Candidate(node, gpu, scaleup, _fabric(run, node, nics, catalog), nics)


def _gpu(run: TrainRun, catalog: Catalog, memory_only: bool, assumed: list[str]) -> Gpu:
    if run.gpu is None:
        if not memory_only:
            raise SkippedError("GPU not stated")
        usual = catalog.sources.word("usual_gpu", run)
        assumed.append(f"gpu={usual}" if usual else UNKNOWN_GPU)
        return catalog.gpu(usual or STAND_IN)
    try:
        return catalog.gpu(run.gpu)
    except UnknownName:
        if not memory_only or run.gpu_mem_gib is None:
            raise SkippedError(f"GPU {run.gpu} is not in the catalog") from None
    assumed.append(f"usable_memory={run.gpu_mem_gib:g} GiB")
    usable = run.gpu_mem_gib * GIB
    return catalog.gpu(STAND_IN).model_copy(update={"name": run.gpu, "memory": usable, "usable_memory": usable})


@lru_cache(maxsize=4)
def _nodes(catalog: Catalog) -> list[tuple[Node, Gpu]]:
    """Return every node with its GPU."""
    return [(node, catalog.gpu(node.gpu)) for node in catalog.all("nodes", Node)]


def _node(run: TrainRun, gpu: Gpu, gpus: int, catalog: Catalog, assumed: list[str]) -> Node:
    """Return the node of this GPU with the stated count, else the largest one resized to it."""
    nodes, named = _nodes(catalog), catalog.sources.word("node", run)
    whole = next((node for node, of in nodes if node.name == named and of.name == gpu.name), None)
    if whole is not None:
        return whole
    fitting = [n for n, of in nodes if of.name == gpu.name]
    if not fitting:
        fitting = [n for n, of in nodes if of.architecture == gpu.architecture]
        if not fitting:
            raise SkippedError(f"the catalog has no node with GPU {gpu.name}")
        assumed.append(f"node={max(fitting, key=lambda n: (n.gpus, n.name)).name}")
    largest = max(fitting, key=lambda n: (n.gpus, n.name))
    rack = largest.gpus > machine_gpus(catalog)
    wanted = _domain(gpus, largest.gpus) if rack else run.gpus_per_node or largest.gpus
    if rack and wanted != largest.gpus and gpus > wanted:
        assumed.append(f"nvlink_domain={wanted}")
    exact = [n for n in fitting if n.gpus == wanted]
    if exact:
        return min(exact, key=lambda n: n.name)
    share = wanted / largest.gpus
    return largest.model_copy(update={
        "name": f"{largest.name}-{wanted}", "gpus": wanted,
        "nics": largest.nics.model_copy(update={"count": max(1, round(largest.nics.count * share))})})


def machine_gpus(catalog: Catalog) -> int:
    """Return the GPUs of the largest node that is one machine; more share a rack, of which a job may take a part."""
    return int(catalog.sources.usual("machine_gpus"))


def _domain(gpus: int, rack: int) -> int:
    """Return the GPUs of a rack that a job fills: all of its own, else the most that divide it."""
    return gpus if gpus <= rack else max(n for n in range(1, rack + 1) if gpus % n == 0)


def _nics(run: TrainRun, node: Node, catalog: Catalog) -> Nics:
    """Return the NICs: counted where the row counts them, else of the stated rate per GPU or per node."""
    rates = [*_RATE.finditer(run.scaleout or "")]
    many, each = (next((rate for rate in rates if rate[group]), None) for group in (1, 3))
    if many:
        # a rack's are counted by the tray
        trays = node.gpus / (run.gpus_per_node or node.gpus) if node.gpus > machine_gpus(catalog) else 1.0
        return _adapters(max(1, round(int(many[1]) * trays)), float(many[2]))
    if run.nic_gbit_per_gpu is not None or each:
        return _adapters(node.gpus, run.nic_gbit_per_gpu or float(each[2] if each else 0))
    if rates:
        return _adapters(node.nics.count, float(rates[0][2]) / node.nics.count)
    return node.nics


def _adapters(count: int, gbit: float) -> Nics:
    return Nics.model_validate({"count": count, "bandwidth": f"{gbit:g} Gbit/s"})


def _fabric(run: TrainRun, node: Node, nics: Nics, catalog: Catalog) -> Fabric:
    """Return the network by the words of the row, else the node's usual one."""
    return catalog.fabric(catalog.sources.word("fabric", run, nic_gbit=f"{nics.bandwidth / GBIT:g}") or node.fabric)


