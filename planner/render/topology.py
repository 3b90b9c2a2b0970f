"""The links of one node as text: what joins its GPUs, and how they hang on PCIe, sockets and NICs."""

from __future__ import annotations

from collections.abc import Iterable

from planner.layouts.candidate import Candidate
from planner.physics.topology import group_links, node_graph


def rate(capacity: float) -> str:
    """Write bytes per second and direction."""
    return f"{capacity / 1e9:.4g} GB/s"


def topology_lines(candidate: Candidate) -> list[str]:
    """Return the node as indented lines, top down, from the same graph that group bandwidths come from."""
    graph = node_graph(candidate)

    def below(place: str, kind: str) -> list[str]:
        return sorted((other for other in graph.successors(place) if other.startswith(kind)), key=number_of)

    lines = [_scaleup(candidate)]
    for socket in below("memory", "socket"):
        lines.append(f"{socket}: host memory at {rate(graph.edges['memory', socket]['capacity'])} each way, staged")
        for switch in below(socket, "pcie"):
            lines.append(f"  {switch}: uplink {rate(graph.edges[switch, socket]['capacity'])}")
            for kind in ("gpu", "nic"):
                places = below(switch, kind)
                if places:
                    speed = rate(graph.edges[switch, places[0]]["capacity"])
                    lines.append(f"    {_span(places)} at {speed}" + (" each" if len(places) > 1 else ""))
    nics = candidate.nics
    lines.append(f"network: {candidate.fabric.name} ({candidate.fabric.topology}), {nics.count} x "
                 f"{rate(nics.bandwidth)}, {rate(candidate.nic_bandwidth)} per GPU")
    return lines + [f"  {line}" for line in _groups(candidate)]


def _scaleup(candidate: Candidate) -> str:
    count, scaleup = candidate.node.gpus, candidate.scaleup
    if scaleup is None or scaleup.bandwidth is None:
        return f"{count} x {candidate.gpu.name}: no scale-up links"
    how = {"switch": "every pair through a switch", "mesh": "every pair directly",
           "cube-mesh": "by two links, one or none", "pairs": "bridges between neighbors, else through the PCIe tree",
           "pcie": "through the PCIe tree"}
    return (f"{count} x {candidate.gpu.name}: {scaleup.name}, {how.get(scaleup.topology, scaleup.topology)}, "
            f"{rate(scaleup.bandwidth)} per GPU and direction")


def _groups(candidate: Candidate) -> Iterable[str]:
    """Yield the bandwidth that groups get when all groups of the kind run at once."""
    per_node = candidate.node.gpus
    neighbors = [(2, 1, "a group of two neighbors")] if per_node > 2 else []
    for size, stride, what in (*neighbors, (per_node, 1, "a group of one node"),
                               (2 * per_node, 1, "a group over two nodes"), (2, per_node, "the same GPU of two nodes")):
        if size > 1:
            links = group_links(candidate, size, stride)
            yield f"{what}: {rate(min(links.inside, links.across))} per ring, before protocol"


def _span(places: list[str]) -> str:
    return places[0] if len(places) == 1 else f"{places[0]} to {places[-1]}"


def number_of(place: str) -> int:
    """Return the number in the name of a place; 0 where it has none."""
    return int("".join(c for c in place if c.isdigit()) or 0)
