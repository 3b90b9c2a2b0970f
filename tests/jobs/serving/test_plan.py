"""Serving plans: what a question changes in the answer, and what the answer must be in itself."""

from __future__ import annotations

import pytest

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan, to_json
from planner.ask.plan import make_plan
from planner.jobs.columns import Pick
from planner.jobs.serving.answers import loads
from planner.jobs.serving.assignment import MONTH_DAYS
from planner.jobs.serving.job import ServingJob
from tests.jobs.serving.cases import CATALOG, plan, resolved, solved, value

pytestmark = pytest.mark.usefixtures("fewer_requests")

PEAK = [0.2] * 8 + [1.0] * 4 + [0.5] * 12
BIG = {"model": "llama-3.3-70b", "rate": 4, "quantization": ["fp8"], "hardware": {"candidates": ["dgx-h100"]}}


def replicas(found: Plan) -> int:
    return sum(a.serving.replicas for a in found.assignments if a.serving)


def check(a: Assignment) -> None:
    """Check what the contract says of an assignment."""
    layout, memory, time, serving = a.layout, a.memory, a.time, a.serving
    assert serving is not None
    assert layout.tp * layout.pp * layout.cp * layout.dp == a.gpus
    assert layout.dp * layout.cp % layout.ep == 0
    assert layout.dp % serving.replicas == 0
    assert sum(memory.components.model_dump().values()) == memory.peak_bytes <= memory.usable_bytes
    assert sum(time.components.model_dump().values()) == pytest.approx(time.step_seconds)
    assert a.usd_per_node_hour is not None
    if a.cost_usd is not None:
        assert a.duration_days == MONTH_DAYS
        assert a.cost_usd == pytest.approx(a.nodes * a.usd_per_node_hour * 24 * MONTH_DAYS, abs=0.01)
    assert serving.ttft_seconds.p50 <= serving.ttft_seconds.p95
    assert serving.tpot_seconds.p50 <= serving.tpot_seconds.p95
    assert a.energy_kwh is not None
    assert a.energy_kwh > 0


def test_the_plan_holds_its_rate_and_level_and_is_proven() -> None:
    found = plan()
    best, = found.assignments
    check(best)
    assert best.serving is not None
    assert found.objective.value == found.objective.bound == pytest.approx(best.cost_usd)
    assert best.serving.requests_per_second == pytest.approx(50, rel=0.01)
    assert best.serving.ttft_seconds.p95 <= 2
    assert best.serving.tpot_seconds.p95 <= 0.08
    seen = best.serving.replayed
    assert seen is not None
    assert seen.rejected == 0
    assert seen.share_within_level > 0.85


def test_the_same_question_gives_the_same_bytes() -> None:
    assert to_json(make_plan(resolved(), CATALOG)) == to_json(plan())


def test_a_search_accounts_for_every_layout() -> None:
    search = plan(**BIG).search
    assert search.layouts == search.legal + sum(search.removed.get(rule, 0) for rule in (
        "tp_fills_nodes", "tp_divides_heads", "pp_has_layers", "whole_nodes", "fills_nodes", "ep_over_copies",
        "ep_divides_experts"))
    assert search.legal == search.fit + search.removed.get("memory", 0)
    assert search.fit == search.staged + search.removed.get("level", 0) + search.removed.get("dominated", 0)


def test_one_may_fail_and_the_rate_still_holds() -> None:
    plain, spared = plan(), plan(spare_replicas=1)
    assert replicas(spared) >= replicas(plain) + 1
    rates = sorted(p.column.rate for p in solved(spare_replicas=1).picks if isinstance(p, Pick)
                   for _ in range(p.replicas))
    assert sum(rates[:-1]) >= 50
    assert sum(rates[:-2]) < 50


def test_headroom_is_held_on_top_and_not_loaded() -> None:
    found = plan(headroom="80%")
    assert value(headroom="80%") == value(rate=90)
    served = [a.serving.requests_per_second for a in found.assignments if a.serving]
    assert sum(served) == pytest.approx(50, rel=0.01)


def test_a_higher_rate_or_a_tighter_level_never_costs_less() -> None:
    assert value(rate=10) <= value() <= value(rate=200)
    assert value(tpot="200 ms") <= value() <= value(tpot="12 ms")
    assert value(arrivals={"cv": 3}) >= value()
    assert value(prefix_hits="60%") <= value()
    assert replicas(plan(prefix_hits="60%")) <= replicas(plan())


def test_a_day_costs_less_than_its_peak_and_more_than_its_mean() -> None:
    """Hours are rented one by one."""
    mean = sum(PEAK) / 24
    assert value(rate=200, day=[1.0] * 24) == value(rate=200)
    # replicas are whole: a mean rate may need a share of one more
    assert 0.8 * value(rate=200 * mean) <= value(rate=200, day=PEAK) < value(rate=200)
    best, = plan(rate=200, day=PEAK).assignments
    assert best.cost_usd is best.duration_days is None
    assert best.energy_kwh is not None
    constant = plan(rate=200).assignments[0].energy_kwh
    assert constant is not None
    assert best.energy_kwh < 0.75 * constant
    assert best.serving is not None
    assert best.serving.requests_per_second == pytest.approx(200, rel=0.01)


