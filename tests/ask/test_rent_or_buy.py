"""Hardware alone for some years: rent, reserve or buy, against the same sums by hand."""

from __future__ import annotations

import json

import pytest

import planner
from planner.answer.comparison import Row
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.errors import InputError
from planner.render.rent_or_buy import enough_use, pays_back

CATALOG = Catalog()
YEARS = 3
HOURS = YEARS * 8760
ROWS = planner.compare(on="64xh100", years=YEARS, utilization="80%").rows


def of(provider: str, term: str) -> Row:
    return next(row for row in ROWS if row.offer and row.offer.startswith(provider) and term in row.offer
                and row.cost_usd is not None)


def test_on_demand_is_paid_while_in_use_and_reserved_to_the_end():
    prices = {(offer.instance, offer.term): offer.price for prices in CATALOG.price_lists if prices.name == "gcp"
              for offer in prices.offers if offer.node == "dgx-h100"}
    ((_, hourly),) = [item for item in prices.items() if item[0][1] == "on-demand"]
    ((_, reserved),) = [item for item in prices.items() if item[0][1] == "reserved-3y"]
    assert of("gcp", "on-demand").cost_usd == pytest.approx(8 * hourly * HOURS * 0.8)
    assert of("gcp", "reserved-3y").cost_usd == pytest.approx(8 * reserved * HOURS)
    # three commitments of a year
    ((_, yearly),) = [item for item in prices.items() if item[0][1] == "reserved-1y"]
    assert of("gcp", "reserved-1y").cost_usd == pytest.approx(8 * yearly * HOURS)


def test_buying_is_an_annuity_on_what_is_not_sold_again():
    site, price = CATALOG.site("us-average"), CATALOG.purchase("dgx-h100")
    assert site.ownership is not None
    assert price is not None
    (bought,) = [row for row in ROWS if row.kind == "buy"]
    parts, terms = bought.cost_parts, site.ownership
    capital = parts["maintenance"] / YEARS / terms.maintenance  # nodes and network
    assert capital > 8 * price.price
    left = capital * (1 - terms.value_loss) ** YEARS
    rate = terms.financing
    lost = parts["depreciation"] + left
    annuity = (lost - left / (1 + rate) ** YEARS) * rate / (1 - (1 + rate) ** -YEARS)
    assert parts["depreciation"] + parts["financing"] == pytest.approx(annuity * YEARS)
    assert bought.cost_usd == pytest.approx(sum(parts.values()))
    assert bought.usd_per_gpu_hour == pytest.approx(bought.cost_usd / (64 * HOURS * 0.8))


def test_at_the_crossing_both_cost_the_same():
    share = of("nebius", "on-demand").break_even_utilization
    assert share is not None
    there = planner.compare(on="64xh100", years=YEARS, utilization=share).rows
    costs = [row.cost_usd for row in there if row.kind == "buy" or (row.offer or "").startswith("nebius")]
    assert costs[0] == pytest.approx(costs[1], rel=1e-6)
    assert ROWS[0].kind == "buy"
    assert planner.compare(on="64xh100", years=YEARS, utilization=share / 2).rows[0].kind == "rent"


def test_the_verdict_is_said_by_plan_and_compare_alike(capsys: pytest.CaptureFixture[str]):
    assert main(["compare", "--on", "64xh100", "--years", "3 years"]) == 0
    said = capsys.readouterr().out
    assert main(["plan", "--on", "64", "h100", "--years", "3"]) == 0
    assert capsys.readouterr().out == said
    assert said.startswith("Buy: 64 GPUs (8 x dgx-h100) for 3 years, in use 80% of the time")
    assert max(map(len, said.splitlines())) <= 80
    assert main(["compare", "--on", "64xh100", "--rent-or-buy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "planner.comparison/1"


def test_what_pays_by_its_resale_alone_does_not_say_never(capsys: pytest.CaptureFixture[str]):
    bought = planner.compare(on="8xh100", years=YEARS).rows[0]
    assert (bought.kind, bought.break_even_months) == ("buy", None)
    assert main(["compare", "--on", "8xh100", "--years", f"{YEARS}"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Buy: ")
    assert next(line for line in said.splitlines() if " bought  " in line).endswith("when resold")
    assert [pays_back(months, above, 0.8) for months, above in ((7.04, 0.2), (None, 0.81), (None, None))] == [
        "7.0 months", "never", "never"]


def test_years_of_a_job_are_those_that_bought_nodes_are_kept(capsys: pytest.CaptureFixture[str]):
    asked = ["compare", "--model", "gpt2", "--tokens", "100G", "--on", "dgx-h100", "--stack", "fsdp2", "--gpus", "8"]
    assert main([*asked, "--years", "2", "-q"]) == 0
    assert "kept 2 years" in capsys.readouterr().out


def test_a_price_that_is_paid_stands_beside_buying():
    """It was refused for terms that nobody gave."""
    rows = planner.compare(on="32xh100", years=0.5, price=2.79).rows
    rented = next(row for row in rows if row.kind == "rent" and row.node == "dgx-h100")
    assert rented.cost_usd == pytest.approx(32 * 2.79 * 8760 * 0.5 * 0.8, rel=1e-6)


def test_what_is_neither_rented_nor_bought_is_refused():
    with pytest.raises(InputError, match="nothing to rent or buy"):
        planner.compare(on="rtx-3060-1x", years=2)


@pytest.mark.parametrize(("share", "written"), [(0.48374, "48.4%"), (0.484, "48.4%"), (0.5, "50%"), (0.35201, "35.3%")])
def test_buying_costs_less_at_the_share_that_is_written(share: float, written: str) -> None:
    assert enough_use(share) == written
