"""Networks of exactly N nodes: hand-computed and published counts, and the graph that is cabled port after port."""

import random
from itertools import pairwise
from math import ceil

import networkx as nx
import pytest

from planner.catalog.load import Catalog
from planner.catalog.parts import NetPart
from planner.errors import InputError
from planner.money.fabric import Links, design
from tests.money.cabled import network

CATALOG = Catalog()
QM9700 = CATALOG.part("qm9700")


def switch(ports, cage=1):
    return NetPart(name="toy", source="a test", as_of="2026", kind="assumed", role="switch", port_rate="400 Gbit/s",
                   ports=ports, ports_per_cage=cage, price="1 USD")


def rails(nodes, nics=8, part=QM9700, **more):
    return design(nodes, nics, part, rail_optimized=True, **more)


def counts(planned):
    return planned.leaf, planned.spine, planned.core


# By hand, nodes of 8 NICs, switches of 64 ports, every NIC a rail of its own, nothing oversubscribed. A leaf under
# spines has 32 ports down and 32 up, so a unit is 32 nodes and 8 leaves.
#     4  32 NICs: one switch.
#    16  128 NICs, more than one switch has; a rail is 16 NICs and has one leaf: 8.
#    32  a rail is 32 NICs, one leaf: 8.
#   127  4 units, the last of 31: 32 leaves with 32 uplinks each (31 of a leaf of 31 round up to 32, two to each spine):
#        1,024 / 64 = 16 spines.
#   128  the same, with 1,024 NICs.
# 2,048  64 units: 512 leaves. A spine has 64 ports and cannot meet them all, so pods: 32 leaves (4 units) and 32
#        spines, with one cable from each to each, and 32 cables up a spine. 16 pods: 512 spines, 16,384 cables, and
#        16,384 / 64 = 256 cores.
@pytest.mark.parametrize(("nodes", "tiers", "switches", "cables"), [
    (4, 1, (1, 0, 0), Links(32)),
    (16, 1, (8, 0, 0), Links(128)),
    (32, 1, (8, 0, 0), Links(256)),
    (127, 2, (32, 16, 0), Links(1016, 1024)),
    (128, 2, (32, 16, 0), Links(1024, 1024)),
    (2048, 3, (512, 512, 256), Links(16384, 16384, 16384)),
])
def test_six_sizes_are_those_computed_by_hand(nodes, tiers, switches, cables):
    planned = rails(nodes)
    assert (planned.tiers, counts(planned), planned.cables) == (tiers, switches, cables)


@pytest.mark.parametrize(("nodes", "switches", "leaf_spine", "spine_core"), [
    (31, (8, 4, 0), 256, 0), (63, (16, 8, 0), 512, 0), (95, (24, 16, 0), 768, 0), (127, (32, 16, 0), 1024, 0),
    (64, (16, 8, 0), 512, 0), (128, (32, 16, 0), 1024, 0), (256, (64, 32, 0), 2048, 0),
    (512, (128, 128, 64), 4096, 4096), (1024, (256, 256, 128), 8192, 8192), (2048, (512, 512, 256), 16384, 16384),
])
def test_joined_rails_are_the_published_superpods(nodes, switches, leaf_spine, spine_core):
    """DGX SuperPOD reference architectures, docs.nvidia.com: H100 table 4 (31 to 127 nodes), B200 (64 to 2,048).

    NVIDIA gives small pods spines too, to let them grow; its node cables at 127 nodes (1,020) include four of the
    fabric manager.
    """
    planned = rails(nodes, join="always")
    assert counts(planned) == switches
    assert planned.cables == Links(8 * nodes, leaf_spine, spine_core)


@pytest.mark.parametrize(("nodes", "tiers", "switches"), [(64, 1, 8), (128, 2, 48), (2048, 2, 768), (4096, 3, 2560)])
def test_rails_apart_are_the_published_sheet(nodes, tiers, switches):
    """Switch counts of the sheet "H100 Freakonomics" (Eugene Cheah, 2024-08): each rail is a network of its own.

    2,048 nodes by hand: a rail is 2,048 NICs on 64 leaves, which a spine can just meet, so 32 spines and no third
    tier; eight times 96 is 768.
    """
    planned = rails(nodes, join="never")
    assert (planned.tiers, planned.switches) == (tiers, switches)


