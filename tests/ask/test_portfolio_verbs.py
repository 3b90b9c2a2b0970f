"""Every verb on a portfolio: what a limit is worth, other pools, other hardware, one job more, its page and files."""

from __future__ import annotations

import csv
import json
import re
from datetime import datetime
from functools import cache
from io import StringIO

import pytest

import planner as python
from planner.answer.explanation import Explanation
from planner.answer.schema import Plan
from planner.errors import InputError
from tests.cli.conftest import planner  # noqa: F401 - the fixture that runs the command

RUN = {"kind": "training", "model": "llama-3.1-8b", "tokens": "20 G", "stack": "megatron-core"}
ASKED = {
    "name": "Two weeks", "horizon": {"start": "2027-01-04", "length": "14 d"},
    "hardware": {"candidates": ["dgx-h100", "dgx-h200"]},
    "jobs": [{"name": "a", "workload": RUN, "deadline": "2027-01-08"},
             {"name": "b", "workload": RUN, "deadline": "2027-01-10", "late": "500 USD/d"},
             {"name": "c", "workload": RUN, "deadline": "2027-01-08", "worth": "1,000 USD"}],
    "sourcing": {"own": [{"node": "dgx-h100", "nodes": 1}], "rent": {"providers": ["nebius"], "quota": {
        "dgx-h100": 1, "dgx-h200": 1}}},
    "limits": {"budget": "3,500 USD"},
}


def changed(**jobs: dict) -> dict:
    return {**ASKED, "jobs": [{**job, **jobs.get(job["name"], {})} for job in ASKED["jobs"]]}


@cache
def explained() -> Explanation:
    return python.explain(ASKED)


@cache
def planned() -> Plan:
    return python.plan(ASKED)


@cache
def value(text: str) -> float:
    """Return money and what is forgone, which plans minimize together."""
    plan = python.plan(json.loads(text))
    assert plan.status == "optimal"
    worth = sum(1000 for one in plan.assignments if one.status == "rejected")
    assert plan.objective.value is not None
    return plan.objective.value + worth


def cost(asked: dict) -> float:
    return value(json.dumps(asked))


def test_what_a_limit_is_worth_is_the_difference_of_two_plans():
    found = {one.limit: one for one in explained().worth}
    assert found.keys() == {"budget", "quota.dgx-h100", "quota.dgx-h200", "own.dgx-h100", "a.deadline", "b.deadline",
                            "c.deadline"}
    base = cost(ASKED)
    later = cost(changed(b={"deadline": "2027-01-11"}))
    assert found["b.deadline"].saves == pytest.approx(base - later, abs=1e-6)
    two = {**ASKED, "sourcing": {**ASKED["sourcing"], "own": [{"node": "dgx-h100", "nodes": 2}]}}
    assert found["own.dgx-h100"].saves == pytest.approx(base - cost(two), abs=1e-6)
    assert found["own.dgx-h100"].binds
    without = {**ASKED, "limits": {}}
    assert found["budget"].without == pytest.approx(base - cost(without), abs=1e-6)


def test_why_not_is_the_same_question_with_one_job_held_to_a_pool():
    two = {**ASKED, "jobs": ASKED["jobs"][:2]}
    told = {next(iter(one.asked.items())): one for one in python.explain(
        two, why_not=["a=rent", "b=dgx-h200", "a=buy", "a=h100"]).why_not}
    assert told["a", "buy"].verdict == "not offered"
    assert told["a", "h100"].verdict in ("is the plan", "tied")
    held = told["b", "dgx-h200"]
    assert held.verdict == "worse"
    assert held.assignment is not None
    assert held.assignment.node == "dgx-h200"
    # what is left to the other job: the owned node as before, so that only the second job costs more
    alone = cost({**two, "jobs": two["jobs"][1:], "hardware": {"candidates": ["dgx-h200"]},
                  "sourcing": {"rent": {"providers": ["nebius"]}}})
    first = cost({**two, "jobs": two["jobs"][:1]})
    assert held.value == pytest.approx(alone + first, abs=1e-6)
    assert held.excess == pytest.approx(held.value / cost(two) - 1)
    for wrong in ("nobody", "nobody=rent", "a=", "a=h9000"):
        with pytest.raises(InputError):
            python.explain(ASKED, why_not=wrong)


def test_what_is_rejected_says_what_it_would_take():
    plan, told = planned(), explained().why_not
    rejected = [one.job for one in plan.assignments if one.status == "rejected"]
    assert rejected == ["c"]
    (one,) = [one for one in told if one.asked == {"c": "planned"}]
    must = cost(changed(c={"worth": "900,000 USD"}))
    assert one.value == pytest.approx(must, abs=1e-6)


