"""A node and its network as a graph, and the bandwidth a group of GPUs gets from it.

Ranks are placed with tp innermost, then cp, dp, pp. A group of `size` ranks at `stride` runs as NCCL rings, one
channel for each member it has on a node; all groups of the kind run at once, so shared links count every one.
The bandwidth of a group is the bus bandwidth of its rings at the most loaded link, before protocol efficiency.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import combinations, pairwise
from math import gcd
from typing import TYPE_CHECKING, TypeAlias

from planner.layouts.candidate import Candidate

if TYPE_CHECKING:
    import networkx as nx

Links: TypeAlias = dict[str, dict[str, float]]
"""Bytes/s per direction from one end to each of its neighbors."""
OUTSIDE = "network"
CUBE_MESH = ((0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2), (2, 6, 1),
             (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2))
"""Which GPUs of a DGX-1 with V100 are joined, and by how many of the six links of each (topo -m, recalled)."""
MOST_KEYS = 4096


@dataclass(frozen=True, slots=True)
class GroupLinks:
    """Bytes/s per GPU and direction of a ring over `members` GPUs of a node, and over nodes; `inside` is inf alone."""

    members: int
    inside: float
    across: float
    talks: bool
    """False for a group of one."""


def node_graph(candidate: Candidate) -> nx.DiGraph[str]:
    """Return `node_links` as a graph, whose edges carry `capacity` in bytes/s per direction."""
    import networkx as nx  # a fifth of a second, paid only where a topology is shown

    graph: nx.DiGraph[str] = nx.DiGraph()
    for a, others in node_links(candidate).items():
        graph.add_edges_from((a, b, {"capacity": capacity}) for b, capacity in others.items())
    return graph


def node_links(candidate: Candidate) -> Links:
    """Return the links of one node: GPUs, switch or mesh, PCIe switches, sockets, host memory, NICs, network."""
    links: Links = {}
    node, gpus = candidate.node, [f"gpu{i}" for i in range(candidate.node.gpus)]

    def both(a: str, b: str, capacity: float) -> None:
        for end, other in ((a, b), (b, a)):
            links.setdefault(end, {})[other] = capacity

    pcie = candidate.gpu.pcie_bandwidth
    switches = node.pcie.switches or len(gpus)
    for i, gpu in enumerate(gpus):
        both(gpu, f"pcie{i * switches // len(gpus)}", pcie)
    for j in range(switches):
        both(f"pcie{j}", f"socket{j * node.cpu.sockets // switches}", pcie)
    for socket in range(node.cpu.sockets):
        # staged copies are written to and read from memory, so a byte passes it twice
        both(f"socket{socket}", "memory", node.cpu.memory_bandwidth / node.cpu.sockets / 2)
    nics, rate = _nics(candidate)
    for j in range(nics):
        both(f"pcie{j * switches // nics}", f"nic{j}", rate)
        both(f"nic{j}", OUTSIDE, rate / _oversubscription(candidate))
    _join(both, candidate, gpus)
    return links


def _nics(candidate: Candidate) -> tuple[int, float]:
    """Return adapters and bytes/s of each; those that serve one GPU together count as one."""
    count, gpus = candidate.nics.count, candidate.node.gpus
    return (gpus, candidate.nic_bandwidth) if count > gpus else (count, candidate.nics.bandwidth)


def _oversubscription(candidate: Candidate) -> float:
    """Return what the fabric takes from a NIC when every node talks: nothing where rails stay in their leaf."""
    return 1.0 if candidate.fabric.topology == "rail-optimized" else candidate.fabric.oversubscription


def _join(both: object, candidate: Candidate, gpus: list[str]) -> None:
    """Add the scale-up links between the GPUs of a node."""
    assert callable(both)
    scaleup = candidate.scaleup
    if scaleup is None or scaleup.bandwidth is None or len(gpus) < 2:
        return
    pairs: dict[str, list[tuple[str, str, float]]] = {
        "switch": [(gpu, "nvswitch", 1.0) for gpu in gpus],
        "mesh": [(a, b, 1 / (len(gpus) - 1)) for a, b in combinations(gpus, 2)],
        "cube-mesh": [(gpus[i], gpus[j], links / 6) for i, j, links in CUBE_MESH if j < len(gpus)],
        "pairs": [(a, b, 1.0) for a, b in zip(gpus[::2], gpus[1::2], strict=False)]}
    for a, b, share in pairs.get(scaleup.topology, []):
        both(a, b, scaleup.bandwidth * share)


def node_groups(gpus: int, members: int, stride: int) -> Iterator[list[int]]:
    """Yield the GPUs of every group of the kind that has `members` ranks at `stride` on one node."""
    if members == 1:
        yield from ([i] for i in range(gpus))
        return
    for block in range(0, gpus - members * stride + 1, members * stride):
        for base in range(stride):
            yield [block + base + stride * i for i in range(members)]


@lru_cache(maxsize=256)
def _graph(key: _Key) -> Links:
    return node_links(key.candidate)


@lru_cache(maxsize=65536)
def _route(key: _Key, a: str, b: str) -> tuple[tuple[str, str], ...]:
    return tuple(pairwise(route(_graph(key), a, b)))


def route(links: Links, a: str, b: str) -> tuple[str, ...]:
    """Return the ends passed on the way from `a` to `b` that a byte takes least time over; of equals, the shortest.

    Raises ValueError where there is none. (networkx has the same; it takes longer to import than a plan to find.)
    """
    reached: set[str] = set()
    heap: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 0, (a,))]
    while heap:
        took, hops, way = heappop(heap)
        if way[-1] == b:
            return way
        if way[-1] not in reached:
            reached.add(way[-1])
            for other, capacity in links[way[-1]].items():
                heappush(heap, (took + 1 / capacity, hops + 1, (*way, other)))
    raise ValueError(f"no way from {a} to {b}")


@lru_cache(maxsize=4096)
def _loads(key: _Key, members: int, stride: int, leaves_node: bool, alone: bool = False) -> tuple[float, float]:
    """Return (inside, across) ring bandwidth; `across` is inf where the group stays on the node.

    `alone` runs one group only, as benchmarks of collectives do.
    """
    candidate = key.candidate
    graph = _graph(key)
    load: dict[tuple[str, str], float] = {}

    def send(share: float, *stops: str) -> None:
        for a, b in pairwise(stops):
            for edge in _route(key, a, b):
                load[edge] = load.get(edge, 0.0) + share

    nics, gpus = _nics(candidate)[0], candidate.node.gpus
    topology = "pcie" if candidate.scaleup is None else candidate.scaleup.topology
    staged = topology in ("pcie", "pairs") and not candidate.node.pcie.peer_access
    groups = list(node_groups(candidate.node.gpus, members, stride))
    mesh = topology in ("mesh", "cube-mesh")
    for group in groups[:1] if alone else groups:
        for a, b, share in _between(graph, group) if mesh else ():
            # in a mesh the rings of a collective take different orders, so that every link carries its share
            send(share * ((members - 1) / members if leaves_node else 1), f"gpu{a}", f"gpu{b}")
        for channel in range(members):
            ring = group[channel:] + group[:channel]
            for a, b in () if mesh else pairwise(ring if leaves_node else [*ring, ring[0]]):
                via = ("memory",) if staged and f"gpu{b}" not in graph[f"gpu{a}"] else ()
                send(1 / members, f"gpu{a}", *via, f"gpu{b}")
            if leaves_node:
                send(1 / members, f"gpu{ring[-1]}", f"nic{ring[-1] * nics // gpus}", OUTSIDE)
                send(1 / members, OUTSIDE, f"nic{ring[0] * nics // gpus}", f"gpu{ring[0]}")
    outer = [e for e in load if OUTSIDE in e or any("nic" in end for end in e)]
    inner = [e for e in load if e not in outer]
    def rate(edges: list[tuple[str, str]]) -> float:
        return min((graph[a][b] / load[a, b] for a, b in edges), default=float("inf"))
    return rate(inner), rate(outer)


def _between(graph: Links, group: list[int]) -> Iterator[tuple[int, int, float]]:
    """Yield what each GPU of a mesh sends to each other one: by the links between them, or evenly without any."""
    for a in group:
        others = [b for b in group if b != a]
        rates = [graph[f"gpu{a}"].get(f"gpu{b}", 0.0) for b in others]
        for b, rate in zip(others, rates, strict=True):
            if rate or not any(rates):
                yield a, b, rate / sum(rates) if rate else 1 / len(others)


class _Key:
    """Hash a candidate by what its topology reads, so that equal ones share one graph."""

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        node, scaleup = candidate.node, candidate.scaleup
        self._id = (node.name, node.gpus, node.pcie.switches, node.pcie.peer_access, node.cpu.sockets,
                    node.cpu.memory_bandwidth, candidate.gpu.pcie_bandwidth, candidate.nics.count,
                    candidate.nics.bandwidth, candidate.fabric.topology, candidate.fabric.oversubscription,
                    scaleup and (scaleup.topology, scaleup.bandwidth))
        self._hash = hash(self._id)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._id == other._id


_KEYS: dict[int, tuple[Candidate, _Key]] = {}
"""The key of every candidate seen, by its identity; the candidate is kept, so that no other can take its place."""


def _key_of(candidate: Candidate) -> _Key:
    known = _KEYS.get(id(candidate))
    if known is None:
        if len(_KEYS) > MOST_KEYS:
            _KEYS.clear()
        known = _KEYS[id(candidate)] = (candidate, _Key(candidate))
    return known[1]


def group_links(candidate: Candidate, size: int, stride: int, one_node: bool = False) -> GroupLinks:
    """Return what a group of `size` ranks at `stride` gets; size 1 talks to nobody and gets infinite bandwidth.

    one_node: whether all ranks of the layout are on one node, of which they may leave some GPUs idle.
    """
    per_node = candidate.node.gpus
    if one_node:
        return _links(_key_of(candidate), size, size, min(stride, per_node))
    # a group that does not line up with the nodes is as slow as its part with the fewest neighbors
    aligned = gcd(size * stride, per_node)
    members = aligned // stride if aligned % stride == 0 else 1
    return _links(_key_of(candidate), size, members, min(stride, per_node))


@lru_cache(maxsize=65536)
def _links(key: _Key, size: int, members: int, stride: int) -> GroupLinks:
    if size == 1:
        return GroupLinks(1, float("inf"), float("inf"), False)
    inside, across = _loads(key, members, stride, members < size)
    return GroupLinks(members, inside if members > 1 else float("inf"), across, True)


def bandwidth_alone(candidate: Candidate, members: int) -> float:
    """Return the ring bandwidth of the first `members` GPUs of a node while the others are silent."""
    return _loads(_key_of(candidate), min(members, candidate.node.gpus), 1, False, True)[0]
