"""Terms of rent: what a commitment costs, what spot loses, and how both reach the plan."""

from __future__ import annotations

import heapq
import math
import random
from decimal import Decimal, localcontext
from functools import cache
from io import StringIO
from itertools import islice

import numpy as np
import pytest
from rich.console import Console

from planner import plan as ask
from planner.answer.assignment import TrainingAssignment
from planner.answer.schema import Plan
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.money.goodput import goodput, interruptions, running, spare_nodes
from planner.money.rent import RentalOffer, offer_named
from planner.render.page import Page
from planner.render.summary import show_summary
from tests.asked import load_scenario

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


def erlang(load: float, most: int) -> list[float]:
    """Return the share that Erlang's loss formula loses with one server, two, up to `most`: as a ratio of sums."""
    lost = []
    with localcontext(prec=60):
        term = total = Decimal(1)
        for servers in range(1, most + 1):
            term *= Decimal(load) / servers
            total += term
            lost.append(float(term / total))
    return lost


@pytest.mark.parametrize("reclaims", [np.inf, 20.0, 1.0])
@pytest.mark.parametrize("nodes", [1, 11, 23, 64, 256, 2048])
def test_spares_are_those_with_the_fewest_node_hours(nodes: int, reclaims: float) -> None:
    """Mean number away: under repair, and half an hour for each of the nodes taken back; every number of spares."""
    away = 8 * nodes * FACTS.hardware_share * 24 / FACTS.gpu_hours_per_interruption + nodes / reclaims * 0.5
    lost = erlang(away, int(2 * away) + 9)
    hours = [(nodes + spares) / (1 - share) for spares, share in enumerate(lost)]
    named = np.array([8 * nodes]), np.array([nodes]), np.array([reclaims])
    assert spare_nodes(FACTS, *named) == [int(np.argmin(hours))]
    shares = [float(share[0]) for share in islice(running(FACTS, *named), 9)]
    assert shares == pytest.approx([1 - share for share in lost[:9]])


def test_the_spares_of_rows_do_not_depend_on_each_other() -> None:
    nodes = np.array([1, 11, 23, 64, 256, 2048, 20_000])
    together = spare_nodes(FACTS, 8 * nodes, nodes, np.full(7, 20.0)).tolist()
    assert together == [int(spare_nodes(FACTS, 8 * one, one, np.array([20.0]))[0]) for one in nodes[:, None]]
    assert together[-1] > 400


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
    named, rng = (np.array([2048]), np.array([256]), np.array([np.inf])), random.Random(spares)
    mean = 2048 * FACTS.hardware_share * 24 / FACTS.gpu_hours_per_interruption
    found = 1 - float(next(islice(running(FACTS, *named), spares, None))[0])
    assert found == pytest.approx(waiting(256, spares, mean, rng), rel=0.1)
    assert spares or found == pytest.approx(mean / (1 + mean))


def productive(nodes: int, spares: int, checkpoint_bytes: float, rng: random.Random) -> float:
    """Return the share of time in which a run makes progress that is kept, failure by failure and save by save."""
    hour, every, write = 3600.0, *(float(x[0]) for x in interruptions(
        FACTS, np.array([8 * nodes]), np.array([nodes]), checkpoint_bytes, np.array([np.inf]))[1:])
    now = kept = 0.0
    away: list[float] = []
    for _ in range(10_000):
        left = rng.expovariate(8 * nodes / FACTS.gpu_hours_per_interruption / hour)
        # work, save, work, save: what is done since the last save is lost
        now, kept = now + left, kept + max(0.0, left - FACTS.restart) // (every + write) * every
        if rng.random() < FACTS.hardware_share:
            away = [end for end in away if end > now]
            heapq.heappush(away, now + FACTS.repair)
            if len(away) > spares:
                now = heapq.heappop(away)
    return kept / now


@pytest.mark.parametrize(("nodes", "spares"), [(22, 0), (256, 0), (256, 2), (256, 3), (1024, 4)])
def test_goodput_is_what_a_replay_makes_of_failures(nodes: int, spares: int) -> None:
    """Checkpoints, lost work, restarts and waits together; without the waits it would be up to 37% off."""
    asked = {"model": "llama-3.1-70b", "tokens": "1T", "objective": "time", "stack": "megatron-core",
             "gpus": 8 * nodes, "global_batch": 1024 if nodes > 22 else 1056}
    one = ask(**asked, own=f"{nodes + spares}xdgx-h100").assignments[0]
    assert isinstance(one, TrainingAssignment)
    assert one.failures is not None
    assert (one.nodes, one.spare_nodes) == (nodes, spares)
    found = productive(nodes, spares, one.failures.checkpoint_bytes, random.Random(nodes + spares))
    assert one.goodput == pytest.approx(found, abs=0.01)


def test_owned_nodes_can_all_be_used_and_the_goodput_says_what_that_costs() -> None:
    asked = {"model": "llama-3.1-70b", "tokens": "1T", "objective": "time", "stack": "megatron-core", "gpus": 2048}
    short, enough = (ask(**asked, own=f"{nodes}xdgx-h100").assignments[0] for nodes in (256, 300))
    assert isinstance(short, TrainingAssignment)
    assert isinstance(enough, TrainingAssignment)
    assert short.failures is not None
    assert enough.failures is not None
    assert (short.nodes, short.spare_nodes, short.failures.missing_spares) == (256, 0, 3)
    assert (enough.spare_nodes, enough.failures.missing_spares) == (3, 0)
    shares = [(one.goodput or 0) / (1 - one.failures.repair_share) for one in (short, enough) if one.failures]
    assert shares[0] == pytest.approx(shares[1])
    assert short.failures.repair_share_then == enough.failures.repair_share
    text = StringIO()
    show_summary(Page(Console(file=text, width=200)), short, 0.95)
    waits, then = (f"{one.failures.repair_share:.1%} of the time" for one in (short, enough) if one.failures)
    assert (f"0 spares; waits for nodes under repair {waits}; fewest node-hours with 3 more, {then} then"
            in text.getvalue())
    within = ask(**asked, on="dgx-h100", max_power=f"{257 * 10.2:.1f}kW").assignments[0]
    assert (within.nodes, within.spare_nodes) == (256, 1)


def test_a_commitment_that_outlasts_the_job_pays_for_no_spares_that_the_deadline_does_not_need() -> None:
    """A year of every node is paid in any case: waiting is free until the deadline says otherwise."""
    asked = {"model": "llama-3.1-70b", "tokens": "200G", "stack": "megatron-core", "on": "dgx-h100",
             "terms": "reserved-1y", "gpus": 2048}
    free = ask(**asked).assignments[0]
    assert free.spare_nodes == 0
    assert free.duration_days is not None
    soon = ask(**asked, deadline=f"{free.duration_days * 0.8:.3f}d")
    assert soon.status == "optimal"
    hurried = soon.assignments[0]
    assert hurried.spare_nodes > 0
    assert (hurried.cost_usd or 0) > (free.cost_usd or 0)


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


@pytest.mark.parametrize("is_old", [False, True])
def test_every_offer_is_told_by_its_label(is_old: bool) -> None:
    for prices in Catalog().price_lists:
        for offer in prices.offers:
            named = (prices.name, offer.instance, offer.region, offer.term)
            assert offer_named(RentalOffer(*named, 0, 1.0, "", "2026-01-01", "", is_old=is_old).label) == named
    assert offer_named("purchase (us-average, kept 4 years, 80% in use)") is None
    assert offer_named("4 owned dgx-h100, electricity of us-average") is None
