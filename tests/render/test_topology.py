"""The topology of a node as text names every GPU and NIC with its link."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from planner.physics.topology import node_graph
from planner.render.topology import topology_lines
from planner.render.topology_svg import topology_svg
from tests.search_cases import candidate


def test_dgx_h100() -> None:
    text = "\n".join(topology_lines(candidate("dgx-h100")))
    assert text.startswith("8 x h100-sxm: nvlink4-nvswitch, every pair through a switch, 450 GB/s per GPU and ")
    assert "gpu0 to gpu1 at 63 GB/s each" in text
    assert "nic0 to nic1 at 50 GB/s each" in text
    assert "network: ib-ndr (rail-optimized), 8 x 50 GB/s, 50 GB/s per GPU" in text
    assert "the same GPU of two nodes: 50 GB/s per ring" in text


@pytest.mark.parametrize("name", ["rtx-4090-8x", "l40s-4x", "mi300x-platform", "rtx-4090-1x", "gb200-nvl72"])
def test_every_gpu_is_drawn(name: str) -> None:
    node = candidate(name)
    lines = topology_lines(node)
    drawn = [line for line in lines if line.strip().startswith("gpu")]
    last = f"gpu{node.node.gpus - 1} "
    assert any(f" to {last}" in line or line.strip().startswith(last) for line in drawn)


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-1-v100", "l40s-4x", "h100-sxm-1x", "gb200-nvl72"])
def test_svg_has_every_place_and_every_link_once(name: str) -> None:
    graph, root = node_graph(candidate(name)), ET.fromstring(topology_svg(candidate(name)))
    drawn = [path.findtext("{*}title", "").split(":")[0] for path in root.findall("{*}path")]
    assert {frozenset(link.split(" to ")) for link in drawn} == {frozenset(edge) for edge in graph.edges}
    assert len(drawn) * 2 == graph.number_of_edges()
    boxes = [(float(box.get("x", "")), float(box.get("y", "")), float(box.get("width", "")))
             for box in root.findall("{*}rect")]
    assert len(boxes) == graph.number_of_nodes()
    in_order = sorted(boxes, key=lambda box: (box[1], box[0]))
    assert all(x + width <= right for (x, y, width), (right, below, _) in pairwise(in_order) if y == below)
    assert max(x + width for x, _, width in boxes) < float(root.get("viewBox", "").split()[2])
