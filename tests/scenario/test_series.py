"""A series of a provider's instances is hardware, and that provider's."""

from __future__ import annotations

import pytest

from planner.catalog.load import Catalog
from planner.scenario.hardware_names import candidate_nodes, series, sold_by

CATALOG = Catalog()


@pytest.mark.parametrize(("instance", "named"), [
    ("Standard_ND96isr_H100_v5", "nd_h100_v5"), ("Standard_NC24ads_A100_v4", "nc_a100_v4"),
    ("g6e.12xlarge", "g6e"), ("a3-highgpu-8g", "a3-highgpu"), ("gpu_8x_h100_sxm5", "gpu_8x_h100_sxm5")])
def test_a_series_is_the_name_without_the_size(instance: str, named: str) -> None:
    assert series(instance) == named


def test_a_series_is_all_its_sizes_and_its_sellers() -> None:
    assert {"l40s-1x", "l40s-4x"} <= set(candidate_nodes(["g6e"], CATALOG))
    assert sold_by("g6e", CATALOG) == {"aws"}
    assert sold_by("ND_H100_v5", CATALOG) == {"azure"}


def test_a_gpu_is_nobodys_own() -> None:
    assert sold_by("h100", CATALOG) == set()
