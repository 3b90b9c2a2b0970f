"""Every row of a comparison is the plan of the same question on that hardware at that offer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import planner
from planner import plan
from planner.ask.compare import Compared, compare, comparison_of
from planner.ask.money_trace import trace
from planner.ask.tornado import tornado
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.errors import InputError
from planner.scenario.pool import sizes_apart
from planner.solver.quantize import cost_cents, price
from tests.asked import load_scenario

BUY = """
name: rent or buy
workload: {kind: training, model: llama-3.1-8b, method: pretrain, tokens: 1 T, stack: megatron-core}
hardware: {candidates: [dgx-h100]}
sourcing: {rent: {providers: [nebius]}, buy: {utilization: 0.8}}
limits: {deadline: 200 d}
objective: cost
"""
ASKED = {"workload.model": "llama-3.1-8b", "workload.tokens": "100 G", "hardware.candidates": "dgx-h100,dgx-a100",
         "workload.stack": "megatron-core", "limits.max_gpus": "64", "sourcing.rent.providers": "nebius,coreweave"}


def compared(**changes: str) -> list[Compared]:
    asked = ASKED | {key.replace("__", "."): value for key, value in changes.items()}
    catalog = Catalog()
    return compare(load_scenario(None, asked, catalog)[0], catalog)


@pytest.fixture(scope="module")
def rows() -> list[Compared]:
    return compared()


def test_the_best_row_is_the_plan(rows: list[Compared]) -> None:
    best = plan(model="llama-3.1-8b", tokens="100 G", on="dgx-h100,dgx-a100", max_gpus=64, stack="megatron-core",
                provider="nebius,coreweave").assignments[0]
    assert rows[0].assignment == best
    costs = [one.row.cost_usd for one in rows if one.row.cost_usd is not None]
    assert costs == sorted(costs)
    assert len(rows) > 2


def test_each_row_is_the_plan_with_that_offer_alone(rows: list[Compared]) -> None:
    for one in rows:
        assert one.offer is not None
        alone = plan(model="llama-3.1-8b", tokens="100 G", on=one.row.node, max_gpus=64, stack="megatron-core",
                     provider=one.offer.provider)
        if len({other.row.offer for other in rows if other.row.offer
                and other.row.offer.startswith(one.offer.provider) and other.row.node == one.row.node}) == 1:
            assert one.assignment == alone.assignments[0]


def test_money_follows_from_the_price_to_the_cent(rows: list[Compared]) -> None:
    for one in rows:
        a, offer = one.assignment, one.offer
        if a is None or offer is None or a.duration_days is None:
            continue
        cents = cost_cents(a.nodes + a.spare_nodes, price(offer.usd_per_node_hour), round(a.duration_days * 86400e6))
        assert one.row.cost_usd == cents / 100
        assert sum(one.row.cost_parts.values()) == one.row.cost_usd
        assert one.row.usd_per_million_tokens == pytest.approx(one.row.cost_usd / 100e9 * 1e6)
        lines = list(trace(one))
        assert f"{one.row.cost_usd:,.2f} USD" in lines[0]
        assert offer.source in lines[-1]


def test_bought_nodes_stand_beside_rented_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "buy.yaml"
    file.write_text(BUY, encoding="utf-8")
    assert main(["compare", str(file), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    bought = next(row for row in rows if row["kind"] == "buy")
    rent = min(row["cost_usd"] for row in rows if row["kind"] == "rent")
    assert sum(bought["cost_parts"].values()) == pytest.approx(bought["cost_usd"], abs=1e-6)
    assert set(bought["cost_parts"]) == {"depreciation", "financing", "electricity", "colocation", "maintenance",
                                         "staff"}
    assert all(row["break_even_months"] is None for row in rows if row["kind"] == "rent")
    assert 6 < bought["break_even_months"] < 48
    assert main(["compare", str(file), "--trace"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"rent: the cheapest rented plan above, job after job: {rent:,.2f} USD" in text
    assert "capital: " in text
    assert "H100 Freakonomics" in text


@pytest.mark.parametrize("kind", ["rent", "buy"])
def test_a_tornado_is_the_cost_at_changed_facts(kind: str) -> None:
    """At the ends of the MFU's interval a job takes so much longer, and costs so much more."""
    catalog = Catalog()
    scenario, _ = load_scenario(None, ASKED | {"hardware.candidates": "dgx-h100", "sourcing.buy.utilization": "0.5"},
                                catalog)
    one = next(one for one in compare(scenario, catalog) if one.row.kind == kind)
    assert one.assignment is not None
    assert one.row.cost_usd is not None
    swings = {swing.what: swing for swing in tornado(one)}
    low, high = (one.row.cost_usd * end / one.assignment.time.step_seconds
                 for end in one.assignment.time.interval90_seconds)
    assert (swings["MFU"].low, swings["MFU"].high) == (pytest.approx(low, rel=1e-6), pytest.approx(high, rel=1e-6))
    if kind == "rent":
        assert swings["price"].high == pytest.approx(1.2 * one.row.cost_usd, rel=1e-6)
    else:
        assert swings["utilization"].at_low == "60%"
        assert swings["utilization"].low < one.row.cost_usd < swings["utilization"].high