def test_compare_is_a_plan_for_each_node_type_and_way_alone():
    rows = python.compare(ASKED).rows
    assert {(row.node, row.kind) for row in rows} == {("dgx-h100", "owned"), ("dgx-h100", "rent"), ("dgx-h200", "rent")}
    for row in rows:
        sourcing = {"own": ASKED["sourcing"]["own"]} if row.kind == "owned" else {
            "rent": {"providers": ["nebius"], "quota": {row.node: 1}}}
        alone = python.plan({**ASKED, "hardware": {"candidates": [row.node]}, "sourcing": sourcing})
        assert (row.status, row.cost_usd) == (alone.status, alone.objective.value)
        assert row.rejected == (None if row.why_not else sum(a.status == "rejected" for a in alone.assignments))


@pytest.mark.parametrize(("job", "admitted"), [
    ({"release": "2027-01-12"}, True), ({"deadline": "2027-01-08", "worth": "10 USD"}, False)])
def test_a_job_more_costs_the_difference_and_moves_no_more_than_it_must(tmp_path, job, admitted):
    new = {"name": "new", "workload": RUN, **job}
    (tmp_path / "job.yaml").write_text(json.dumps(new))
    plan = python.plan(ASKED, add=tmp_path / "job.yaml")
    assert plan.added is not None
    assert (plan.added.jobs, plan.added.admitted, plan.added.moved) == (("new",), admitted, ())
    together, before = python.plan({**ASKED, "jobs": [*ASKED["jobs"], new]}), planned()
    assert plan.objective.value == pytest.approx(together.objective.value)
    assert plan.added.usd == pytest.approx(together.objective.value - before.objective.value)


def test_a_job_that_cannot_be_added_says_why(planner, tmp_path):  # noqa: F811
    (tmp_path / "all.yaml").write_text(json.dumps(ASKED))
    (tmp_path / "job.yaml").write_text(json.dumps({"name": "new", "workload": RUN, "deadline": "2027-01-05"}))
    ran = planner("plan", "-q", tmp_path / "all.yaml", "--add", tmp_path / "job.yaml")
    assert ran.code == 3
    assert "new: no layout finishes in the 24 h that it has" in ran.out
    (tmp_path / "job.yaml").write_text("name: new\nwrkload: 3\n")
    ran = planner("plan", tmp_path / "all.yaml", "--add", tmp_path / "job.yaml")
    assert (ran.code, "job.yaml:2: unknown key 'wrkload'" in ran.err) == (2, True)
    ran = planner("plan", "llama-3.1-70b-pretrain", "--add", tmp_path / "job.yaml")
    assert (ran.code, "--add is for a portfolio" in ran.err) == (2, True)


def test_jobs_are_added_as_people_write_them(tmp_path):
    work = {key: value for key, value in RUN.items() if key != "kind"}
    (tmp_path / "all.yaml").write_text(json.dumps({**{key: value for key, value in ASKED.items() if key != "jobs"},
                                                   "tasks": ASKED["jobs"]}))
    for said in ({"name": "new", **work, "start": "January 12", "due": "13 d"},
                 [{"title": "new", **work, "depends_on": ASKED["jobs"][0]["name"]}], {"tasks": {"new": work}}):
        (tmp_path / "job.yaml").write_text(json.dumps(said))
        plan = python.plan(str(tmp_path / "all.yaml"), add=tmp_path / "job.yaml")
        assert (plan.added.jobs, plan.added.admitted) == (("new",), True)


def test_a_job_is_varied_by_its_name(planner, tmp_path):  # noqa: F811
    file = tmp_path / "all.yaml"
    file.write_text(json.dumps(ASKED))
    ran = planner("sweep", file, "--vary", "jobs.b.deadline=2027-01-10,2027-01-11", "--workers", "1")
    plans = [json.loads(line)["plan"] for line in ran.out.splitlines()]
    assert [plan["provenance"]["scenario"]["jobs"][1]["deadline"] for plan in plans] == ["2027-01-10", "2027-01-11"]
    ran = planner("sweep", file, "--vary", "jobs.x.deadline=2027-01-10")
    assert (ran.code, "did you mean jobs." in ran.err) == (2, True)


