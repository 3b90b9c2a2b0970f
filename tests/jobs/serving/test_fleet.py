"""Replicas that share nodes: who is where, and who pays for what."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from planner.jobs.quanta import shared_out
from planner.jobs.serving.assignment import MONTH_DAYS
from tests.jobs.serving.cases import SMALL, plan, solved

SERVICE: dict[str, Any] = {**SMALL["workload"], "rate": 5}
TWO: dict[str, Any] = {"workloads": [{**SERVICE, "name": name} for name in ("small", "other")],
                       "hardware": {"candidates": ["dgx-h100"]}}


def test_what_groups_pay_for_is_what_their_nodes_are() -> None:
    random = Random(5)
    for _ in range(300):
        size = random.choice([1, 4, 8])
        gpus = [random.randint(0, 30) for _ in range(random.randint(1, 5))]
        found = shared_out(gpus, size)
        assert sum(paid for _, paid in found) == pytest.approx(-(-sum(gpus) // size))
        for count, (nodes, paid) in zip(gpus, found, strict=True):
            assert nodes == -(-count // size)
            assert count // size <= paid <= nodes or sum(gpus) % size
            assert paid * size >= count - 1e-9


def test_an_amount_has_the_digits_of_what_it_is_of() -> None:
    """12 USD and a half, and not 12.500000000000002."""
    fleet, random = solved(**TWO).fleet, Random(6)
    for _ in range(300):
        micro = random.randint(1, 10**12)
        assert fleet.amount(micro) == float(Fraction(micro) * 30 / 10**6)


def test_two_services_on_one_node_pay_half_of_it_each() -> None:
    found = plan(**TWO)
    assert [a.nodes for a in found.assignments] == [1, 1]
    assert [a.serving.part_of_nodes for a in found.assignments if a.serving] == [0.5, 0.5]
    for a in found.assignments:
        assert a.usd_per_node_hour is not None
        assert a.cost_usd == pytest.approx(a.nodes * a.usd_per_node_hour * 24 * MONTH_DAYS)
    assert found.objective.value == pytest.approx(sum(a.cost_usd or 0.0 for a in found.assignments))


def test_one_owned_node_is_enough_for_both() -> None:
    found = plan(**TWO, sourcing={"own": {"dgx-h100": 1}}, objective="gpus")
    assert found.status == "optimal"
    assert sum(a.gpus for a in found.assignments) <= 8


def test_a_purchase_is_written_once_for_all_who_share_it() -> None:
    found = plan(**TWO, sourcing={"buy": {}})
    bills = [a.purchase for a in found.assignments if a.purchase is not None]
    assert len(bills) == 1
    alone = plan(**{**TWO, "workloads": TWO["workloads"][:1]}, sourcing={"buy": {}})
    assert alone.assignments[0].purchase is not None
    assert bills[0].capex_usd == pytest.approx(alone.assignments[0].purchase.capex_usd)
