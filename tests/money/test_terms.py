"""Terms of rent: what a commitment costs, what spot loses, and how both reach the plan."""

from __future__ import annotations

import heapq
import math
import random
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest

from planner import plan as ask
from planner.answer.assignment import TrainingAssignment
from planner.answer.schema import Plan
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.money.goodput import goodput, running, spare_nodes
from planner.scenario.load import load_scenario

FACTS = Catalog().reliability


@cache
def plan(term: str, objective: str = "cost") -> Plan:
    scenario, defaults = load_scenario(None, {
        "workload.model": "llama-3.1-8b", "workload.tokens": "20G", "workload.stack": "megatron-core",
        "hardware.candidates": "dgx-h100",
        "sourcing.rent.terms": term, "limits.gpus": "16", "objective": objective}, Catalog())
    return make_plan(scenario, Catalog(), defaults=defaults)


@pytest.mark.parametrize("term", ["on-demand", "spot", "reserved-1y"])
def test_cost_is_nodes_times_price_times_days(term: str) -> None:
    """The identity of the contract holds for every term, to the cent."""
    one = plan(term).assignments[0]
    assert one.usd_per_node_hour is not None
    assert one.duration_days is not None
    product = (one.nodes + one.spare_nodes) * one.usd_per_node_hour * 24 * one.duration_days
    assert one.cost_usd == pytest.approx(product, abs=0.011)


def test_a_commitment_is_paid_to_its_end() -> None:
    one = plan("reserved-1y").assignments[0]
    offer = next(o for prices in Catalog().price_lists for o in prices.offers
                 if one.offer == f"{prices.name} {o.instance} ({o.region}, {o.term})")
    assert one.cost_usd == pytest.approx((one.nodes + one.spare_nodes) * offer.price * 365 * 24, abs=0.011)
    assert isinstance(one, TrainingAssignment)
    assert one.commitment is not None
    assert (one.commitment.term, one.commitment.paid_days) == ("reserved-1y", 365)
    assert one.commitment.used_days == pytest.approx(one.duration_days)
    by_demand = plan("on-demand").assignments[0]
    assert isinstance(by_demand, TrainingAssignment)
    assert by_demand.commitment is None


def test_of_plans_that_cost_the_same_the_fastest_is_taken() -> None:
    """Under a commitment every layout on the same nodes costs the same."""
    kept, fastest = (plan("reserved-1y", objective).assignments[0] for objective in ("cost", "time"))
    assert kept.duration_days == fastest.duration_days


def test_spot_makes_less_progress_and_costs_less() -> None:
    spot, demand = plan("spot").assignments[0], plan("on-demand").assignments[0]
    assert spot.goodput is not None
    assert demand.goodput is not None
    assert spot.goodput < demand.goodput
    assert (spot.cost_usd or 0) < (demand.cost_usd or 0)


def test_goodput_by_hand() -> None:
    """64 nodes of 8: an interruption each 50,000 / 512 h by failures, 3,300 / 64 h by reclaims; Young's interval."""
    between = 1 / (512 / FACTS.gpu_hours_per_interruption + 64 / 3300) * 3600
    write = 1e12 / (FACTS.checkpoint_write_per_node * 64)
    interval = math.sqrt(2 * write * between)
    lost = write / interval + (interval / 2 + FACTS.restart) / between
    share = goodput(FACTS, np.array([512]), np.array([64]), 1e12, np.array([3300.0]))
    assert share[0] == pytest.approx(1 / (1 + lost))


def test_spares_cover_reclaimed_nodes_too() -> None:
    """Mean number away: under repair, and half an hour for each of the nodes taken back; Poisson at 95%."""
    away = 512 * FACTS.hardware_share * 24 / FACTS.gpu_hours_per_interruption + 64 / 20 * 0.5
    spares = int(spare_nodes(FACTS, np.array([512]), np.array([64]), np.array([20.0]))[0])

    def covered(count: int) -> float:
        return sum(math.exp(-away) * away**k / math.factorial(k) for k in range(count + 1))
    assert covered(spares) >= FACTS.spare_confidence > covered(spares - 1)