def test_hdr_a100():
    """20 nodes of 8 HDR NICs a unit (40 ports, half up): 100 nodes are 5 units, 40 leaves, and 800 / 40 = 20 spines."""
    planned = rails(100, part=CATALOG.part("qm8700"))
    assert (counts(planned), planned.cables) == ((40, 20, 0), Links(800, 800))
    # 140 nodes: 7 units, 56 leaves, more than 40: pods of at most 20 leaves, so 2 units (16 leaves, 20 spines with 16
    # cables down and up): 3 pods and one of 8 leaves, with 10 spines (two cables each: 16 of the 20 ports down):
    # 70 spines, 56 x 20 = 1,120 cables up, 28 cores
    planned = rails(140, part=CATALOG.part("qm8700"))
    assert (counts(planned), planned.cables) == ((56, 70, 28), Links(1120, 1120, 1120))


def test_fat_tree_oversubscribed_two_to_one():
    """Five nodes (40 NICs) and 20 uplinks a leaf; a sixth would need 48 + 24 ports of 64.

    100 nodes are 20 leaves with 400 uplinks: 7 spines would do for ports, but only 20 uplinks that divide evenly fit
    (7 spines: 3 to each, 21 uplinks and 60 of 64 ports): 7 spines, 420 cables. At 1:1 a leaf holds four nodes, 25
    leaves need 32 uplinks each, two to each of 16 spines.
    """
    planned = design(100, 8, QM9700, rail_optimized=False, oversubscription=2.0)
    assert (counts(planned), planned.cables) == ((20, 7, 0), Links(800, 420))
    planned = design(100, 8, QM9700, rail_optimized=False)
    assert (counts(planned), planned.cables) == ((25, 16, 0), Links(800, 800))


@pytest.mark.parametrize("nodes", [1, 2, 8])
def test_one_switch_holds_what_it_has_ports_for(nodes):
    for rail_optimized in (True, False):
        planned = design(nodes, 8, QM9700, rail_optimized=rail_optimized)
        assert (planned.tiers, counts(planned), planned.cables.node_leaf) == (1, (1, 0, 0), 8 * nodes)


def test_several_nics_share_a_rail():
    """Three racks of 72 GPUs in four rails of 18 NICs: 54 of the 144 ports of a leaf each."""
    planned = rails(3, 72, CATALOG.part("q3400"), rails=4)
    assert (counts(planned), planned.planes) == ((4, 0, 0), 4)


def test_twin_port_transceivers_serve_two_cables():
    """128 nodes: 1,024 at the NICs; leaves 32 down and 32 up, two to a cage: 512 + 512; spines 64 / 2 x 16 = 512."""
    assert rails(128).optics == Links(1024 + 512, 512 + 512)
    assert rails(128, part=switch(64)).optics == Links(2048, 2048)


def degrees(graph, name):
    """Return the cables of a switch to each tier."""
    found = {}
    for other, data in graph[name].items():
        tier = graph.nodes[other]["tier"]
        found[tier] = found.get(tier, 0) + data["cables"]
    return found


def assert_agrees(planned, part):
    """Count everything in the graph anew, and hold it against the design."""
    graph = network(planned)
    tiers = nx.get_node_attributes(graph, "tier")
    assert [list(tiers.values()).count(t) for t in ("node", "leaf", "spine", "core")] == [planned.nodes,
                                                                                       *counts(planned)]
    cables, cages = {}, {}
    for lower, upper, number in graph.edges(data="cables"):
        pair = "-".join(sorted((tiers[lower], tiers[upper])))
        cables[pair] = cables.get(pair, 0) + number
    for name, tier in tiers.items():
        used = degrees(graph, name)
        if tier == "node":
            assert used == {"leaf": planned.nics}
            continue
        assert sum(used.values()) <= part.ports
        for other, number in used.items():
            pair = "-".join(sorted((tier, other)))
            cages[pair] = cages.get(pair, 0) + ceil(number / part.ports_per_cage)
        if tier == "leaf" and planned.tiers > 1:
            assert used["spine"] >= used["node"] / planned.oversubscription - 1e-6
            assert len({data["cables"] for other, data in graph[name].items() if tiers[other] == "spine"}) == 1
        if tier == "spine":
            assert planned.tiers == 2 or used["core"] == used["leaf"]
    pairs = ("leaf-node", "leaf-spine", "core-spine")
    assert Links(*(cables.get(pair, 0) for pair in pairs)) == planned.cables
    ends = planned.nodes * planned.nics
    assert Links(*(cages.get(pair, 0) + ends * (pair == pairs[0]) for pair in pairs)) == planned.optics
    assert nx.is_connected(graph)
    return graph


