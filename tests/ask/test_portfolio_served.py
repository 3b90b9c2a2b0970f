"""Services of a portfolio: what is planned for them meets its targets by replay."""

from importlib import import_module

import pytest

from planner.ask.account import Interrupted
from planner.ask.plan import make_plan
from planner.ask.portfolio.plan import answered
from planner.ask.portfolio.replays import Replays, standbys
from planner.ask.portfolio.searching import Searching
from planner.jobs.job import Tried
from planner.jobs.serving import job as serving_job
from planner.scenario.load import load_question
from planner.solver.settings import UNLIMITED
from tests.ask.test_portfolio import CATALOG, CHAT, RUN, plan_of

pytestmark = pytest.mark.usefixtures("fewer_requests")
JOBS = [{"name": "chat", "workload": CHAT, "growth": "50%/month"}]


def asked():
    data = {"horizon": {"start": "2027-01-04", "length": "35 d", "period": "7 d"}, "jobs": JOBS,
            "hardware": {"candidates": ["dgx-h100"]}, "sourcing": {"rent": {"providers": ["nebius"]}}}
    return load_question(data, {}, CATALOG)[0]


def test_every_fleet_of_a_service_meets_its_targets_by_replay():
    agenda, found = answered(asked(), CATALOG, Searching(UNLIMITED))
    fleets, replays = list(standbys(agenda, found)), Replays()
    assert agenda.missed == ()
    assert fleets
    assert all(replays.of(agenda, fleet)[1].meets for fleet in fleets)


def test_replicas_that_miss_answer_less_and_more_nodes_are_planned(monkeypatch: pytest.MonkeyPatch):
    before = plan_of(JOBS, length="35 d", sourcing={"rent": {"providers": ["nebius"]}})

    def half(catalog, service, candidates, picks, factor, *others):
        each = service.rate * factor / sum(pick.replicas for pick in picks)
        return Tried(each < 8, (each,), (each if each < 8 else 5.0,), 1,
                     lambda: "" if each < 8 else "TTFT 3 s at p95 for 2 s")
    monkeypatch.setattr(serving_job, "tried", half)
    after = plan_of(JOBS, length="35 d", sourcing={"rent": {"providers": ["nebius"]}})
    assert before.objective.by_replay.met
    assert after.objective.by_replay.met
    assert after.objective.value > before.objective.value
    monkeypatch.setattr(serving_job, "tried", lambda *asked: Tried(
        False, (1.0,), (0.0,), 1, lambda: "TTFT 3 s at p95 for 2 s"))
    never = plan_of(JOBS, length="35 d", sourcing={"rent": {"providers": ["nebius"]}})
    assert not never.objective.by_replay.met
    assert never.objective.by_replay.missed == ("chat TTFT 3 s at p95 for 2 s",)
    assert never.status == "feasible"


@pytest.mark.parametrize("during", [
    "ask.portfolio.plan.agenda_of", "solver.fleet.scheduling._cheapest", "solver.fleet.scheduling._earlier",
    "ask.portfolio.served._less", "ask.portfolio.served.standbys", "ask.portfolio.plan.explained"])
def test_ctrl_c_after_the_first_schedule_leaves_it(monkeypatch: pytest.MonkeyPatch, during: str):
    room, _, name = f"planner.{during}".rpartition(".")
    real, calls = getattr(import_module(room), name), []

    def interrupted(*asked):
        calls.append(name)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(*asked)
    monkeypatch.setattr(f"{room}.{name}", interrupted)
    with pytest.raises(Interrupted) as stopped:
        plan_of([*JOBS, {"name": "a", "workload": RUN}], length="35 d", sourcing={"rent": {"providers": ["nebius"]}})
    plan = stopped.value.plan
    assert plan.objective.value is not None
    assert {one.job: one.status for one in plan.assignments} == {"chat": "planned", "a": "planned"}
    if ".served." in during:  # fewer replicas may do, or more be needed
        assert (plan.status, plan.objective.bound) == ("feasible", None)


def test_a_service_that_grows_costs_what_its_months_cost_alone():
    """Replays draw the requests of a load that has grown for it, and find that fewer replicas do than computed."""
    chat = {"kind": "serving", "model": "llama-3.1-70b", "rate": 11.2, "input": 3000, "output": 300, "ttft": "1 s",
            "tpot": "100 ms", "quantization": ["fp8"]}
    market = {"hardware": {"candidates": ["dgx-b200"]}, "sourcing": {"rent": {}}}
    year = make_plan(load_question({**market, "horizon": {"start": "2027-01-01", "length": "59 d"}, "jobs": [
        {"name": "chat", "workload": chat, "growth": "40%/month"}]}, {}, CATALOG)[0], CATALOG)
    months = [make_plan(load_question({**market, "workload": {**chat, "rate": rate}}, {}, CATALOG)[0], CATALOG)
              for rate in (11.2, 11.2 * 1.4)]
    alone = sum(plan.objective.value * days / 30 for plan, days in zip(months, (31, 28), strict=True))
    assert year.objective.by_replay.met
    assert year.objective.value == pytest.approx(alone, abs=0.01)


@pytest.mark.parametrize("period", ["7 d", "12 h"])
def test_a_day_costs_what_it_costs_alone_with_its_starts_and_last_answers(period: str):
    chat = {**CHAT, "day": [0.3] * 8 + [1.0] * 12 + [0.3] * 4}
    market = {"hardware": {"candidates": ["dgx-h100"]}, "sourcing": {"rent": {"providers": ["nebius"]}}}
    alone, at_once, weeks = (make_plan(load_question({**market, **asked}, {}, CATALOG)[0], CATALOG) for asked in (
        {"workload": chat}, {"workload": {**chat, "startup": "1 s"}},
        {"jobs": [{"name": "chat", "workload": chat}], "horizon": {"length": "28 d", "period": period}}))
    assert weeks.objective.value == pytest.approx(alone.objective.value * 28 / 30, abs=0.011)
    # by hand: ten minutes for a start, not one second, of the nodes that 8:00 adds
    (day,) = at_once.assignments
    added = day.nodes - 1
    each = day.usd_per_node_hour * 599 / 3600
    assert weeks.objective.value == pytest.approx(at_once.objective.value * 28 / 30 + 28 * added * each, abs=0.3)
    assert sum(one.usd for one in weeks.cash) == pytest.approx(weeks.objective.value, abs=1e-6)
