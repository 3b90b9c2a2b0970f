"""Group bandwidths from the node graph, and collectives against published nccl-tests."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from planner.physics.collectives import Ranks, neighbors_of, point_to_point, seconds
from planner.physics.topology import bandwidth_alone, group_links, node_graph, node_groups, node_links, route
from tests.search_cases import candidate, catalog

H100, LAW = candidate("dgx-h100"), catalog().collectives


def test_nvswitch_gives_every_group_its_full_link() -> None:
    for size, stride in ((2, 1), (4, 1), (8, 1), (2, 4), (4, 2)):
        assert group_links(H100, size, stride).inside == pytest.approx(450e9)


@pytest.mark.parametrize(("size", "stride", "members", "across"), [
    (16, 1, 8, 400e9), (16, 4, 2, 100e9), (16, 8, 1, 50e9), (64, 2, 4, 200e9)])
def test_a_group_uses_the_nics_of_its_members(size: int, stride: int, members: int, across: float) -> None:
    """All groups run at once, so a ring has the NICs of the members it has on a node, no more."""
    links = group_links(H100, size, stride)
    assert links.members == members
    assert links.across == pytest.approx(across)


def test_shared_nics_are_shared() -> None:
    """Four 100 Gbit/s adapters for eight A100 (p4d): 50 GB/s a node, 6.25 GB/s a GPU."""
    links = group_links(candidate("hgx-a100-40gb"), 4, 8)
    assert links.across == pytest.approx(4 * 12.5e9 / 8)


def test_a_box_without_peer_access_shares_its_tree() -> None:
    box = candidate("rtx-4090-8x")
    assert group_links(box, 8, 1).inside < 0.7 * box.gpu.pcie_bandwidth
    assert group_links(box, 2, 1).inside <= bandwidth_alone(box, 2)


def test_mesh_links_are_a_share_of_the_gpu() -> None:
    """MI300X: 64 GB/s between two GPUs, so two of eight get a seventh (measured: a sixth) of the mesh."""
    mesh = candidate("mi300x-platform")
    assert group_links(mesh, 2, 1).inside == pytest.approx(64e9, rel=0.01)
    assert group_links(mesh, 8, 1).inside == pytest.approx(448e9, rel=0.01)


def test_every_gpu_is_in_one_group_of_each_kind() -> None:
    for members, stride in ((1, 8), (2, 1), (2, 4), (4, 2), (8, 1)):
        ranks = sorted(i for group in node_groups(8, members, stride) for i in group)
        assert ranks == list(range(8))


def test_groups_that_straddle_nodes_count_as_crossing() -> None:
    links = group_links(H100, 12, 1)
    assert links.members == 4
    assert np.isfinite(links.across)


@pytest.mark.parametrize(("operation", "size", "measured_us"), [
    ("all_reduce", 134217728, 578.74), ("all_gather", 134217728, 392.82), ("reduce_scatter", 536870912, 1399.36),
    ("all_gather", 16777216, 68.86)])
def test_eight_h100_follow_the_published_curve(operation: str, size: int, measured_us: float) -> None:
    """aiconfigurator comm/nccl @095f58a, 8xH100-SXM, NCCL."""
    one = np.zeros(1, np.int64)
    took = seconds(LAW, (H100,), Ranks(one, one + 8), operation, one + 8, one + 1, np.array([float(size)]))[0]
    assert took * 1e6 == pytest.approx(measured_us, rel=0.03)


def test_a_group_of_one_takes_no_time_and_more_bytes_never_take_less() -> None:
    one = np.zeros(6, np.int64)
    sizes = np.logspace(3, 10, 6)
    assert not seconds(LAW, (H100,), Ranks(one, one + 1), "all_gather", one + 1, one + 1, sizes).any()
    for ranks, stride in ((2, 1), (8, 1), (32, 1), (16, 8)):
        took = seconds(LAW, (H100,), Ranks(one, one + ranks * stride), "all_gather", one + ranks, one + stride, sizes)
        assert np.all(np.diff(took) >= 0)


def test_sends_leave_the_node_at_its_size() -> None:
    one = np.zeros(2, np.int64)
    inside, outside = point_to_point(neighbors_of((H100,)), one, np.array([4, 8]), np.full(2, 1e9))
    assert outside > 5 * inside


def test_graph_states_capacities_both_ways() -> None:
    graph = node_graph(H100)
    assert graph.edges["gpu0", "nvswitch"]["capacity"] == 450e9
    assert graph.edges["nic0", "network"]["capacity"] == pytest.approx(50e9)
    assert all(graph.has_edge(b, a) for a, b in graph.edges)


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-1-v100", "a100-pcie-80gb-8x", "mi300x-platform"])
def test_routes_are_the_shortest_paths_of_the_graph(name: str) -> None:
    one = candidate(name)
    graph, links = node_graph(one), node_links(one)
    for a, b, capacity in graph.edges(data="capacity"):
        graph.edges[a, b]["cost"] = 1 / capacity
    for a in graph:
        for b, least in nx.single_source_dijkstra_path_length(graph, a, weight="cost").items():
            assert nx.path_weight(graph, list(route(links, a, b)), "cost") == pytest.approx(least)
    with pytest.raises(ValueError, match="no way from gpu0 to moon"):
        route(links, "gpu0", "moon")


def test_of_equal_ways_the_one_with_fewest_hops_is_taken() -> None:
    """On a DGX-1 a single link is as fast as two double ones in turn; rings of NCCL take the single one."""
    assert route(node_links(candidate("dgx-1-v100")), "gpu0", "gpu1") == ("gpu0", "gpu1")


def test_a_cube_mesh_is_of_eight_and_others_reach_it_over_pcie() -> None:
    mesh = candidate("dgx-1-v100")
    wide = replace(mesh, node=mesh.node.model_copy(update={"gpus": 16}))
    assert 0 < group_links(wide, 16, 1).inside < group_links(mesh, 8, 1).inside