def bisection(graph, planned):
    """Return the most cables' worth that half of the nodes, drawn at random, can send to the others at once."""
    flow, half = graph.to_directed(), planned.nodes // 2
    drawn = random.Random(7).sample(range(planned.nodes), planned.nodes)
    flow.add_nodes_from(["source", "sink"])
    flow.remove_nodes_from(f"node{node}" for node in drawn[2 * half:])
    flow.add_edges_from((("source", f"node{node}") for node in drawn[:half]), cables=planned.nics)
    flow.add_edges_from(((f"node{node}", "sink") for node in drawn[half:2 * half]), cables=planned.nics)
    return nx.maximum_flow_value(flow, "source", "sink", capacity="cables")


@pytest.mark.parametrize("join", ["as-needed", "always", "never"])
@pytest.mark.parametrize("nodes", [4, 16, 32, 127, 128])
def test_graph_and_design_agree(nodes, join):
    planned = rails(nodes, join=join)
    graph = assert_agrees(planned, QM9700)
    assert bisection(graph, planned) == 8 * (nodes // 2)


@pytest.mark.parametrize("nodes", [300, 512])
def test_graph_and_design_agree_in_three_tiers(nodes):
    planned = rails(nodes)
    graph = assert_agrees(planned, QM9700)
    assert planned.tiers == 3
    assert bisection(graph, planned) == 8 * (nodes // 2)


@pytest.mark.parametrize("join", ["as-needed", "never"])
def test_graph_and_design_agree_at_2048_nodes(join):
    assert_agrees(rails(2048, join=join), QM9700)


def random_designs(number):
    rng = random.Random(5)
    for _ in range(number):
        nics, ports = rng.choice([1, 2, 4]), rng.choice([8, 10, 12, 16])
        part = switch(ports, rng.choice([1, 2]))
        most = {8: 32, 10: 40, 12: 72, 16: 128}[ports] // nics
        yield (rng.randint(1, most), nics, part), {
            "rail_optimized": rng.random() < 0.6, "oversubscription": rng.choice([1.0, 1.0, 1.5, 2.0, 3.0]),
            "join": rng.choice(["as-needed", "always", "never"])}


@pytest.mark.parametrize(("basics", "options"), list(random_designs(80)))
def test_random_designs_agree_with_their_graphs(basics, options):
    planned = design(*basics, **options)
    graph = assert_agrees(planned, basics[2])
    if options["oversubscription"] == 1.0:
        full = planned.nics * (planned.nodes // 2)
        # where the cables of a pod do not divide evenly among the cores, a few percent of the flow may find no way
        assert 0.95 * full <= bisection(graph, planned) <= full
        assert planned.tiers == 3 or bisection(graph, planned) == full


@pytest.mark.parametrize(("basics", "options"), list(random_designs(40)))
def test_more_nodes_never_need_fewer_switches(basics, options):
    nodes, nics, part = basics
    sizes = [design(n, nics, part, **options) for n in range(1, nodes + 2)]
    for fewer, more in pairwise(sizes):
        assert fewer.switches <= more.switches
        assert fewer.leaf <= more.leaf


@pytest.mark.parametrize("oversubscription", [1.0, 2.0, 4.0])
def test_oversubscription_saves_switches_and_cables(oversubscription):
    planned, plain = rails(300, oversubscription=oversubscription), rails(300)
    assert planned.switches <= plain.switches
    assert planned.cables.total <= plain.cables.total


@pytest.mark.parametrize(("nodes", "nics", "part", "options", "message"), [
    (100, 8, switch(8), {}, "too small for three tiers with 8 rails"),
    (100, 8, switch(8), {"rail_optimized": False}, "too few for the 8 of one node"),
    (4097, 1, switch(8), {}, "join 8 pods"),
    (100, 8, QM9700, {"oversubscription": 64.0}, "no uplink"),
    (100, 8, QM9700, {"oversubscription": 0.5}, "1 (none) or more"),
    (100, 8, QM9700, {"oversubscription": float("nan")}, "1 (none) or more"),
    (100, 8, QM9700, {"rails": 3}, "do not divide"),
    (0, 8, QM9700, {}, "at least one node"),
    (100, 8, CATALOG.part("connectx-7"), {}, "role nic"),
])
def test_what_cannot_be_built_is_refused(nodes, nics, part, options, message):
    with pytest.raises(InputError) as caught:
        design(nodes, nics, part, **({"rail_optimized": True} | options))
    assert message in str(caught.value)
