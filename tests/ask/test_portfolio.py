"""A portfolio from question to plan: checked anew from its JSON alone, and "no" with what binds and what would do."""

import json
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest

from planner.answer.schema import Plan, to_json
from planner.ask.account import Interrupted
from planner.ask.plan import make_plan
from planner.ask.portfolio import searching
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.training.stacks import ByStack
from planner.render.portfolio import outlays
from planner.render.report.page import report
from planner.scenario.load import load_question
from planner.solver.search.frontier import GridSearch

CATALOG = Catalog()
RUN = {"kind": "training", "model": "llama-3.1-8b", "tokens": "20 G", "stack": "megatron-core"}
CHAT = {"kind": "serving", "model": "llama-3.1-8b", "rate": "150 requests/s", "input": 1000, "output": 200,
        "ttft": "2 s", "tpot": "50 ms"}
RENT = {"providers": ["nebius"]}


def plan_of(jobs, own=0, length="28 d", start="2027-01-04", **blocks):
    sourcing = {**({"own": [{"node": "dgx-h100", "nodes": own}]} if own else {}), **blocks.pop("sourcing", {})}
    horizon = {"start": start, "length": length}
    data = {"horizon": horizon, "hardware": {"candidates": ["dgx-h100"]},
            "jobs": jobs, "sourcing": sourcing, **blocks}
    scenario, defaults = load_question(data, {}, CATALOG)
    return make_plan(scenario, CATALOG, defaults=defaults)


def moment(text):
    return datetime.fromisoformat(text.removesuffix("Z"))


def due_of(job, assignment):
    """Return a deadline; of what comes back, a span from a release in whole weeks from the first day."""
    if "every" not in job or "-" in job["deadline"]:
        return moment(job["deadline"])
    first = moment("2027-01-04")
    weeks = (moment(assignment["start"]) - first).days // 7
    return first + timedelta(weeks=weeks, days=float(job["deadline"].removesuffix(" d")))


def recheck(plan: Plan) -> dict:
    """Return the JSON of a plan after checking dates, nodes and money by it alone."""
    data = json.loads(to_json(plan))
    assert to_json(Plan.model_validate(data)) == to_json(plan)
    supply = sum(one["usd"] for one in data["supply"])
    asked = {job["name"]: job for job in data["provenance"]["scenario"]["jobs"]}
    late = sum(round(a["late_days"] * float(asked[a["job"]]["late"].split()[0].replace(",", "")), 2)
               for a in data["assignments"] if a.get("late_days"))
    assert data["objective"]["value"] == pytest.approx(supply + late, abs=0.011)
    assert all(round(usd * 100, 6).is_integer() for usd in (
        data["objective"]["value"], *(one["usd"] for one in (*data["cash"], *data["supply"]))))
    assert sum(one["usd"] for one in data["cash"]) == pytest.approx(supply, abs=1e-6)
    done: dict[str, datetime] = {}
    for a in data["assignments"]:
        if a["status"] == "rejected" or a["kind"] == "serving":
            continue
        job, segments = asked[a["job"]], a["segments"]
        assert (segments[0]["start"], segments[-1]["end"]) == (a["start"], a["end"])
        assert all(moment(one["end"]) < moment(two["start"]) for one, two in pairwise(segments))
        worked = sum((moment(one["end"]) - moment(one["start"])).total_seconds() for one in segments)
        assert worked >= a["duration_days"] * 86400 - 1
        assert "deadline" not in job or "late" in job or moment(a["end"]) <= due_of(job, a)
        assert all(done[other] <= moment(a["start"]) for other in job["after"])
        done[a["job"]] = max(done.get(a["job"], datetime.min), moment(a["end"]))
        if a["sourcing"] == "rent":
            nodes = a["nodes"] + a["spare_nodes"]
            assert any((s["start"], s["end"], s["nodes"]) == (a["start"], a["end"], nodes)
                       and s["usd"] == pytest.approx(a["cost_usd"], abs=1e-6) for s in data["supply"])
            # the price list of these nodes bills an hour at least
            assert a["cost_usd"] >= nodes * 24 * min(a["duration_days"], 1 / 24) * a["usd_per_node_hour"] - 0.005
    for row in data["periods"]:
        assert row["serving"] + row["training"] <= row["available"]
        day = moment(row["start"])
        while day < moment(row["end"]):
            mine = [a for a in data["assignments"] if a.get("pool") == row["pool"]]
            busy = sum(seg["nodes"] for a in mine for seg in a["segments"]
                       if moment(seg["start"]) < day + timedelta(days=1) and day < moment(seg["end"]))
            assert busy == row["serving"] + row["training"]
            day += timedelta(days=1)
    return data


