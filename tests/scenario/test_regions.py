"""Regions that are named: zones, parts of the world, and those that no offer of the catalog is in."""

from __future__ import annotations

import pytest

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.money.rent import candidates_with_offers
from planner.scenario.default import Defaults
from planner.scenario.limits import Rent, Sourcing
from planner.scenario.load import NO_FILE
from planner.scenario.regions import regions_asked

CATALOG = Catalog()


def taken(region: str, *providers: str) -> tuple[tuple[str, ...], list[str]]:
    defaults = Defaults()
    rent = Rent(regions=(region,), providers=providers)
    return regions_asked(rent, CATALOG.price_lists, NO_FILE, defaults), [default.value for default in defaults]


def offers(node: str, *regions: str) -> set[tuple[str, str, float]]:
    asked = Sourcing(rent=Rent(regions=regions, providers=("aws",)))
    return {(offer.instance, offer.region, offer.usd_per_node_hour)
            for offer in candidates_with_offers([node], asked, CATALOG)[1]}


def test_what_a_part_of_the_world_is_offered_for_is_the_price_of_its_regions() -> None:
    assert taken("us-west-2") == (("us-west-2",), [])
    everywhere = offers("dgx-h100", "us", "us-west-1")
    assert offers("dgx-h100", "us-west-2") == {offer for offer in everywhere if offer[1] == "us"}
    # a region with a price of its own has no other
    assert offers("dgx-h100", "us-west-1") == {offer for offer in everywhere if offer[1] == "us-west-1"}
    assert offers("dgx-h100", "eu-north-1") == {("p5.48xlarge", "eu-north-1", 58.8928)}


@pytest.mark.parametrize(("region", "providers", "near"), [
    ("us-east-1a", ("aws",), None), ("us-central1-b", (), None), ("eu-west-1", ("aws",), "eu-north-1, eu-west-2"),
    ("us-east-1", ("lambda",), "us"), ("us-east5", ("gcp",), "us-central1")])
def test_a_region_without_an_offer_is_one_nearby_which_is_said(
        region: str, providers: tuple[str, ...], near: str | None) -> None:
    regions, said = taken(region, *providers)
    assert said == ([f"{near}, as no offer of the catalog is in {region}"] if near else [])
    assert regions == tuple(near.split(", ")) if near else len(regions) == 1


def test_a_region_far_from_every_offer_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(InputError, match="no offer of the catalog is in westeurope or near it: eastus, us have some"):
        taken("westeurope", "azure")
    with pytest.raises(InputError, match="unknown region 'mars-1'"):
        taken("mars-1")
