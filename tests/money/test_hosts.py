"""What a provider states of an instance's host takes the place of the node type's, in plans too."""

from __future__ import annotations

import pytest

import planner
from planner.catalog.load import Catalog
from planner.catalog.price import Host
from planner.money.rent import candidates_with_offers
from planner.scenario.limits import Rent, Sourcing
from planner.units import GIB

CATALOG = Catalog()


def test_an_offer_brings_its_own_host():
    asked = Sourcing(rent=Rent(providers=("verda", "gcp")))
    candidates, offers, _ = candidates_with_offers(["a100-sxm-80gb-1x"], asked, CATALOG)
    nodes = {offer.provider: candidates[offer.candidate].node for offer in offers}
    assert {name: node.cpu.memory / GIB for name, node in nodes.items()} == {"verda": 120, "gcp": 170}
    assert nodes["verda"].nvme is None
    usual = CATALOG.node("a100-sxm-80gb-1x")
    assert nodes["gcp"].cpu.memory_bandwidth == usual.cpu.memory_bandwidth
    assert usual.nvme is not None
    assert nodes["gcp"].nvme is not None
    # a tenth of the drive at a tenth of the rate: 375 GB of 3.84 TB
    assert nodes["gcp"].nvme.capacity == 375e9
    assert nodes["gcp"].nvme.read == pytest.approx(usual.nvme.read * 375 / 3840)


def test_what_is_not_stated_is_as_in_the_node_type():
    node = CATALOG.node("l40s-1x")
    assert Host().of(node) is node
    few = Host(vcpus=4).of(node)
    assert few == node.model_copy(update={"cpu": node.cpu.model_copy(update={"threads": 4})})
    larger = Host.model_validate({"disk": "100 TB"}).of(node)
    assert node.nvme is not None
    assert larger.nvme is not None
    assert (larger.nvme.capacity, larger.nvme.read, larger.cpu) == (100e12, node.nvme.read, node.cpu)


def test_a_plan_keeps_to_the_memory_of_the_instance():
    """An 8B model tuned in full on one A100 moves its optimizer to the host, of which the instance has 120 GiB."""
    plan = planner.plan(model="llama-3.1-8b", method="full", tokens="10 M", seq_len=2048, global_batch=16, max_gpus=1,
                        on="a100-sxm-80gb-1x", provider="verda", stack="deepspeed")
    for assignment in plan.assignments:
        assert assignment.memory.host_bytes_per_node <= 120 * GIB