def test_a_year_in_small_on_owned_and_rented_nodes():
    plan = plan_of([
        {"name": "base", "workload": RUN, "release": "2027-01-05", "deadline": "2027-01-12", "may_pause": True},
        {"name": "ablation", "workload": {**RUN, "tokens": "5 G"}, "count": 3},
        {"name": "tune", "workload": {**RUN, "tokens": "200 M", "method": "lora"}, "every": "1 w", "after": "base"},
        {"name": "chat", "workload": CHAT, "from": "2027-01-20", "growth": "50%/month"},
    ], own=1, length="63 d", sourcing={"rent": {**RENT, "quota": {"dgx-h100": 4}}})
    data = recheck(plan)
    assert plan.status == "optimal"
    assert [a["workload"] for a in data["assignments"] if a["job"] == "tune"] == [f"tune {n}" for n in range(1, 10)]
    assert {s["sourcing"] for s in data["supply"]} == {"own", "rent"}
    assert len(next(a for a in data["assignments"] if a["job"] == "chat")["segments"]) >= 1


def test_rented_jobs_cost_together_what_they_cost_alone():
    # of LoRA another stack than the first of those in use is the fastest
    tune = {"model": "llama-3.1-8b", "method": "lora", "tokens": "100 M"}
    jobs = [{"name": "a", "workload": RUN}, {"name": "b", "workload": {**RUN, "tokens": "7 G"}},
            {"name": "c", "workload": tune, "count": 2}, {"name": "d", "workload": {**tune, "tokens": "40 M"}},
            {"name": "chat", "workload": CHAT}]
    alone, by = 0.0, dict[str, str]()
    for job in jobs:
        limits = {} if job["name"] == "chat" else {"limits": {"deadline": "28 d"}}
        scenario, _ = load_question({"workload": job["workload"], "hardware": {"candidates": ["dgx-h100"]},
                                     "sourcing": {"rent": RENT}, **limits}, {}, CATALOG)
        plan = make_plan(scenario, CATALOG)
        by[job["name"]] = plan.assignments[0].stack
        # that of a service is of a month of 30 days
        alone += plan.objective.value * (28 / 30 if job["name"] == "chat" else job.get("count", 1))
    plan = plan_of(jobs, sourcing={"rent": RENT})
    assert recheck(plan)["objective"]["value"] == pytest.approx(alone, abs=1e-6)
    assert {a.job: a.stack for a in plan.assignments} == by
    assert by["c"] not in ("trl", by["a"])
    said = {default.name: default.value for default in plan.provenance.defaults}
    assert (said["c.stack"], said["d.stack"]) == (by["c"], by["d"])


def test_what_does_not_fit_is_rejected_or_late_at_its_price():
    due = {"deadline": "2027-01-08"}
    plan = plan_of([{"name": "a", "workload": RUN, **due, "worth": "10,000 USD"},
                    {"name": "b", "workload": RUN, **due, "worth": "5,000 USD"}], own=1)
    data = recheck(plan)
    assert [a["status"] for a in data["assignments"]] == ["planned", "rejected"]
    assert plan.objective.value < 5000
    late = recheck(plan_of([{"name": "a", "workload": RUN, **due}, {"name": "b", "workload": RUN, **due,
                                                                   "late": "500 USD/d"}], own=1))
    assert [a["late_days"] > 0 for a in late["assignments"]] == [False, True]


