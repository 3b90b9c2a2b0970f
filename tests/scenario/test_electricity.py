"""The price of electricity by flag, file and keyword: the same sums as by hand."""

from __future__ import annotations

import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.limits import Sourcing
from planner.scenario.sites import site_of

CATALOG = Catalog()


@pytest.mark.parametrize(("said", "usd"), [
    ("0.30", 0.3), ("30 cents/kWh", 0.3), ("$0.12", 0.12), ("120 USD/MWh", 0.12), (0.2, 0.2), ("0.2 USD per kWh", 0.2)])
def test_a_price_is_read_as_people_write_it(said: object, usd: float) -> None:
    site = site_of(Sourcing.model_validate({"electricity": said}), CATALOG)
    assert site.electricity == pytest.approx(usd)
    assert site.provenance("electricity").source == "as asked"
    assert site.pue == CATALOG.site("us-average").pue


def test_owned_nodes_cost_their_power_at_that_price() -> None:
    node, site = CATALOG.node("rtx-4090-4x"), CATALOG.site("us-average")
    plan = planner.plan(model="llama-3.1-8b", method="lora", tokens="10M", own="4x4090", electricity="0.30")
    assert plan.assignments[0].usd_per_node_hour == pytest.approx(node.power.load / 1000 * site.pue * 0.3, rel=1e-4)
    assert "electricity at 0.3 USD/kWh" in str(plan.assignments[0].offer)
    euros = planner.plan(model="llama-3.1-8b", method="lora", tokens="10M", own="4x4090", electricity="0.30 EUR/kWh")
    assert euros.assignments[0].usd_per_node_hour == pytest.approx(
        node.power.load / 1000 * site.pue * 0.3 * CATALOG.recipes.currencies["EUR"], rel=1e-4)


def test_bought_nodes_pay_it_too() -> None:
    def yearly(price: str) -> float:
        rows = planner.compare(on="64xh100", years=3, terms="buy", electricity=price).rows
        return next(row.cost_parts["electricity"] for row in rows if row.kind == "buy")
    assert yearly("0.3") == pytest.approx(3 * yearly("0.1"))


@pytest.mark.parametrize(("question", "why"), [
    ({"on": "h100", "tokens": "10M", "method": "lora"}, "what providers ask for includes electricity"),
    ({"on": "h100"}, "the question is of memory alone")])
def test_where_it_does_nothing_it_is_refused(question: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        planner.plan(model="llama-3.1-8b", electricity="0.3", **question)
    with pytest.raises(InputError, match=f"site: has no effect here: {why}"):
        planner.plan(model="llama-3.1-8b", site="own-hall", **question)
