"""Buying against a spreadsheet of its own, a published cluster, and what must hold for any number of nodes."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from functools import cache
from pathlib import Path

import pytest

from planner.answer.bought import bought_of
from planner.catalog.load import Catalog
from planner.errors import InputError, MissingFact
from planner.money.purchase import Estate
from planner.money.rent import RentalOffer, candidates_with_offers, with_storage
from planner.scenario.limits import Buy, Sourcing


@cache
def offer(node: str, site: str = "us-average", utilization: float = 0.8) -> RentalOffer:
    sourcing = Sourcing(rent=None, buy=Buy(utilization=utilization), site=site)
    return with_storage(candidates_with_offers([node], sourcing, Catalog())[1][0], 23 * 10**12, 0.4e12)


def estate(node: str = "dgx-h100", site: str = "us-average", utilization: float = 0.8) -> Estate:
    found = offer(node, site, utilization).estate
    assert found is not None
    return found


def test_an_hour_of_128_nodes_by_hand() -> None:
    """The sheet: counts of the SuperPOD design for 128 nodes, prices of the catalog, an annuity over four years."""
    nodes, life, rate, use = 128, 4, 0.10, 0.8
    hardware = nodes * 310_000 + (32 + 16) * 35_000 + nodes * 8 * 1_320 + nodes * 8 * 1_240
    racks = -(-nodes * 10_200 // 40_000) * 5_000
    storage = 120 * 250  # 23 T tokens of 4 bytes and ten checkpoints of 0.4 TB are 96 TB, which fill 80% of 120
    capital = hardware + racks + storage + 0.02 * hardware
    resale = hardware * 0.67**life
    annuity = (capital - resale / 1.1**life) * rate / (1 - 1.1**-life)
    load = nodes * 10.2 + 48 * 1.72
    idle = nodes * 2.5 + 48 * 1.72
    electricity = (use * load + (1 - use) * idle) * 1.4 * 8760 * 0.083
    running = electricity + load * 150 * 12 + 0.04 * hardware + 0.03 * hardware
    mine = estate()
    assert mine.capital(nodes).total == pytest.approx(capital, abs=0.01)
    assert sum(mine.yearly(nodes).values()) == pytest.approx(annuity + running, abs=0.01)
    assert mine.usd_per_node_hour(nodes) == pytest.approx((annuity + running) / (nodes * 8760 * use), abs=1e-6)
    shown = bought_of(mine, nodes, nodes * 8, 0.95)
    assert shown.capex_usd == pytest.approx(sum(line.count * line.unit_usd for line in shown.bill), abs=0.01)
    assert shown.opex_usd_per_month == pytest.approx(running / 12, abs=0.01)
    assert shown.usd_per_useful_gpu_hour == pytest.approx((annuity + running) / (nodes * 8 * 8760 * use * 0.95))
    assert mine.break_even_months(nodes, 6_000.0) == pytest.approx(
        capital / (6_000 * 8760 * use - running - (annuity - (capital - resale) / life)) * 12)


def test_the_published_cluster_of_1024_h100() -> None:
    """USD 49,248 per H100 in two layers (H100 Freakonomics, Eugene Cheah, 2024-08): nodes, switches, cables and 50,000
    of facility a node. In a hall of one's own all these are inside ours, with racks, storage and installation."""
    mine = estate(site="own-hall").capital(128)
    assert mine.total / 1024 == pytest.approx(49_248, rel=0.10)
    rented = estate().capital(128)  # space is rented: colocation runs by the month, and is no capital
    parts = {item.name.split(" ")[0]: item.usd for item in rented.items}
    theirs = rented.hardware + 128 * 50_000
    assert theirs / 1024 == pytest.approx(49_248, rel=0.01)
    assert set(parts) == {"dgx-h100", "leaf", "spine", "node-leaf", "leaf-spine", "rack", "TB", "installation"}


def test_a_network_costs_from_the_second_node_on() -> None:
    one, two = (estate().capital(nodes) for nodes in (1, 2))
    assert one.network is None
    assert two.network is not None
    assert two.hardware > 2 * one.hardware


def test_the_price_of_an_hour_falls_with_use() -> None:
    hours = [estate(utilization=use).usd_per_node_hour(16) for use in (0.25, 0.5, 1.0)]
    assert hours == sorted(hours, reverse=True)
    assert hours[0] < 4 * hours[2], "idle nodes draw less"


def test_micro_dollars_are_rounded_up() -> None:
    mine = estate()
    exact = Decimal(mine.usd_per_node_hour(24)) * 10**6
    assert mine(24) == int(exact.to_integral_value(ROUND_CEILING))


@pytest.mark.parametrize("rent", [150.0, 300.0, 600.0])
def test_buying_pays_at_the_utilization_where_its_hour_costs_the_rent(rent: float) -> None:
    least = estate().break_even_utilization(8, rent)
    assert least is not None
    assert estate(utilization=least).usd_per_node_hour(8) * 8 == pytest.approx(rent)


def test_where_renting_is_cheaper_in_every_hour_buying_never_pays() -> None:
    assert estate().break_even_utilization(8, 40.0) is None
    assert estate().break_even_months(8, 40.0) is None


def test_nodes_whose_network_has_no_price_are_bought_one_at_a_time() -> None:
    assert (offer("rtx-4090-4x").nodes, estate("rtx-4090-4x").parts) == (1, None)
    assert (offer("gb200-nvl72").nodes or 0) > 16, "72 adapters are 72 rails"
    assert estate("dgx-h100").most_nodes(16_384) == 8192
    assert estate("dgx-h100").most_nodes(100) == 100


def test_a_site_says_what_owning_takes() -> None:
    catalog = Catalog().changed({})
    bare = catalog.site("us-average").model_copy(update={"ownership": None})
    catalog._entries["sites", "us-average"] = bare
    with pytest.raises(MissingFact, match=r"us-average.*ownership"):
        candidates_with_offers(["dgx-h100"], Sourcing(rent=None, buy=Buy()), catalog)


def test_the_last_folder_has_the_price_of_a_node_and_two_prices_in_one_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "purchases"
    folder.mkdir()
    entry = "source: the quote\nas_of: 2026-11\nkind: quoted\nnode: hgx-h100\nprice: 250 kUSD\n"
    (folder / "mine.yaml").write_text(f"name: mine\n{entry}", encoding="utf-8")
    found = Catalog([tmp_path]).purchase("dgx-h100")
    assert found is not None
    assert (found.name, found.price) == ("mine", 250_000)
    (folder / "other.yaml").write_text(f"name: other\n{entry}", encoding="utf-8")
    with pytest.raises(InputError, match="dgx-h100 has two purchase prices: mine and other"):
        Catalog([tmp_path]).purchase("dgx-h100")
