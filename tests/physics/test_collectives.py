"""Collectives over several nodes against published runs, and which algorithm wins where."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.hardware import Nics
from planner.layouts.candidate import Candidate
from planner.physics.collectives import Ranks, all_to_all, node_members, seconds, single
from planner.physics.topology import group_links
from tests.search_cases import candidate, catalog


def on(node: str, fabric: str, count: int, gbit: int) -> Candidate:
    entry = catalog().node(node)
    assert entry.scaleup is not None
    return Candidate(entry, catalog().gpu(entry.gpu), catalog().fabric(entry.scaleup), catalog().fabric(fabric),
                     Nics.model_validate({"count": count, "bandwidth": f"{gbit} Gbit/s"}))


def took(hardware: Candidate, operation: str, ranks: int, size: float, stride: int = 1) -> float:
    one = np.ones(1, np.int64)
    placed = Ranks(0 * one, ranks * stride * one)
    return float(seconds(catalog().collectives, (hardware,), placed, operation, ranks * one, stride * one,
                         np.array([size]))[0])


@pytest.mark.parametrize(("hardware", "ranks", "size", "measured", "tolerance"), [
    (("dgx-h100", "efa-v2", 32, 100), 16, 2**30, 4607.6e-6, 0.12),
    (("dgx-a100", "efa-v1", 4, 100), 16, 2**31, 51406e-6, 0.30),
    (("dgx-h200", "efa-v3", 8, 400), 32, 2**32, 22807e-6, 0.12),
    (("dgx-h200", "efa-v3", 8, 400), 128, 2**34, 92173e-6, 0.10),
    (("dgx-b200", "efa-v4", 8, 400), 32, 2**34, 87181e-6, 0.12),
    (("dgx-a100", "omni-path-100", 4, 100), 32, 4e9, 1.5312, 0.30),
    (("a100-sxm-40gb-4x", "slingshot-11", 2, 200), 32, 2**30, 57659e-6, 0.05),
    (("a100-sxm-40gb-4x", "slingshot-11-sockets", 2, 200), 512, 2**30, 0.4619, 0.10)])
def test_all_reduce_over_nodes_takes_what_was_published(hardware: tuple[str, str, int, int], ranks: int, size: float,
                                                        measured: float, tolerance: float) -> None:
    """awslabs/awsome-distributed-training @0edaf15 and stas00/ml-engineering @744d01e: AWS; bigscience: Jean Zay;
    argonne-lcf/alcf-nccl-tests @385be33: Polaris with NCCL's libfabric plugin, and without it.
    """
    assert took(on(*hardware), "all_reduce", ranks, size) == pytest.approx(measured, rel=tolerance)


def test_two_nodes_reduce_by_a_tree_and_many_by_a_ring() -> None:
    """Two p4de reach 78 GB/s of bus bandwidth over 50 GB/s of adapters, which no ring can."""
    pair, many = (2 * (n - 1) / n * 2**31 / took(on("dgx-a100", "efa-v1", 4, 100), "all_reduce", n, 2**31) / 1e9
                  for n in (16, 512))
    assert pair > 50
    assert many < 50


def test_an_all_to_all_leaves_by_every_ranks_own_adapter() -> None:
    """64 ranks on eight nodes: 56 of 64 parts of 1 GB cross at 50 GB/s x 0.9, eight times a ring's share."""
    hardware = candidate("dgx-h100")
    expected = 1e9 * 56 / 64 / (hardware.nic_bandwidth * hardware.fabric.efficiency)
    assert took(hardware, "alltoall", 64, 1e9) == pytest.approx(expected, rel=0.01)
    assert took(hardware, "alltoall", 64, 1e9) > 4 * took(hardware, "all_gather", 64, 1e9)
    assert took(hardware, "alltoall", 8, 1e9) < expected / 4


def test_an_all_to_all_takes_its_slower_part() -> None:
    hardware, one = candidate("dgx-h100"), np.ones(3, np.int64)
    inside, across = np.array([1e9, 0.0, 1e9]), np.array([0.0, 1e9, 1e9])
    alone, out, both = all_to_all((hardware,), Ranks(0 * one, 16 * one), 16 * one, one, inside, across)
    assert both == pytest.approx(max(alone, out))
    size, stride = np.array([4, 16, 16]), np.array([1, 1, 4])
    assert node_members((hardware,), Ranks(0 * one, size * stride), size, stride).tolist() == [4, 8, 2]


@pytest.mark.parametrize(("size", "stride", "bandwidth"), [(2, 1, 25), (4, 1, 100), (8, 1, 150), (2, 4, 25)])
def test_groups_of_a_cube_mesh_have_the_links_between_them(size: int, stride: int, bandwidth: float) -> None:
    """GPUs 0 and 1 of a DGX-1 share one link of 25 GB/s, 0 to 3 four each; 2 and 6, 3 and 7 have one."""
    assert group_links(candidate("dgx-1-v100"), size, stride).inside == pytest.approx(bandwidth * 1e9)


def test_bridges_join_pairs_and_pcie_the_rest() -> None:
    box = candidate("a100-pcie-80gb-8x-nvlink")
    assert group_links(box, 2, 1).inside == pytest.approx(300e9)
    assert group_links(box, 4, 1).inside == group_links(candidate("a100-pcie-80gb-8x"), 4, 1).inside
    assert took(box, "all_reduce", 2, 1e9) < took(box, "all_reduce", 4, 1e9) / 4


def test_six_of_eight_gpus_stay_on_their_node() -> None:
    """Groups that do not tile a node leave it only where their layout does: 6 of 8 GPUs stay, 18 over nodes do not."""
    hardware, one = candidate("dgx-h100"), np.ones(3, np.int64)
    placed = Ranks(0 * one, np.array([6, 6, 18]))
    assert node_members((hardware,), placed, np.array([3, 6, 6]), one).tolist() == [3, 6, 2]
    six, eight, straddling = (single(catalog().collectives, hardware, "all_gather", size, gpus, 1e9)
                              for size, gpus in ((6, 6), (8, 8), (6, 18)))
    assert six == pytest.approx(eight * (5 / 6) / (7 / 8))
    assert straddling > 2 * six
