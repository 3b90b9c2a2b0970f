"""Hardware of one's own: stated in a word, and taken for granted where nobody offers it."""

from __future__ import annotations

from typing import Any

import pytest

from planner import compare, plan
from planner.catalog.load import Catalog
from planner.errors import InputError
from tests.asked import load_scenario

TUNE = {"model": "llama-3.1-8b", "method": "qlora", "tokens": "5M", "global_batch": 16, "seq_len": 1024}


@pytest.mark.parametrize(("own", "nodes"), [
    ("4x4090", {"rtx-4090-4x": 1}), ("32xdgx-h100, 8xdgx-a100", {"dgx-h100": 32, "dgx-a100": 8}),
    ("dgx-h100", {"dgx-h100": 1}), ("8xh100", {"dgx-h100": 1}), ("64 x h100", {"dgx-h100": 8}),
    ("6xrtx-4090", {"rtx-4090-6x": 1}), ("12xrtx-4090", {"rtx-4090-4x": 3}),
    ({"dgx-h100": 3}, {"dgx-h100": 3}), (["4x4090", "8xa100"], {
        "rtx-4090-4x": 1, "dgx-a100": 1}), ("3xrtx-4090-4x,rtx-4090-4x", {"rtx-4090-4x": 4}),
    ({"rtx-4090": 8}, {"rtx-4090-8x": 1}), ("2x8xh100", {"dgx-h100": 2}),
    ("64 a100", {"dgx-a100": 8}), ("sixteen h100", {"dgx-h100": 2}), ("2 dgx h100", {"dgx-h100": 2}),
    ("two H100 servers", {"dgx-h100": 2})])
def test_what_is_owned_is_nodes_or_gpus_with_their_number(own: object, nodes: dict[str, int]) -> None:
    asked = {"workload": {"model": "gpt2", "tokens": "1G"}, "sourcing": {"own": own}}
    scenario, _ = load_scenario(asked, {}, Catalog())
    assert scenario.sourcing.own == nodes
    assert set(scenario.hardware.candidates) == set(nodes)
    assert scenario.sourcing.rent is None


@pytest.mark.parametrize(("own", "message"), [
    ("", "expected nodes"), ("4x", "unknown node"), ("0x4090", "expected nodes"), ("73xgb200", "no such number"),
    ("4xfoo", "unknown node or GPU 'foo'"), ("4x4090,,", "expected nodes"), ([4], "own"), ({"dgx-h100": 0}, "own")])
def test_what_cannot_be_owned_is_refused(own: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_scenario({"workload": {"model": "gpt2", "tokens": "1G"}, "sourcing": {"own": own}}, {}, Catalog())


@pytest.mark.parametrize("own", [
    [{"node": "dgx-h100", "count": 4}], {"name": "dgx-h100", "nodes": 4}, [{"type": "dgx-h100", "number": 4}],
    {"4": "dgx-h100"}, {"dgx-h100": 4}, "4xdgx-h100"])
def test_what_is_owned_is_a_block_too(own: object) -> None:
    scenario, _ = load_scenario({"model": "gpt2", "tokens": "1G", "own": own}, {}, Catalog())
    assert scenario.sourcing.own == {"dgx-h100": 4}


def test_who_names_other_nodes_beside_their_own_would_rent_them() -> None:
    scenario, defaults = load_scenario(None, {"workload.model": "gpt2", "workload.tokens": "1G",
                                              "sourcing.own": "4x4090", "hardware.candidates": "dgx-h100"}, Catalog())
    assert scenario.hardware.candidates == ("dgx-h100", "rtx-4090-4x")
    assert scenario.sourcing.rent is not None
    assert any(one.name == "rent" for one in defaults)


def test_so_many_gpus_that_no_node_type_has_are_a_part_of_one() -> None:
    """Nobody sells two or three of them: the cheapest machine that has so many is paid for whole, which is said."""
    tune: dict[str, Any] = {**TUNE, "global_batch": 24}
    for gpus, on in ((2, "a100-80gb"), (3, "h100")):
        answer = plan(**tune, on=on, gpus=gpus)
        (best,) = answer.assignments
        assert (best.gpus, best.sourcing, best.nodes) == (gpus, "rent", 1)
        assert any("rented and paid for whole" in note for note in answer.notes)
        assert best.cost_usd is not None
        assert best.offer is not None
        prices = [offer.price for prices in Catalog().price_lists for offer in prices.offers
                  if best.offer.startswith(f"{prices.name} {offer.instance} (") and offer.term == "on-demand"]
        assert best.usd_per_node_hour is not None
        assert best.usd_per_node_hour >= 0.999 * min(prices)
    (own,) = plan(**tune, own="3xh100").assignments
    assert (own.gpus, own.sourcing) == (3, "owned")


@pytest.mark.parametrize("on", ["rtx-3080-1x", "2x4090", "rtx-a5000-4x", "mi300x-1x"])
def test_nodes_that_nobody_offers_are_the_users_own(on: str) -> None:
    answer = plan(**TUNE, on=on)
    (best,) = answer.assignments
    assert (best.nodes, best.sourcing) == (1, "owned")
    assert best.cost_usd
    assert best.energy_kwh
    assert any("taken as your own" in note for note in answer.notes)


def test_a_gpu_that_nobody_offers_is_the_smallest_machine_of_ones_own_that_does_it() -> None:
    (best,) = plan(**TUNE, on="3080").assignments
    assert (best.node, best.nodes, best.sourcing) == ("rtx-3080-1x", 1, "owned")


def test_one_machine_of_ones_own_may_be_too_few() -> None:
    few = plan(**TUNE, on="rtx-3080-1x").assignments[0]
    assert few.duration_days is not None
    answer = plan(**TUNE, on="rtx-3080-1x", deadline=f"{few.duration_days * 24 * 60 * 0.7} min")
    assert answer.status == "optimal"
    assert answer.assignments[0].nodes > 1
    assert any(note.startswith(f"one rtx-3080-1x does not do it: {answer.assignments[0].nodes} of your own are counted")
               for note in answer.notes)


def test_terms_and_providers_that_are_asked_for_are_not_dropped() -> None:
    with pytest.raises(InputError, match="no candidate has a usable offer"):
        plan(**TUNE, on="rtx-3080-1x", terms="spot")
    answer = plan(**TUNE, on="rtx-3080-1x,rtx-4090-1x")
    assert answer.assignments[0].node == "rtx-4090-1x"
    assert answer.search.removed["no_offer"] == 1
    assert any("rtx-3080-1x is left out" in note for note in answer.notes)


def test_compare_knows_machines_of_ones_own() -> None:
    assert {(row.node, row.kind) for row in compare(**TUNE, on="rtx-3080-1x,rtx-3080-2x").rows} == {
        ("rtx-3080-1x", "owned"), ("rtx-3080-2x", "owned")}