def test_a_pause_makes_way_and_costs_a_restart():
    jobs = [{"name": "long", "workload": {**RUN, "tokens": "60 G"}, "may_pause": True},
            {"name": "short", "workload": RUN, "release": "2027-01-07", "deadline": "2027-01-12"}]
    data = recheck(plan_of(jobs, own=1, length="14 d"))
    assert len(data["assignments"][0]["segments"]) == 2
    jobs[0]["may_pause"] = False
    assert plan_of(jobs, own=1, length="14 d").status == "infeasible"


def test_a_job_that_is_released_often_while_it_waits_is_warned_of():
    base = {"name": "base", "workload": {**RUN, "tokens": "80 G"}}
    tune = {"name": "tune", "workload": {**RUN, "tokens": "200 M"}, "every": "3 d", "after": "base"}
    plan = plan_of([base, tune], own=1, length="30 d")
    end = plan.assignments[0].end
    early = sum(f"2027-01-{4 + 3 * number:02}T00:00:00Z" < end for number in range(9))
    assert early > 1
    assert [note for note in plan.notes if f"{early} of 10 tune are released before base has ended" in note]
    late = plan_of([base, {**tune, "release": "2027-01-28"}], own=1, length="30 d")
    assert not [note for note in late.notes if "released" in note]


def test_each_instance_keeps_a_span_from_its_release():
    back = {"name": "tune", "workload": {**RUN, "tokens": "2 G"}, "every": "7 d", "deadline": "2 d"}
    first = {"name": "first", "workload": RUN, "deadline": "2027-01-12"}
    plan = plan_of([back, first], own=1)
    ends = [one["end"] for one in recheck(plan)["assignments"] if one["job"] == "tune"]
    assert [end[:10] for end in ends] == ["2027-01-04", "2027-01-11", "2027-01-18", "2027-01-25"]
    drawn = report(plan, CATALOG)
    assert [f'class="due" data-job="{name}"' in drawn for name in ("first", "tune")] == [True, False]
    # the longer run leaves no room for all of them on one node: what would do is said as a span, and does
    tight = [{**back, "deadline": "8 h"}, {**first, "release": "2027-01-10", "deadline": "2027-01-14"}]
    no = plan_of(tight, own=1)
    assert no.status == "infeasible"
    (change,) = [one for one in no.infeasible.relaxations if one.limit == "tune.deadline"]
    assert (change.from_, change.to) == ("8 h", "56 h")
    assert plan_of([{**tight[0], "deadline": change.to}, tight[1]], own=1).status == "optimal"


def test_a_quarter_has_a_budget_of_its_own():
    job = {"name": "a", "workload": RUN, "release": "2027-03-15"}
    asked = {"length": "56 d", "sourcing": {"rent": RENT}, "start": "2027-03-01"}
    late = plan_of([job], limits={"budget_by_quarter": {"Q1": "10 USD"}}, **asked)
    assert late.assignments[0].start == "2027-04-01T00:00:00Z"
    no = plan_of([job], limits={"budget_by_quarter": {"Q1": "10 USD", "Q2": "20 USD"}}, **asked)
    limits = {one.limit: one.to for one in no.infeasible.relaxations}
    assert limits.keys() == {"budget_by_quarter.2027-Q1", "budget_by_quarter.2027-Q2"}
    enough = {"Q1": "10 USD", "Q2": limits["budget_by_quarter.2027-Q2"]}
    assert plan_of([job], limits={"budget_by_quarter": enough}, **asked).status == "optimal"


def test_the_power_of_a_site_is_of_its_own_nodes():
    jobs = [{"name": name, "workload": RUN, "deadline": "2027-01-08"} for name in "ab"]
    for power, how in (("11 kW", ["owned", "rent"]), ("21 kW", ["owned", "owned"])):
        data = recheck(plan_of(jobs, own=2, sourcing={"rent": RENT}, limits={"site_power": power}))
        assert sorted(a["sourcing"] for a in data["assignments"]) == how
    assert plan_of(jobs, own=2, sourcing={"rent": RENT}, limits={"max_power": "11 kW"}).status == "infeasible"


