"""Serving comparisons: rows in order, parts that add up, and a reason where there is no plan."""

from __future__ import annotations

from typing import Any

import pytest

from planner.answer.comparison import Row
from planner.ask.compare import compare
from planner.cli.main import main
from planner.jobs.settle import settle
from tests.jobs.serving.cases import CATALOG, plan, resolved, solved, value

pytestmark = pytest.mark.usefixtures("fewer_requests")

WIDE: dict[str, Any] = {"rate": 3, "tpot": "100 ms",
                        "hardware": {"candidates": ["h100-sxm-1x", "l4-1x", "rtx-3090-1x", "p40-1x"]}}


def rows(**changes: Any) -> list[Row]:
    return [one.row for one in compare(resolved(**changes), CATALOG)]


def test_rows_are_sorted_add_up_and_the_first_is_the_plan() -> None:
    found = rows(**WIDE)
    costs = [row.cost_usd for row in found if row.cost_usd is not None]
    assert len(costs) > 3
    assert costs == sorted(costs)
    planned = plan(**WIDE).assignments[0]
    assert planned.offer in [row.offer for row in found]
    assert costs[0] == pytest.approx(planned.cost_usd)
    # the replay finds slack in the formula here
    assert costs[0] <= value(**WIDE)
    assert [row.status for row in found] == sorted((row.status for row in found), reverse=True)
    for row in found:
        if row.cost_usd is None:
            assert row.why_not
            continue
        assert row.serving is not None
        assert row.duration_days is not None
        assert row.gpus is not None
        assert row.energy_kwh is not None
        assert row.why_not is None
        assert sum(row.cost_parts.values()) == pytest.approx(row.cost_usd)
        seconds = row.duration_days * 86400
        per_million = row.serving.usd_per_million_input_tokens, row.serving.usd_per_million_output_tokens
        parts = (per_million[0] * 1000 + per_million[1] * 100) / 1e6
        assert parts * 3 * seconds == pytest.approx(row.cost_usd)
        assert row.usd_per_million_tokens == pytest.approx(row.cost_usd / (3 * 1100 * seconds) * 1e6)
        assert row.usd_per_gpu_hour == pytest.approx(row.cost_usd / row.gpus / row.duration_days / 24)
        assert row.serving.joules_per_token == pytest.approx(row.energy_kwh * 3.6e6 / (3 * 1100 * seconds))
        assert row.serving.output_tokens_per_second_per_gpu == pytest.approx(300 / row.gpus)


def test_a_candidate_without_a_plan_says_why() -> None:
    changes = {**WIDE, "model": "qwen2.5-32b", "rate": 0.5, "hardware": {"candidates": ["l4-1x", "h100-sxm-1x"]}}
    why = {row.node: row.why_not for row in rows(**changes)}
    assert "fits on no candidate" in (why["l4-1x"] or "")
    assert why["h100-sxm-1x"] is None
    limited = rows(rate=200, limits={"max_nodes": 1})
    assert all((row.why_not or "").startswith("max nodes is 1; within them") for row in limited)


def test_several_services_on_hardware_that_holds_one_of_them_say_which_not() -> None:
    one = {"kind": "serving", "rate": 1, "input": 500, "output": 50}
    found = rows(workloads=[{**one, "name": "small", "model": "llama-3.1-8b", "quantization": ["bf16"]},
                            {**one, "name": "large", "model": "llama-3.1-70b", "quantization": ["bf16"]}],
                 hardware={"candidates": ["h100-sxm-1x"]})
    assert all((row.why_not or "").startswith("large with a request of") for row in found)


def test_a_day_counts_its_own_tokens_and_reserved_nodes_are_paid_at_night() -> None:
    day = [0.2] * 12 + [1.0] * 12
    changes: dict[str, Any] = {"rate": 60, "hardware": {"candidates": ["a100-pcie-80gb-1x"]}, "sourcing": {
        "rent": {"terms": ["on-demand", "reserved-1y"], "providers": ["azure"]}}}
    flat, varying = ({row.offer: row for row in rows(**changes, **more)} for more in ({}, {"day": day}))
    for label, row in varying.items():
        assert row.cost_usd is not None
        assert row.usd_per_million_tokens is not None
        before = flat[label].cost_usd
        assert before is not None
        if "reserved" in (label or ""):
            assert row.cost_usd == pytest.approx(before)
        else:
            assert row.cost_usd < 0.8 * before
        assert row.usd_per_million_tokens == pytest.approx(row.cost_usd / (60 * 0.6 * 1100 * 30 * 86400) * 1e6)
    # rows are what replays hold, and so is the plan
    together = settle(solved(**changes, day=day)).solved.objective.value
    assert together is not None
    assert together <= min(row.cost_usd or 0 for row in varying.values()) * 1.001


def test_a_service_has_bought_nodes_all_day_unless_it_says_so_or_ends() -> None:
    def hourly(use: float | None, **load: object) -> tuple[float, float]:
        buy = {} if use is None else {"utilization": use}
        (row,) = rows(**load, hardware={"candidates": ["dgx-h100"]}, sourcing={"buy": buy, "rent": None})
        assert row.cost_usd is not None
        return row.cost_usd, row.cost_parts.get("depreciation", 0.0)

    (usual, spread), (told, same), (part, more) = (hourly(use, rate=2) for use in (None, 1.0, 0.8))
    assert (usual, spread) == (told, same)
    assert more == pytest.approx(spread / 0.8)
    assert part > usual
    batch = [hourly(use, documents=100_000, rate=None, ttft=None, tpot=None) for use in (None, 0.8)]
    assert batch[0] == batch[1]


def test_owned_and_bought_rows_are_named_so() -> None:
    found = rows(rate=2, hardware={"candidates": ["dgx-h100"]},
                 sourcing={"own": {"dgx-h100": 1}, "buy": {}, "rent": {"terms": ["on-demand"]}})
    kinds = {row.kind: row for row in found}
    assert set(kinds) == {"rent", "buy", "owned"}
    assert {name: list(row.cost_parts) for name, row in kinds.items() if name != "buy"} == {
        "rent": ["rent"], "owned": ["electricity"]}
    assert sum(kinds["buy"].cost_parts.values()) == pytest.approx(kinds["buy"].cost_usd)
    assert {"depreciation", "electricity"} <= set(kinds["buy"].cost_parts)
    assert found[0].kind == "owned"


def test_a_latency_that_only_a_replay_keeps_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--model", "qwen3-8b", "--rate", "8", "--input", "2000", "--output", "400",
                 "--ttft", "1.5s", "--quantization", "fp8", "--tpot", "60ms", "--on", "l4-1x,h100-sxm-1x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if "ms p95" in line]
    assert {line.split()[0] for line in rows if "p95*" in line} == {"l4-1x"}
    assert all(float(line.split()[7]) > 60 for line in rows if "p95*" in line)
    assert any(line.startswith("* over its target as computed") for line in lines)
