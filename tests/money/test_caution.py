"""Offers that the planner tells to ask about: prices far below the others, many nodes for a short time."""

from __future__ import annotations

from statistics import median

import planner
from planner.catalog.load import Catalog
from planner.money.caution import at_once, outlying, taken_back
from planner.units import DAY

CATALOG = Catalog()


def label(provider: str, node: str, term: str) -> tuple[str, float]:
    (prices,) = [one for one in CATALOG.price_lists if one.name == provider]
    offer = next(one for one in prices.offers if (one.node, one.term) == (node, term))
    return f"{provider} {offer.instance} ({offer.region}, {offer.term})", offer.price


def test_a_spot_price_far_below_the_on_demand_prices_is_pointed_out():
    name, price = label("aws", "dgx-b300", "spot")
    usual = [offer.price / CATALOG.node(offer.node).gpus for one in CATALOG.price_lists for offer in one.offers
             if offer.term == "on-demand" and CATALOG.node(offer.node).gpu == "b300"]
    assert price / 8 < median(usual) / 4
    (said,) = outlying([name, name], CATALOG)
    assert said.startswith(f"{price / 8:.2f} USD for an hour of b300 (aws, spot) is 16% of {median(usual):.2f} USD")
    assert "skypilot-catalog" in said
    assert not [*outlying([label("aws", "dgx-h100", "on-demand")[0]], CATALOG)]
    plan = planner.plan(model="gpt2", tokens="10G", on="b300", terms="spot", provider="aws", stack="fsdp2")
    assert said in plan.notes


def test_many_nodes_for_less_than_a_reservation_are_pointed_out():
    name, price = label("aws", "dgx-h100", "on-demand")
    (said,) = at_once([(name, 64, 3000.0)], CATALOG)
    assert "a Capacity Block of 24 h or more, 64 nodes each" in said
    assert f"{64 * price * 24:,.0f} USD" in said
    assert not [*at_once([(name, 7, 3000.0), (name, 64, DAY)], CATALOG)]
    (asks,) = at_once([(label("nebius", "dgx-h100", "on-demand")[0], 8, 3000.0)], CATALOG)
    assert "ask nebius for how long it lets them" in asks


def test_services_on_spot_nodes_are_said_to_be_interrupted():
    name, price = label("aws", "dgx-b300", "spot")
    usual = min(offer.price for one in CATALOG.price_lists for offer in one.offers
                if (offer.node, offer.term) == ("dgx-b300", "on-demand"))
    alone, two = taken_back([(name, 1), (name, 2), (label("aws", "dgx-h100", "on-demand")[0], 1)], CATALOG)
    # 3,300 node-hours, as that offer has no rate of its own
    assert "about every 138 d" in alone
    assert f"for {price:,.2f} USD/h more; on demand dgx-b300 costs from {usual:,.2f} USD/h" in alone
    assert "one of 2 about every 68.8 d" in two
    asked = {"model": "llama-3.1-8b", "rate": 1, "input": 500, "output": 100, "on": "l40s-1x", "terms": "spot"}
    made, spared = (planner.plan(**asked, spare_nodes=spares) for spares in (0, 1))
    assert [note for note in made.notes if "may take" in note]
    assert not [note for note in spared.notes if "may take" in note]
