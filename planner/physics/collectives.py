"""Time of a collective: latency plus bus bytes over bus bandwidth, from measured curves inside a node.

For a buffer of B bytes over n ranks the bus carries B(n-1)/n (all-gather, reduce-scatter, all-to-all) or twice that
(all-reduce). B is the whole buffer: what every rank holds after an all-gather, before a reduce-scatter.
"""

from __future__ import annotations

import numpy as np

from planner.catalog.hardware import Curve, Fabric
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats, Ints
from planner.physics.compute import distinct
from planner.physics.topology import GroupLinks, bandwidth_alone, group_links


def _curve(fabric: Fabric, operation: str, members: int) -> Curve | None:
    """Return the measured curve nearest in ranks; all-gather and reduce-scatter stand in for each other."""
    twin = {"all_gather": "reduce_scatter", "reduce_scatter": "all_gather"}.get(operation, "")
    for wanted in (operation, twin):
        curves = [c for c in fabric.curves if c.operation == wanted]
        if curves:
            return min(curves, key=lambda c: abs(np.log(c.ranks / members)))
    return None


def _inside_busbw(candidate: Candidate, links: GroupLinks, operation: str, size: Floats) -> Floats:
    """Return bus bandwidth inside the node for buffers of `size` bytes, limited by the topology of the group."""
    fabric = candidate.scaleup
    if fabric is None:
        return np.full_like(size, links.inside)
    curve = _curve(fabric, operation, links.members)
    if curve is None:
        return np.full_like(size, links.inside * fabric.efficiency)
    measured = np.exp(np.interp(np.log(np.maximum(size, 1.0)), np.log(curve.sizes), np.log(curve.busbw)))
    # below the first point time is all latency, so bandwidth falls with size
    measured = np.where(size < curve.sizes[0], measured * size / curve.sizes[0], measured)
    # a benchmark runs one group alone; here all groups of the kind share the node's links
    return measured * min(1.0, links.inside / bandwidth_alone(candidate, curve.ranks))


def seconds(candidates: tuple[Candidate, ...], candidate: Ints, operation: str, size: Ints, stride: Ints,
            buffer: Floats) -> Floats:
    """Return the time of one collective for each row: groups of `size` at `stride` over `buffer` bytes.

    Rows whose group has one rank take no time.
    """
    out = np.zeros(len(candidate))
    first, inverse = distinct(candidate, size, np.minimum(stride, 64))
    # groups of any size that see the same links are timed together
    links = [(int(candidate[r]), group_links(candidates[candidate[r]], int(size[r]), int(stride[r]))) for r in first]
    numbers = {link: number for number, link in enumerate(dict.fromkeys(links))}
    kind = np.array([numbers[link] for link in links], np.int64)[inverse]
    order = np.argsort(kind, kind="stable")
    bounds = np.searchsorted(kind[order], np.arange(len(numbers) + 1))
    for (hardware, link), number in numbers.items():
        rows = order[bounds[number]:bounds[number + 1]]
        if link.talks:
            out[rows] = _one(candidates[hardware], link, operation, size[rows].astype(np.float64), buffer[rows])
    return out


def _one(hardware: Candidate, links: GroupLinks, operation: str, n: Floats, buffer: Floats) -> Floats:
    # an empty buffer costs a start and no more; one byte keeps its bandwidth above zero
    buffer = np.maximum(buffer, 1.0)
    inside = _inside_busbw(hardware, links, operation, buffer) if links.members > 1 else np.full_like(buffer, np.inf)
    across = links.across * hardware.fabric.efficiency
    nodes = n / links.members
    # all-reduce can go up and down a tree; a ring of gathers or scatters passes every node once
    passed = np.log2(np.maximum(nodes, 1.0)) if operation == "all_reduce" else np.maximum(nodes - 1.0, 0.0)
    hops = hardware.fabric.latency * passed
    start = hardware.scaleup.latency if links.members > 1 and hardware.scaleup else 0.0
    factor = (2.0 if operation == "all_reduce" else 1.0) * (n - 1) / n
    return factor * buffer / np.minimum(inside, across) + hops + np.where(nodes > 1, start, 0.0)


def point_to_point(candidates: tuple[Candidate, ...], candidate: Ints, stride: Ints, payload: Floats) -> Floats:
    """Return the time to send `payload` bytes to the rank `stride` further on, all ranks sending at once."""
    node_gpus = np.array([c.node.gpus for c in candidates])[candidate]
    inside = np.array([_neighbor(c) for c in candidates])[candidate]
    across = np.array([c.nic_bandwidth * c.fabric.efficiency for c in candidates])[candidate]
    hop = np.array([c.fabric.latency for c in candidates])[candidate]
    local = stride < node_gpus
    return payload / np.where(local, inside, across) + np.where(local, 0.0, hop)


def _neighbor(candidate: Candidate) -> float:
    """Return bytes/s from one GPU of a node to another."""
    scaleup = candidate.scaleup
    if scaleup is None or scaleup.bandwidth is None:
        return candidate.gpu.pcie_bandwidth
    peers = candidate.node.gpus - 1 if scaleup.topology == "mesh" else 1
    return scaleup.bandwidth * scaleup.efficiency / max(1, peers)