def test_reserved_nodes_take_the_base_and_hours_on_demand_the_peak() -> None:
    both = {"rate": 200, "day": PEAK, "hardware": {"candidates": ["a100-pcie-80gb-1x"]},
            "sourcing": {"rent": {"terms": ["on-demand", "reserved-1y"], "providers": ["azure"]}}}
    found = plan(**both)
    alone = [value(**{**both, "sourcing": {"rent": {"terms": [term], "providers": ["azure"]}}})
             for term in ("on-demand", "reserved-1y")]
    assert found.objective.value is not None
    assert found.objective.value <= min(alone)
    assert found.objective.value < value(**{**both, "day": None})
    assert found.objective.value >= value(**{**both, "rate": 200 * sum(PEAK) / 24, "day": None}) * 0.9
    for a in found.assignments:
        check(a)


def test_pools_apart_are_used_where_they_must_be() -> None:
    only = plan(**BIG, disaggregated="only")
    roles = {a.serving.role: a for a in only.assignments if a.serving}
    assert set(roles) == {"prefill", "decode"}
    for a in only.assignments:
        check(a)
        assert a.serving is not None
        assert a.serving.requests_per_second == pytest.approx(4, rel=0.02)
        assert a.serving.replayed is not None
        assert a.serving.replayed.rejected == 0
    # prompts keep a GPU at work as answers do
    power = CATALOG.node("dgx-h100").power
    prefill = roles["prefill"]
    assert prefill.energy_kwh is not None
    assert prefill.energy_kwh > 1.05 * prefill.nodes * power.idle * 24 * MONTH_DAYS / 1000
    assert value(**BIG, disaggregated="allowed") <= min(value(**BIG), value(**BIG, disaggregated="only"))


def test_the_load_of_pools_is_that_of_the_weaker() -> None:
    found = solved(**BIG, disaggregated="only")
    picks = [pick for pick in found.picks if isinstance(pick, Pick)]
    job, = found.question.jobs
    assert isinstance(job, ServingJob)
    got = {role: sum(rate * p.replicas for p, rate in zip(picks, loads(job.services[0], picks), strict=True)
                     if p.column.role == role) for role in ("prefill", "decode")}
    assert got == {"prefill": pytest.approx(4), "decode": pytest.approx(4)}
    assert len(found.assignments()) == len(picks)


def test_owned_nodes_cost_their_electricity_and_rented_ones_top_them_up() -> None:
    own = {"own": {"h100-sxm-1x": 1}}
    assert value(rate=5, sourcing=own) < 0.1 * value(rate=5)
    assert plan(rate=200, sourcing=own).status == "infeasible"
    both = plan(rate=200, sourcing={**own, "rent": {"terms": ["on-demand"]}})
    labels = [a.offer or "" for a in both.assignments]
    assert len(labels) == 2
    assert sum("owned" in label for label in labels) == 1
    owned = next(a for a in both.assignments if "owned" in (a.offer or ""))
    assert owned.nodes == 1


def test_nodes_are_bought_at_the_price_of_their_number() -> None:
    found = plan(hardware={"candidates": ["dgx-h100"]}, sourcing={"buy": {}})
    best, = found.assignments
    check(best)
    assert best.purchase is not None
    assert found.objective.value == pytest.approx(best.cost_usd, rel=1e-6)


@pytest.mark.parametrize("objective", ["gpus", "energy"])
def test_other_objectives_are_the_least_of_their_kind(objective: str) -> None:
    wide = {"hardware": {"candidates": ["h100-sxm-1x", "l4-1x", "rtx-4090-1x"]}, "tpot": "100 ms"}
    best = plan(**wide, objective=objective)
    assert best.objective.value is not None
    cheapest = plan(**wide)
    gpus = [sum(a.gpus for a in found.assignments) for found in (best, cheapest)]
    if objective == "gpus":
        assert best.objective.value == gpus[0] <= gpus[1]
    else:
        energy = [sum(a.energy_kwh or 0 for a in found.assignments) for found in (best, cheapest)]
        assert energy[0] <= energy[1] * 1.01
        assert best.objective.value >= energy[0] * 0.99


def test_alternatives_are_other_kinds_best_first() -> None:
    found = plan(**{**BIG, "quantization": ["bf16", "fp8"]})
    taken = {(a.node, a.layout.precision) for a in found.assignments}
    others = [(a.node, a.layout.precision) for a in found.alternatives]
    assert others
    assert not taken & set(others)
    more = [0.0 if a.why == "same cost" else float(a.why.split("%")[0]) for a in found.alternatives]
    assert more == sorted(more)