def test_nodes_are_bought_as_late_as_a_deadline_leaves_time():
    plan = plan_of([{"name": "a", "workload": RUN, "deadline": "2027-05-19"}], length="182 d", sourcing={"buy": {}})
    (bought,), (run,) = plan.supply, plan.assignments
    assert run.start == bought.start
    days = (datetime(2027, 5, 19) - moment(run.end)).total_seconds() / 86400
    assert 0 <= days < 1
    recheck(plan)


def test_nodes_are_bought_when_a_service_begins():
    (bought,) = plan_of([{"name": "chat", "workload": CHAT, "from": "2027-03-05"}], length="182 d",
                        sourcing={"buy": {"delivery": "10 d"}}).supply
    assert (bought.sourcing, bought.start) == ("buy", "2027-03-05T00:00:00Z")


def test_what_is_delivered_after_the_horizon_is_not_bought():
    late = {"buy": {"delivery": "30 d"}}
    plan = plan_of([{"name": "a", "workload": RUN}], sourcing={**late, "rent": RENT})
    assert {one.sourcing for one in plan.supply} == {"rent"}
    assert len(plan.notes) == 1
    assert plan.notes[0].startswith("what is bought is there after 30 d (sourcing.buy.delivery), and the horizon ends")
    with pytest.raises(InputError, match=r"is there after 30 d .* nothing to run on"):
        plan_of([{"name": "a", "workload": RUN}], sourcing=late)


def test_bought_nodes_come_after_their_delivery_and_maintenance_stops_work():
    plan = plan_of([{"name": "a", "workload": RUN}], length="56 d", sourcing={"buy": {"delivery": "21 d"}})
    data = recheck(plan)
    (bought,) = data["supply"]
    assert outlays(plan) == {bought["start"][:7]: bought["capital_usd"]}
    drawn = report(plan, Catalog())
    assert drawn.count('class="outlay"') == 1
    assert f"{bought['capital_usd']:,.2f} USD in {bought['start'][:7]}, the outlay of purchases" in drawn
    assert (bought["sourcing"], bought["start"] >= "2027-01-25") == ("buy", True)
    assert bought["capital_usd"] > bought["usd"] > 0
    assert data["assignments"][0]["start"] >= bought["start"]
    longer = plan_of([{"name": "a", "workload": RUN}], length="56 d", sourcing={"buy": {"delivery": "21 d",
                                                                                       "years": 8}})
    assert longer.objective.value < plan.objective.value
    own = [{"node": "dgx-h100", "nodes": 1, "maintenance": ["2027-01-04", "2027-01-10"]}]
    data = recheck(plan_of([{"name": "a", "workload": RUN}], sourcing={"own": own}))
    assert data["assignments"][0]["start"] == "2027-01-11T00:00:00Z"


@pytest.mark.parametrize(("jobs", "blocks", "because", "enough"), [
    ([{"name": "a", "workload": RUN, "deadline": "2027-01-05"}], {"own": 1},
     "a: no layout finishes in the 24 h that it has", "2027-01-07"),
    ([{"name": "a", "workload": RUN, "deadline": "2027-01-08", "count": 2}], {"own": 1},
     "no schedule of a alone keeps a.deadline 2027-01-08", "2027-01-10"),
    ([{"name": "a", "workload": RUN}, {"name": "b", "workload": RUN}],
     {"sourcing": {"rent": RENT}, "limits": {"budget": "3,000 USD"}},
     "no schedule of all the jobs keeps budget 3 kUSD", "budget"),
    ([{"name": "a", "workload": RUN, "count": 40}], {"own": 1}, "more work than the nodes", "5 nodes"),
    ([{"name": "a", "workload": {**RUN, "model": "llama-3.1-70b", "tokens": "1 G"}}], {
        "sourcing": {"rent": {**RENT, "quota": {"dgx-h100": 1}}}}, "a: no layout fits on the nodes", "2 nodes"),
    ([{"name": "a", "workload": RUN}, *({"name": name, "workload": CHAT} for name in "bc")], {"own": 1},
     "b and c: more work than the nodes", "3 nodes"),
    ([{"name": "a", "workload": RUN, "deadline": "2027-01-10", "count": 4}],
     {"sourcing": {"rent": {**RENT, "quota": {"dgx-h100": 1}}}}, "no schedule of a alone keeps", "2 nodes"),
    ([{"name": "chat", "workload": {**CHAT, "ttft": "1 ms"}}], {"own": 1}, "chat: no layout of the candidates", None),
])
def test_a_no_names_what_binds_and_what_would_do(jobs, blocks, because, enough):
    plan = plan_of(jobs, **blocks)
    assert plan.status == "infeasible"
    assert because in plan.infeasible.because[0]
    told = [one.to for one in plan.infeasible.relaxations][:1]
    if enough == "budget":
        # a figure of the day: with it there is a plan, and it is spent to the dollar
        enough = told[0]
        spent = plan_of(jobs, **{**blocks, "limits": {"budget": enough}}).objective.value
        assert 0 <= float(enough.replace(",", "").removesuffix(" USD")) - spent < 1.01
    assert told == ([enough] if enough else [])


