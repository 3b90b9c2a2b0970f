"""How a plan of many jobs reads: which job is drawn under which pool."""

from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.render.portfolio import on_pool, portfolio_sentence
from planner.scenario.load import load_question

CATALOG = Catalog()
RUN = {"kind": "training", "model": "llama-3.1-8b", "tokens": "5 G", "stack": "megatron-core"}


def bought_of_two_types():
    """Return a plan of two jobs, each on a purchase of its own, which have one offer."""
    question, defaults = load_question({
        "horizon": {"start": "2027-01-04", "length": "14 d"}, "hardware": {"candidates": ["dgx-h100"]},
        "jobs": [{"name": "one", "workload": RUN}, {"name": "two", "workload": RUN}],
        "sourcing": {"own": [{"node": "dgx-h100", "nodes": 1}]}}, {}, CATALOG)
    plan = make_plan(question, CATALOG, defaults=defaults)
    nodes, offer = ("dgx-h100", "dgx-b200"), "purchase (us-average, kept 4 years, 80% in use)"
    return plan.model_copy(update={
        "assignments": tuple(a.model_copy(update={"node": node, "offer": offer, "pool": f"buy {node}"})
                             for a, node in zip(plan.assignments, nodes, strict=True)),
        "supply": tuple(plan.supply[0].model_copy(update={"node": node, "offer": offer, "pool": f"buy {node}"})
                        for node in nodes)})


def test_purchases_of_two_node_types_are_two_pools_though_their_offer_is_one():
    plan, pools = bought_of_two_types(), ("buy dgx-h100", "buy dgx-b200")
    assert [[a.workload for a in on_pool(plan, pool)] for pool in pools] == [["one"], ["two"]]
    assert "2 jobs on 2 pools" in portfolio_sentence(plan)
    # a plan of an earlier release does not say the pool
    old = plan.model_copy(update={"assignments": tuple(a.model_copy(update={"pool": None}) for a in plan.assignments)})
    assert [[a.workload for a in on_pool(old, pool)] for pool in pools] == [["one"], ["two"]]