def test_the_page_the_calendar_and_the_table_have_every_stretch_of_work(planner, tmp_path):  # noqa: F811
    (tmp_path / "all.yaml").write_text(json.dumps(ASKED))
    plan = json.loads(planner("plan", "--json", tmp_path / "all.yaml").out)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    for name in ("page.html", "when.ics", "when.csv"):
        assert planner("report", tmp_path / "plan.json", "-o", tmp_path / name).code == 0
    assert "ends in .html, .ics or .csv" in planner("report", tmp_path / "plan.json", "-o", "when.xlsx").err
    worked = [(a["workload"], s["start"], s["end"]) for a in plan["assignments"] for s in a.get("segments") or ()]
    rows = list(csv.DictReader(StringIO((tmp_path / "when.csv").read_text())))
    assert [(row["workload"], row["start"], row["end"]) for row in rows if row["status"] == "planned"] == worked
    assert [row["workload"] for row in rows if row["status"] == "rejected"] == ["c"]
    calendar = (tmp_path / "when.ics").read_bytes().decode()
    events = re.findall(r"DTSTART:(\S+)\r\nDTEND:(\S+)\r\nSUMMARY:(\w+)", calendar)
    assert events == [(start.replace("-", "").replace(":", ""), end.replace("-", "").replace(":", ""), name)
                      for name, start, end in worked]
    assert all(len(line.encode()) <= 75 for line in calendar.split("\r\n"))
    # a period of a day is in use as a whole where a job runs in it
    days = sum(-(-(datetime.fromisoformat(s["end"].removesuffix("Z")) - datetime.fromisoformat(s["start"].removesuffix(
        "Z"))).total_seconds() // 86400) for a in plan["assignments"] if a["sourcing"] == "owned"
        for s in a.get("segments") or ())
    page = (tmp_path / "page.html").read_text()
    assert f"1 node, {days / 14:.0%} in use" in page
    assert re.findall('class="tick"[^>]*>([^<]*)<', page.split('aria-label="Timeline"')[1])[:2] == [
        "4 Jan 2027", "8 Jan"]
    assert ">Jan 2027</text>" in page.split('aria-label="Money by month')[1]
    assert f" {days / 14:.0%} " in next(line for line in planner("plan", tmp_path / "all.yaml").out.split(
        "Supply")[1].splitlines() if "own dgx-h100" in line)
    assert page.count("<rect") >= len(worked) + len(plan["cash"])
    assert all(f"{name}: {start[:10]} to {end[:10]}" in page for name, start, end in worked)


def test_a_schedule_is_only_of_many_jobs(planner, tmp_path):  # noqa: F811
    asked = ("--model", "llama-3.1-8b", "--tokens", "1G", "--on", "dgx-h100", "--stack", "megatron-core")
    (tmp_path / "plan.json").write_text(planner("plan", "--json", *asked).out)
    ran = planner("report", tmp_path / "plan.json", "-o", tmp_path / "when.ics")
    assert (ran.code, "only a portfolio of jobs has a schedule" in ran.err) == (2, True)


def test_a_shipped_portfolio_reads_back_from_its_plan(planner, tmp_path):  # noqa: F811
    """What a plan says it answers is the question again, a service among the jobs included."""
    service = {"name": "chat", "workload": {"kind": "serving", "model": "llama-3.1-8b", "rate": "2 requests/s",
                                            "input": 500, "output": 100, "ttft": "2 s", "tpot": "50 ms"}}
    (tmp_path / "all.yaml").write_text(json.dumps({**ASKED, "jobs": [service]}))
    plan = json.loads(planner("plan", "--json", tmp_path / "all.yaml").out)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    assert planner("report", tmp_path / "plan.json", "-o", tmp_path / "page.html").code == 0
    assert python.plan(plan["provenance"]["scenario"]).objective.value == plan["objective"]["value"]


def test_a_log_is_replayed_on_the_nodes_that_are_there_at_a_time(planner, tmp_path):  # noqa: F811
    """Two jobs on the same rented node, one after the other, are a fleet of one node."""
    asked = {**ASKED, "hardware": {"candidates": ["dgx-h100"]}, "limits": {}, "jobs": [
        {"name": "a", "workload": RUN}, {"name": "b", "workload": RUN, "after": "a"}],
        "sourcing": {"rent": {"providers": ["nebius"], "quota": {"dgx-h100": 1}}}}
    (tmp_path / "all.yaml").write_text(json.dumps(asked))
    (tmp_path / "plan.json").write_text(planner("plan", "--json", tmp_path / "all.yaml").out)
    assert len(json.loads((tmp_path / "plan.json").read_text())["supply"]) == 2
    (tmp_path / "log.csv").write_text("submit,seconds,gpus\n0,60,8\n0,60,8\n")
    ran = planner("simulate", tmp_path / "plan.json", "--jobs", tmp_path / "log.csv", "--json")
    found = json.loads(ran.out)
    assert (ran.code, found["nodes"], found["wait_seconds"]["longest"]) == (0, 1, 60)
    (tmp_path / "wrong.json").write_text("{}")
    ran = planner("simulate", tmp_path / "wrong.json", "--jobs", tmp_path / "log.csv")
    assert (ran.code, "expected the output of planner plan --json" in ran.err) == (2, True)