def test_without_time_for_all_columns_nothing_is_proven():
    scenario, _ = load_question({"horizon": {"start": "2027-01-04", "length": "28 d"},
                                 "hardware": {"candidates": ["dgx-h100"]}, "jobs": [{"name": "a", "workload": RUN}]},
                                {}, CATALOG)
    plan = make_plan(scenario, CATALOG, time_limit=1e-6)
    assert (plan.status, plan.infeasible, plan.objective.bound) == ("undecided", None, None)


@pytest.mark.parametrize("after", [0, 1])
def test_ctrl_c_while_layouts_are_searched_leaves_a_first_schedule(monkeypatch, after):
    real, calls = ByStack.columns, []

    def columns(self, effort, depth):
        calls.append(effort.stop)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return real(self, effort, depth)

    monkeypatch.setattr(ByStack, "columns", columns)
    monkeypatch.setattr(searching, "SOON", 60.0)  # of a machine with other work
    with pytest.raises(Interrupted) as stopped:
        plan_of([{"name": "a", "workload": RUN}, {"name": "b", "workload": {**RUN, "global_batch": "512 sequences"}}],
                sourcing={"rent": RENT})
    plan = stopped.value.plan
    assert (plan.status, plan.objective.bound) == ("feasible", None)
    assert {one.workload: one.status for one in plan.assignments} == {"a": "planned", "b": "planned"}
    assert [stop is not None for stop in calls] == [False] * (after + 1) + [True] * (2 - after)
    recheck(plan)


def test_ctrl_c_during_one_stack_leaves_the_others_open(monkeypatch):
    real, asked = GridSearch.run, []

    def run(self, source):
        asked.append(self.effort.is_over)
        found = real(self, source)
        found.interrupted |= len(asked) == 1
        return found

    monkeypatch.setattr(GridSearch, "run", run)
    monkeypatch.setattr(searching, "SOON", 60.0)
    with pytest.raises(Interrupted) as stopped:
        plan_of([{"name": "a", "workload": {**RUN, "stack": ["megatron-core", "fsdp2"]}}], sourcing={"rent": RENT})
    assert (stopped.value.plan.status, stopped.value.plan.objective.bound) == ("feasible", None)
    assert not asked[0]
    assert len(asked) > 1
    assert all(asked[1:])


def test_what_is_for_one_workload_is_refused():
    scenario, _ = load_question({"horizon": {"start": "2027-01-04", "length": "28 d"},
                                 "hardware": {"candidates": ["dgx-h100"]}, "jobs": [{"name": "a", "workload": RUN}]},
                                {}, CATALOG)
    with pytest.raises(InputError, match="--pareto applies to one workload"):
        make_plan(scenario, CATALOG, pareto=("cost", "days"))