def enough(away: float, confidence: float) -> int:
    """Return the least count that covers a Poisson number at a confidence, term by term in decimals."""
    with localcontext(prec=60):
        mean = Decimal(away)
        term = covered = (-mean).exp()
        count = 0
        while covered < Decimal(confidence):
            count += 1
            term = term * mean / count
            covered += term
        return count


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999, 1 - 1e-9])
def test_spares_are_enough_and_none_too_many_however_many_they_are(confidence: float) -> None:
    nodes = np.array([1, 20, 100, 330, 365, 400, 1500, 3000, 20_000])
    facts = FACTS.model_copy(update={"gpu_hours_per_interruption": 1e30, "spare_confidence": confidence})
    away = nodes * facts.replace / 3600
    found = spare_nodes(facts, 8 * nodes, nodes, np.ones(len(nodes)))
    assert found.tolist() == [enough(one, confidence) for one in away.tolist()]
    assert found[-1] > 9000


def test_spares_at_a_confidence_next_to_one_come_to_an_end() -> None:
    facts = FACTS.model_copy(update={"spare_confidence": np.nextafter(1, 0)})
    assert 100 < spare_nodes(facts, np.array([8]), np.array([100]), np.array([1.0]))[0] < 800


def waiting(nodes: int, spares: int, mean: float, rng: random.Random) -> float:
    """Return the share of time in which a run waits for repairs, event by event: a day each, and no failures then."""
    now = waited = 0.0
    away: list[float] = []
    for _ in range(20_000):
        now += rng.expovariate(mean)
        away = [end for end in away if end > now]
        heapq.heappush(away, now + 1.0)
        if len(away) > spares:
            until = heapq.heappop(away)
            waited, now = waited + until - now, until
    return waited / now


@pytest.mark.parametrize("spares", [0, 1, 3])
def test_a_run_short_of_spares_waits_for_repairs(spares: int) -> None:
    """Erlang's loss formula against events; repairs last a day, of which 2,048 GPUs need 0.58 a day."""
    gpus, nodes, rng = np.array([2048]), np.array([256]), random.Random(spares)
    mean = 2048 * FACTS.hardware_share * 24 / FACTS.gpu_hours_per_interruption
    found = 1 - running(FACTS, gpus, nodes, np.array([np.inf]), np.array([spares]))[0]
    assert found == pytest.approx(waiting(256, spares, mean, rng), rel=0.1)
    assert spares or found == pytest.approx(mean / (1 + mean))


def test_owned_nodes_can_all_be_used_and_the_goodput_says_what_that_costs() -> None:
    asked = {"model": "llama-3.1-70b", "tokens": "1T", "objective": "time", "stack": "megatron-core", "gpus": 2048}
    short, enough = (ask(**asked, own=f"{nodes}xdgx-h100").assignments[0] for nodes in (256, 258))
    assert (short.nodes, short.spare_nodes, enough.spare_nodes) == (256, 0, 2)
    assert isinstance(short, TrainingAssignment)
    assert short.failures is not None
    assert short.failures.missing_spares == 2
    assert short.goodput == pytest.approx((enough.goodput or 0) * (1 - short.failures.repair_share))
    within = ask(**asked, on="dgx-h100", max_power=f"{256 * 10.2}kW").assignments[0]
    assert within.nodes == 256
    assert within.spare_nodes < 2


def test_a_provider_bills_a_least_time_that_the_offer_or_its_term_overrides() -> None:
    """Oracle's bare metal is billed for an hour at least; most others by the minute."""
    asked = {"model": "llama-3.1-8b", "method": "full", "tokens": "5M", "stack": "megatron-core", "on": "dgx-h100",
             "gpus": 8}
    dear, cheap = (ask(**asked, provider=provider).assignments[0] for provider in ("oci", "coreweave"))
    assert isinstance(dear, TrainingAssignment)
    assert isinstance(cheap, TrainingAssignment)
    assert dear.commitment is not None
    assert dear.commitment.paid_days * 24 == pytest.approx(1)
    assert dear.cost_usd == pytest.approx(80.0, abs=0.01)
    assert cheap.commitment is None
    offers = {offer.term: offer for prices in Catalog().price_lists for offer in prices.offers}
    assert (offers["on-demand"].commitment(60), offers["reserved-1y"].commitment(60)) == (60, 365 * 86400)
