"""The topology of a node as text names every GPU and NIC with its link."""

from __future__ import annotations

import pytest

from planner.render.topology import topology_lines
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
