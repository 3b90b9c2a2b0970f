"""Time of a collective: latency plus bus bytes over bus bandwidth, from measured curves inside a node.

For a buffer of B bytes over n ranks the bus carries B(n-1)/n (all-gather, reduce-scatter, all-to-all) or twice that
(all-reduce). B is the whole buffer: what every rank holds after an all-gather, before a reduce-scatter.

Between N nodes of m ranks an all-reduce goes round a ring, or up and down a tree of nodes whose ranks reduce among
themselves first and send 2B(N-1)/(Nm) each: the faster is taken, as NCCL's tuner does. An all-to-all sends what leaves
the node by every rank's own adapter while the rest crosses the links inside. Measured on AWS: two p4de reduce at 1.6
times what a ring could, four p5en as a ring does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np

from planner.catalog.calibration import Collectives
from planner.catalog.hardware import Curve, Fabric
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats, Ints, Mask, distinct
from planner.physics.topology import GroupLinks, bandwidth_alone, group_links

SameLinks: TypeAlias = tuple[Ints, Candidate, GroupLinks]
"""Rows whose groups see the same links, and their hardware."""


class Groups(Protocol):
    """Layouts, or replicas, by what decides the links of their groups."""

    @property
    def candidate(self) -> Ints:
        """Number of the hardware of each."""

    @property
    def gpus(self) -> Ints:
        """GPUs of each, side by side from the first of a node on."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Groups by themselves, as a benchmark of collectives runs them."""

    candidate: Ints
    gpus: Ints


def _curve(fabric: Fabric, operation: str, members: int) -> Curve | None:
    """Return the measured curve nearest in ranks; all-gather and reduce-scatter stand in for each other."""
    twin = {"all_gather": "reduce_scatter", "reduce_scatter": "all_gather"}.get(operation, "")
    for wanted in (operation, twin):
        curves = [c for c in fabric.curves if c.operation == wanted]
        if curves:
            return curves[_nearest(tuple([c.ranks for c in curves]), members)]
    return None


@lru_cache(maxsize=512)
def _nearest(ranks: tuple[int, ...], members: int) -> int:
    return min(range(len(ranks)), key=lambda at: abs(np.log(ranks[at] / members)))


@lru_cache(maxsize=512)
def _logarithms(sizes: tuple[float, ...], busbw: tuple[float, ...]) -> tuple[Floats, Floats]:
    return np.log(sizes), np.log(busbw)


def _inside_busbw(candidate: Candidate, links: GroupLinks, operation: str, size: Floats) -> Floats:
    """Return bus bandwidth inside the node for buffers of `size` bytes, limited by the topology of the group."""
    fabric = candidate.scaleup
    if fabric is None:
        return np.full_like(size, links.inside)
    # a group that leaves a bridge runs over PCIe, whose curves are of more ranks
    bridged = fabric.topology != "pairs" or links.inside >= (fabric.bandwidth or 0.0)
    curve = _curve(fabric, operation, links.members if bridged else max(links.members, 4))
    if curve is None:
        return np.full_like(size, links.inside * fabric.efficiency)
    sizes, busbw = _logarithms(curve.sizes, curve.busbw)
    measured = np.exp(np.interp(np.log(np.maximum(size, 1.0)), sizes, busbw))
    # below the first point time is all latency, so bandwidth falls with size
    measured = np.where(size < curve.sizes[0], measured * size / curve.sizes[0], measured)
    # a benchmark runs one group alone; here all groups of the kind share the node's links
    return measured * min(1.0, links.inside / bandwidth_alone(candidate, curve.ranks))


def seconds(law: Collectives, candidates: tuple[Candidate, ...], rows: Groups, operation: str, size: Ints, stride: Ints,
            buffer: Floats) -> Floats:
    """Return the time of one collective for each row under `law`: groups of `size` at `stride` over `buffer` bytes.

    Rows whose group has one rank take no time.
    """
    return seconds_over(law, by_links(candidates, rows, size, stride), operation, size, buffer)


def single(law: Collectives, hardware: Candidate, operation: str, ranks: int, gpus: int, buffer: float) -> float:
    """Return seconds of one collective over `buffer` bytes by the first `ranks` of each group of a layout of `gpus`."""
    one = np.ones(1, np.int64)
    return float(seconds(law, (hardware,), Ranks(0 * one, gpus * one), operation, ranks * one, one,
                         np.array([buffer]))[0])


def seconds_over(law: Collectives, groups: Iterable[SameLinks], operation: str, size: Ints, buffer: Floats) -> Floats:
    """Return the same, of groups of `size` over the links that `by_links` has found."""
    out = np.zeros(len(size))
    for rows, hardware, links in groups:
        out[rows] = _one(law, hardware, links, operation, size[rows].astype(np.float64), buffer[rows])
    return out


def all_to_all(candidates: tuple[Candidate, ...], rows: Groups, size: Ints, stride: Ints, inside: Floats,
               across: Floats) -> Floats:
    """Return the time of an all-to-all in which every rank sends `inside` bytes to its node and `across` to others."""
    out = np.zeros(len(size))
    for mine, hardware, links in by_links(candidates, rows, size, stride):
        out[mine] = _all_to_all(hardware, links, size[mine] > links.members, inside[mine], across[mine])
    return out