def test_old_prices_are_pointed_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "mine.yaml").write_text(
        "name: mine\nsource: the contract\nas_of: 2024-02\nkind: quoted\noffers:\n"
        "  - {instance: n, node: dgx-h100, region: r, term: on-demand, price: 9 USD/h}\n", encoding="utf-8")
    argv = ["--model", "llama-3.1-8b", "--tokens", "10G", "--max-gpus", "16", "--provider", "mine", "--stack", "fsdp2",
            "--catalogs", str(tmp_path)]
    for command in ("plan", "compare"):
        assert main([command, *argv, "-q", "--price-age", "90"]) == 0
        assert "mine n (r, on-demand, old price of 2024-02)" in capsys.readouterr().out
        assert main([command, *argv, "-q", "--price-age", "36500"]) == 0
        assert "old price" not in capsys.readouterr().out


def test_what_has_no_plan_says_why() -> None:
    rows = compared(limits__deadline="3 d", hardware__candidates="dgx-h100,a100-pcie-80gb-4x")
    without = {one.row.node: one.row for one in rows if one.assignment is None}
    assert without["a100-pcie-80gb-4x"].why_not == \
        "no offer with these terms, providers and regions, and none is owned or bought"
    assert all(row.status == "infeasible" and row.why_not for row in without.values())


def test_owned_nodes_cost_their_electricity_and_emit() -> None:
    catalog = Catalog()
    scenario, _ = load_scenario("8xh100-70b-lora", {}, catalog)
    row = comparison_of(compare(scenario, catalog)).rows[0]
    site = catalog.site("us-average")
    assert row.kind == "owned"
    assert list(row.cost_parts) == ["electricity"]
    assert row.energy_kwh is not None
    assert site.grid_intensity is not None
    assert row.co2_kg == pytest.approx(row.energy_kwh * site.pue * site.grid_intensity)
    assert row.cost_usd == pytest.approx(row.energy_kwh * site.pue * site.electricity, abs=0.011)


@pytest.mark.parametrize(("deadline", "code"), [("30 d", 0), ("1 min", 3)])
def test_the_command_ends_by_whether_any_candidate_does(deadline: str, code: int,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["compare", "--model", "llama-3.1-8b", "--tokens", "100G", "--on", "dgx-h100", "--max-gpus", "32",
            "--provider", "nebius", "--deadline", deadline, "--stack", "megatron-core", "--json"]
    assert main(argv) == code
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "planner.comparison/1"
    assert set(data["rows"][0]) == {
        "node", "gpu", "offer", "kind", "status", "gpus", "duration_days", "mfu", "cost_usd", "cost_parts",
        "usd_per_gpu_hour", "usd_per_million_tokens", "energy_kwh", "co2_kg", "break_even_months", "why_not",
        *([] if code else ["evidence"])}
    assert bool(data["rows"][0]["why_not"]) == bool(code)


def test_without_an_amount_of_work_nothing_is_compared() -> None:
    catalog = Catalog()
    with pytest.raises(InputError, match=r"compare needs workload\.tokens"):
        compare(load_scenario("fewest-gpus-70b", {}, catalog)[0], catalog)


def test_a_row_of_many_is_the_row_of_one_searched_alone() -> None:
    """By several stacks, on offers where some have no plan."""
    asked = {"workload.model": "llama-3.1-8b", "workload.method": "lora", "workload.tokens": "10 M"}
    catalog, nodes = Catalog(), ("rtx-4090-1x", "l4-1x", "dgx-h100", "v100-sxm2-16gb-1x")

    def rows(on: str) -> list[object]:
        scenario, _ = load_scenario(None, asked | {"hardware.candidates": on, "workload.precision": "bf16"}, catalog)
        return [row.model_dump(exclude={"why_not"}) for row in comparison_of(compare(scenario, catalog)).rows]

    together = rows(",".join(nodes))
    assert all(row in together for node in nodes for row in rows(node))
    assert len({row["status"] for row in together}) > 1  # type: ignore[index]


def test_a_comparison_that_is_interrupted_begins_no_other_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[object]()

    def interrupted(search: object, _: object) -> None:
        begun.append(search)
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.solver.search.frontier.GridSearch._run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compared(workload__stack="auto")
    assert len(begun) == 1


def test_clusters_of_different_size_are_set_side_by_side() -> None:
    asked = {"model": "llama-3.1-8b", "tokens": "10M", "stack": "megatron-core"}
    rows = planner.compare(**asked, on="8xl40s,16 h200").rows
    assert {(row.model, row.gpu) for row in rows} == {("8xl40s", "l40s"), ("16 h200", "h200-sxm")}
    alone = planner.compare(**asked, on="16 h200").rows[0]
    assert next(row.cost_usd for row in rows if row.gpu == "h200-sxm") == alone.cost_usd


def test_clusters_apart_are_those_of_different_size() -> None:
    catalog = Catalog()
    assert sizes_apart(("8 h200,16 h100",), catalog) == ["8 h200", "16 h100"]
    assert not any(sizes_apart(said, catalog) for said in (
        "16 h200,16 h100", "h100,h200", "any", None, "nonsense,8xh100"))


def test_what_nobody_rents_out_is_compared_as_ones_own() -> None:
    """A DGX Spark beside a 5090 was no candidate, though alone it is planned as the user's own."""
    rows = planner.compare(model="llama-3.1-8b", documents=1000, on="dgx-spark,rtx-5090-1x").rows
    kinds = {row.node: row.kind for row in rows if row.status == "optimal"}
    assert kinds == {"dgx-spark": "owned", "rtx-5090-1x": "rent"}
    rows = planner.compare(model="llama-3.1-8b", documents=1000, on="dgx-spark,rtx-5090-1x", provider="runpod").rows
    assert {row.node for row in rows if row.kind == "owned"} == set()
