"""Why each job of a portfolio is so: reasons that are true, and changes that do admit what is rejected or late."""

from datetime import date

import pytest

from planner.ask.portfolio.explain import explain_portfolio
from planner.scenario.load import load_question
from planner.solver.settings import UNLIMITED
from tests.ask.test_portfolio import CATALOG, RUN, plan_of

LONG, SHORT = {**RUN, "tokens": "80 G"}, {**RUN, "tokens": "5 G"}
JOBS = ({"name": "base", "workload": LONG, "deadline": "2027-01-20"},
        {"name": "side", "workload": LONG, "deadline": "2027-01-14"},
        {"name": "paper", "workload": LONG, "deadline": "2027-01-12", "late": "100 USD/d"},
        {"name": "small", "workload": SHORT, "worth": "5 USD"},
        {"name": "follow", "workload": SHORT, "after": ["small"], "worth": "5 USD"})


def asked(own=2, **changed):
    return plan_of([{**job, **changed.get(job["name"], {})} for job in JOBS], own=own, sourcing={})


def of(plan, name):
    return next(a for a in plan.assignments if a.workload == name)


@pytest.fixture(scope="module")
def plan():
    return asked()


def test_every_job_says_why_it_is_so(plan):
    said = {a.workload: a.reasons.start for a in plan.assignments}
    first = next(a for a in plan.assignments if a.start == "2027-01-04T00:00:00Z")
    assert said[first.workload] == "it starts with the horizon"
    assert said["paper"].startswith("no earlier: 2 nodes of own dgx-h100 missing")
    assert said["small"].startswith("rejected: doing it costs ")
    assert said["small"].endswith(" USD more, and it is worth 5.00 USD")
    assert said["follow"] == "rejected: it waits for small, which is rejected"


def test_what_costs_more_than_it_is_worth_is_not_said_to_lack_nodes():
    full = plan_of([{"name": "base", "workload": LONG}, {"name": "more", "workload": LONG, "worth": "20 USD"}], own=1,
                   length="14 d", sourcing={})
    assert of(full, "more").reasons.start.startswith("rejected: even with room for it, doing it costs ")


def test_each_change_that_is_said_to_be_enough_is(plan):
    late, rejected = of(plan, "paper"), of(plan, "small")
    assert late.late_days
    changes = {change.limit: change.to for change in late.reasons.admits}
    assert changes.keys() == {"own.dgx-h100", "paper.deadline"}
    nodes = int(changes["own.dgx-h100"].split()[0])
    in_time = of(asked(own=nodes), "paper")
    assert (in_time.late_days, nodes > 2) == (0, True)
    assert of(asked(paper={"deadline": changes["paper.deadline"]}), "paper").late_days == 0
    assert date.fromisoformat(changes["paper.deadline"]) > date(2027, 1, 12)
    (worth,) = rejected.reasons.admits
    assert (worth.limit, worth.from_) == ("small.worth", "5 USD")
    assert of(asked(small={"worth": worth.to}), "small").status == "planned"


def test_no_other_way_is_less_than_the_question_solved_again_with_the_job_held_to_it():
    data = {"horizon": {"start": "2027-01-04", "length": "28 d"}, "hardware": {"candidates": ["dgx-h100"]},
            "jobs": [{"name": "base", "workload": LONG}, {"name": "side", "workload": LONG}],
            "sourcing": {"own": {"dgx-h100": 2}, "rent": {"providers": ["nebius"]}}}
    portfolio, _ = load_question(data, {}, CATALOG)
    plan = plan_of(data["jobs"], own=2, sourcing={"rent": {"providers": ["nebius"]}})
    rented = next(way for way in of(plan, "side").reasons.others if way.pool.startswith("rent"))
    (held,) = explain_portfolio(portfolio, CATALOG, ["side=rent"], UNLIMITED).why_not
    assert rented.usd == pytest.approx(held.value - plan.objective.value, abs=0.01)