def node_members(candidates: tuple[Candidate, ...], rows: Groups, size: Ints, stride: Ints) -> Floats:
    """Return how many ranks of a group are on one node."""
    out = np.ones(len(size))
    for mine, _, links in by_links(candidates, rows, size, stride):
        out[mine] = links.members
    return out


def by_links(candidates: tuple[Candidate, ...], rows: Groups, size: Ints, stride: Ints) -> Iterator[SameLinks]:
    """Yield the places of rows whose groups see the same links, with their hardware; none for groups of one rank."""
    candidate = rows.candidate
    one_node = (rows.gpus <= np.array([c.node.gpus for c in candidates])[candidate]).astype(np.int64)
    first, inverse = distinct(candidate, size, np.minimum(stride, 64), one_node)
    links = [(int(candidate[r]), group_links(candidates[candidate[r]], int(size[r]), int(stride[r]), bool(one_node[r])))
             for r in first]
    numbers = {link: number for number, link in enumerate(dict.fromkeys(links))}
    if len(numbers) == 1:
        if links[0][1].talks:
            yield np.arange(len(inverse)), candidates[links[0][0]], links[0][1]
        return
    kind = np.array([numbers[link] for link in links], np.int16)[inverse]  # 16 bits are sorted by radix
    order = np.argsort(kind, kind="stable")
    bounds = np.searchsorted(kind[order], np.arange(len(numbers) + 1))
    for (hardware, link), number in numbers.items():
        if link.talks:
            yield order[bounds[number]:bounds[number + 1]], candidates[hardware], link


def _one(law: Collectives, hardware: Candidate, links: GroupLinks, operation: str, n: Floats,
         buffer: Floats) -> Floats:
    # an empty buffer costs a start and no more; one byte keeps its bandwidth above zero
    buffer = np.maximum(buffer, 1.0)
    m, nodes = links.members, n / links.members
    if operation == "alltoall":
        return _all_to_all(hardware, links, nodes > 1, buffer * (m - 1) / n, buffer * (n - m) / n)
    inside = _inside_busbw(hardware, links, operation, buffer) if m > 1 else np.full_like(buffer, np.inf)
    factor = (2.0 if operation == "all_reduce" else 1.0) * (n - 1) / n
    if links.across == np.inf:
        # nothing leaves the node: what follows comes to the same
        within: Floats = factor * buffer / inside
        return within
    across, hop = links.across * hardware.fabric.efficiency, hardware.fabric.latency
    start = hardware.scaleup.latency if m > 1 and hardware.scaleup else 0.0
    begin = np.where(nodes > 1, start, 0.0)
    crossings = np.maximum(nodes - 1.0, 0.0)
    ring: Floats = factor * buffer / np.minimum(inside, across) + begin
    if operation != "all_reduce":
        return ring + hop * crossings
    shared = 2 * buffer * crossings / nodes / (law.tree * across)
    tree = np.maximum(shared, factor * buffer / inside) + begin + 2 * hop * np.log2(np.maximum(nodes, 1.0))
    return np.minimum(ring + 2 * hop * crossings, tree)


def _all_to_all(hardware: Candidate, links: GroupLinks, leaves: Mask, inside: Floats, across: Floats) -> Floats:
    """Return the time of the slower part, inside the node and between nodes; `leaves` says where the latter is any."""
    m, took = links.members, np.zeros_like(inside)
    if m > 1:
        # the curve is over the whole buffer, of which (m - 1) / m leaves the GPU
        buffer = np.maximum(inside * m / (m - 1), 1.0)
        took = inside / _inside_busbw(hardware, links, "alltoall", buffer)
    # what a ring gets over the adapters of all members is here what each sends by its own
    own = links.across / m * hardware.fabric.efficiency
    return np.where(leaves, np.maximum(took, across / own) + hardware.fabric.latency, took)


@dataclass(frozen=True, slots=True)
class Neighbors:
    """By candidate: GPUs of a node, bytes/s to the next GPU inside it and on another, and seconds of the hop there."""

    gpus: Ints
    inside: Floats
    across: Floats
    hop: Floats


def neighbors_of(candidates: Sequence[Candidate]) -> Neighbors:
    """Return what ranks send to the next one over."""
    return Neighbors(np.array([c.node.gpus for c in candidates]), np.array([_neighbor(c) for c in candidates]),
                     np.array([c.nic_bandwidth * c.fabric.efficiency for c in candidates]),
                     np.array([c.fabric.latency for c in candidates]))


def point_to_point(links: Neighbors, candidate: Ints, stride: Ints, payload: Floats) -> Floats:
    """Return the time to send `payload` bytes to the rank `stride` further on, all ranks sending at once."""
    local = stride < links.gpus[candidate]
    return (payload / np.where(local, links.inside[candidate], links.across[candidate])
            + np.where(local, 0.0, links.hop[candidate]))


def _neighbor(candidate: Candidate) -> float:
    """Return bytes/s from one GPU of a node to another."""
    scaleup = candidate.scaleup
    if scaleup is None or scaleup.bandwidth is None:
        return candidate.gpu.pcie_bandwidth
    if scaleup.topology == "pairs" and candidate.node.gpus > 2:
        return candidate.gpu.pcie_bandwidth
    peers = {"mesh": candidate.node.gpus - 1, "cube-mesh": 6}.get(scaleup.topology, 1)
    return scaleup.bandwidth * scaleup.efficiency / max(1, peers)
