"""A price of the question's own, in place of what offers ask."""

from __future__ import annotations

import pytest

import planner
from planner.errors import InputError
from planner.units import parse
from planner.units.reading import MONEY_PER_GPU_HOUR

ASKED = {"model": "llama-3.1-8b", "tokens": "10G", "on": "dgx-h100", "max_nodes": 1}


def test_it_is_paid_for_every_gpu_and_hour() -> None:
    mine = planner.plan(**ASKED, price="2.20 USD/GPU-h").assignments[0]
    dearer = planner.plan(**ASKED, price=4.4).assignments[0]
    assert mine.offer == "yours dgx-h100 (any, on-demand)"
    assert mine.usd_per_node_hour == pytest.approx(8 * 2.2)
    assert mine.duration_days is not None
    assert mine.cost_usd == pytest.approx(mine.duration_days * 24 * 8 * 2.2, rel=1e-3)
    assert dearer.layout == mine.layout
    assert dearer.cost_usd == pytest.approx(2 * mine.cost_usd, rel=1e-3)


def test_a_service_a_provider_and_another_currency() -> None:
    served = planner.plan(model="llama-3.1-8b", rate=1, input=1000, output=200, on="l40s-1x", price="1 EUR/h",
                          provider="lambda").assignments[0]
    assert served.offer == "lambda l40s-1x (any, on-demand)"
    assert served.usd_per_node_hour == pytest.approx(1.16)


@pytest.mark.parametrize(("more", "error"), [
    ({"on": "h100,h200"}, "price is of one kind of GPU.*h100-sxm,h200-sxm"), ({"on": "any"}, "price is of one kind"),
    ({"region": "us-east-1"}, "with it, regions has no effect"), ({"provider": "aws,lambda"}, "with it, providers"),
    ({"terms": "on-demand,spot"}, "with it, terms"), ({"price": "2 USD/kWh"}, "unknown unit")])
def test_what_one_price_is_not_of_is_refused(more: dict[str, str], error: str) -> None:
    with pytest.raises(InputError, match=error):
        planner.plan(**{**ASKED, "price": "2.2", **more})


@pytest.mark.parametrize("text", [
    "2.20 USD", "$2.20", "2.20 USD/h", "$2.20/gpu/hr", "2.20 USD per GPU hour", "$2.20 per GPU-hour", "2.20/GPU-h",
    "2.20 USD/card/hour", "2.20 an hour"])
def test_it_is_read_as_people_write_it(text: str) -> None:
    assert parse(text, MONEY_PER_GPU_HOUR, "price", "2.20 USD/GPU-h") == pytest.approx(2.2)
