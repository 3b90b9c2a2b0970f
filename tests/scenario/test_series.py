"""A series of a provider's instances is hardware, and that provider's."""

from __future__ import annotations

import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.hardware_names import candidate_nodes, sold_as
from planner.scenario.instance_names import series

CATALOG = Catalog()


@pytest.mark.parametrize(("instance", "named"), [
    ("Standard_ND96isr_H100_v5", "nd_h100_v5"), ("Standard_NC24ads_A100_v4", "nc_a100_v4"),
    ("g6e.12xlarge", "g6e"), ("a3-highgpu-8g", "a3-highgpu"), ("gpu_8x_h100_sxm5", "gpu_8x_h100_sxm5")])
def test_a_series_is_the_name_without_the_size(instance: str, named: str) -> None:
    assert series(instance) == named


def test_a_series_is_all_its_sizes_and_its_sellers() -> None:
    assert {"l40s-1x", "l40s-4x"} <= set(candidate_nodes(["g6e"], CATALOG))
    assert {seller for seller, _ in sold_as("g6e", CATALOG)} == {"aws"}
    assert ("aws", "g6e.16xlarge") in sold_as("g6e", CATALOG)
    assert {seller for seller, _ in sold_as("ND_H100_v5", CATALOG)} == {"azure"}


def test_a_gpu_is_nobodys_own() -> None:
    # though Oblivus calls an instance "H100 SXM", Hyperstack one "B200 x8"
    for name in ("h100", "H100 SXM", "B200 x8"):
        assert sold_as(name, CATALOG) == set()


def tuned(candidates: str, **rent: object) -> planner.Plan:
    """Plan a full fine-tune whose optimizer states are more than the GPU and a small host hold."""
    return planner.plan({"workload": {"model": "qwen2.5-14b", "method": "full", "tokens": "50M"},
                         "hardware": {"candidates": [candidates]}, "sourcing": {"rent": rent}})


@pytest.mark.parametrize(("candidates", "rent"), [("g6e.xlarge", {}), ("l40s-1x", {"instances": ["G6E.XLARGE"]})])
def test_an_instance_is_answered_with_itself_alone(candidates: str, rent: dict[str, object]) -> None:
    assert " g6e.16xlarge " in str(tuned("l40s-1x", providers=["aws"]).assignments[0].offer)
    assert " g6e.xlarge " in str(tuned(candidates, **rent).assignments[0].offer)


def test_an_instance_that_nobody_has_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"instances.*g6e\.huge"):
        tuned("l40s-1x", instances=["g6e.huge"])