MIXED = {
    "base": {"workload": {**RUN, "tokens": "30 G"}, "deadline": "2027-01-09", "may_pause": True},
    "small": {"workload": {**RUN, "tokens": "10 G"}, "count": 2, "deadline": "2027-01-08"},
    "tune": {"workload": {**RUN, "tokens": "300 M", "method": "lora"}, "release": "2027-01-05"},
    "chat": {"workload": CHAT, "from": "2027-01-06"},
    "night": {"workload": {**CHAT, "rate": "60 requests/s"}, "from": "2027-01-05", "growth": "20%/month"},
}


@cache
def cost(*names, own):
    plan = plan_of([{"name": name, **MIXED[name]} for name in names], own=own, length="14 d", sourcing={"rent": RENT})
    assert plan.status == "optimal"
    return recheck(plan)["objective"]["value"]


@pytest.mark.parametrize(("names", "own"), [
    (("base", "chat"), 1), (("small", "chat", "night"), 2), (("base", "small", "tune", "chat"), 2)],
    ids=["a job and a service", "jobs and services", "four kinds"])
def test_jobs_together_are_never_dearer_than_each_alone_on_rented_nodes(names, own):
    """What one leaves idle another may use; and none is cheaper than where it has all that is owned to itself."""
    together = cost(*names, own=own)
    at_best, apart = (sum(cost(name, own=count) for name in names) for count in (own, 0))
    assert at_best < together < apart


def test_every_kind_of_work_shares_nodes_with_the_others():
    """A batch takes as few nodes as end in time, and what pauses writes a checkpoint of its own size."""
    works = {"base": RUN, "style": {"kind": "diffusion", "model": "sdxl", "steps": 400_000, "batch": 8},
             "batch": {"kind": "generation", "model": "sdxl", "samples": 400_000},
             "label": {"kind": "serving", "model": "llama-3.1-8b", "documents": 2_000_000, "input": 1000,
                       "output": 100},
             "pictures": {"kind": "generation", "model": "sdxl", "rate": "1 images/s", "e2e": "60 s"}}
    jobs = [{"name": name, "workload": work, **({"growth": "50%/month"} if name == "pictures" else {
        "may_pause": name == "style", "deadline": "2027-01-20"})} for name, work in works.items()]
    plan = plan_of(jobs, own=3)
    data = recheck(plan)
    assert plan.status == "optimal"
    assert {a["job"]: a["kind"] for a in data["assignments"]} == {
        "base": "training", "style": "diffusion", "batch": "serving", "label": "serving", "pictures": "serving"}
    again = plan_of(list(reversed(jobs)), own=3)
    assert again.objective.value == plan.objective.value


def test_jobs_that_differ_in_tokens_and_deadline_are_searched_once_and_as_if_alone():
    """Columns by those of the longest job are those of a search of its own."""
    market = {"sourcing": {"rent": RENT}}
    jobs = [{"name": name, "workload": {**RUN, "tokens": tokens}, "deadline": deadline}
            for name, tokens, deadline in (("long", "40 G", "2027-01-30"), ("short", "11 G", "2027-01-06"))]
    together, each = plan_of(jobs, **market), [plan_of([job], **market) for job in jobs]
    assert together.search.staged < sum(plan.search.staged for plan in each)
    for mine, plan in zip(together.assignments, each, strict=True):
        (alone,) = plan.assignments
        assert (mine.cost_usd, mine.nodes, mine.duration_days) == (alone.cost_usd, alone.nodes, alone.duration_days)


def test_a_service_runs_and_pays_from_its_first_hour_within_a_period():
    whole, part = (json.loads(to_json(plan_of([{"name": "chat", "workload": CHAT, "from": first}], horizon={
        "start": "2027-01-04", "length": "28 d", "period": "4 d"}, sourcing={"rent": RENT})))
        for first in ("2027-01-08", "2027-01-10T12:00"))
    assert part["assignments"][0]["start"] == part["supply"][0]["start"] == "2027-01-10T12:00:00Z"
    days = [(24, whole), (21.5, part)]
    assert len({round(plan["objective"]["value"] / length, 6) for length, plan in days}) == 1
