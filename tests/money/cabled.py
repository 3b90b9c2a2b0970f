"""A network between nodes as a graph: the second way to count what `planner.money.fabric` has in closed form."""

from __future__ import annotations

from itertools import cycle, product
from math import ceil

import networkx as nx

from planner.money.fabric import TOLERANCE, FabricDesign


def network(planned: FabricDesign) -> nx.Graph[str]:
    """Return the design cabled one port after another: nodes and switches with `tier`, edges with `cables`.

    NICs go to the leaf of their rail; a leaf deals its uplinks to the spines of its pod in whole rounds, a spine as
    many as it has cables down, cables to the cores in turn.
    """
    graph: nx.Graph[str] = nx.Graph()
    leaves: dict[str, tuple[int, int]] = {}
    spines: dict[str, int] = {}
    for node in range(planned.nodes):
        graph.add_node(f"node{node}", tier="node")
        for nic in range(planned.nics):
            unit, plane = node // planned.unit_nodes, nic % planned.planes
            leaf = f"leaf{plane}.{unit}.{nic // planned.planes % planned.unit_leaves}"
            leaves[leaf] = plane, unit // planned.pod_units
            _cable(graph, f"node{node}", leaf, "leaf")
    for leaf, (plane, pod) in leaves.items() if planned.tiers > 1 else ():
        rounds = ceil(graph.degree(leaf, weight="cables") / planned.oversubscription / planned.plane_spines[pod]
                      - TOLERANCE)
        for _, spine in product(range(rounds), range(planned.plane_spines[pod])):
            spines[f"spine{plane}.{pod}.{spine}"] = plane
            _cable(graph, leaf, f"spine{plane}.{pod}.{spine}", "spine")
    turns = [cycle(range(planned.plane_cores)) for _ in range(planned.planes)]
    for spine_name, plane in spines.items() if planned.tiers > 2 else ():
        for _ in range(graph.degree(spine_name, weight="cables")):
            _cable(graph, spine_name, f"core{plane}.{next(turns[plane])}", "core")
    return graph


def _cable(graph: nx.Graph[str], lower: str, upper: str, tier: str) -> None:
    """Add one cable from `lower` to a switch of `tier`."""
    graph.add_node(upper, tier=tier)
    graph.add_edge(lower, upper, cables=graph.get_edge_data(lower, upper, {"cables": 0})["cables"] + 1)
