"""A portfolio as it is written: what is read, and what is refused with file, key and reason."""

from datetime import datetime

import pytest

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.horizon import USUAL
from planner.scenario.load import load_any, load_question
from planner.scenario.moment import months_since
from planner.scenario.recurring import expect_in_time
from planner.scenario.writing import to_yaml
from planner.yaml_io import parse

RUN = {"kind": "training", "model": "llama-3.1-8b", "tokens": "1 G"}
CHAT = {"kind": "serving", "model": "llama-3.1-8b", "rate": "5 requests/s", "input": 1000, "output": 200}
GRPO = {"model": "qwen2.5-7b", "method": "grpo", "steps": 50, "input": 512, "output": 1500}
STYLE = {"kind": "diffusion", "model": "sdxl", "steps": 1000}
PICTURES = {"kind": "generation", "model": "sdxl", "rate": "0.2 images/s", "e2e": "60 s"}
CATALOG = Catalog()


def asked(jobs=None, **blocks):
    return {"horizon": {"start": "2027-01-04", "length": "8 weeks"}, "hardware": {"candidates": ["dgx-h100"]},
            "jobs": jobs or [{"name": "base", "workload": RUN}], **blocks}


def job(**keys):
    return [{"name": "base", "workload": RUN, **keys}]


def test_a_portfolio_is_read_and_written_back():
    portfolio, _ = load_question(asked(
        [{"name": "base", "workload": RUN, "deadline": "2027-02-01", "late": "20,000 USD/d"},
         {"name": "tune", "workload": RUN, "after": "base", "every": "1 week"},
         {"name": "chat", "workload": CHAT, "from": "2027-02-01T12:00", "growth": "10%/month"}],
        sourcing={"own": [{"node": "dgx-h100", "nodes": 2}]}), {}, CATALOG)
    assert (portfolio.horizon.periods, portfolio.jobs[0].late, portfolio.jobs[1].after) == (56, 20_000, ("base",))
    assert portfolio.jobs[2].from_ == datetime(2027, 2, 1, 12)
    assert portfolio.sourcing.rent is None
    again, _ = load_question(parse(to_yaml(portfolio), "again.yaml").data, {}, CATALOG)
    assert again == portfolio


def test_a_deadline_is_that_of_every_instance():
    back = {"name": "tune", "workload": RUN, "release": "2027-01-11", "every": "1 week", "deadline": "2027-02-01"}
    with pytest.raises(InputError, match=r"released 2027-02-22: give count: 3, or a later deadline"):
        load_question(asked([back]), {}, CATALOG)
    with pytest.raises(ValueError, match="give a later deadline, or for each instance its own"):
        # no number of instances would do: the first is released with the deadline
        expect_in_time("jobs.0", USUAL, None, 86_400, None, USUAL.start, None, None)
    for more in ({"count": 3}, {"late": "20 USD/d"}, {"worth": "200 USD"}, {"deadline": "2027-02-23"}):
        load_question(asked([{**back, **more}]), {}, CATALOG)


@pytest.mark.parametrize("said", ["8 h", "within 8 h", "8 h after release", "8 h after each release"])
def test_a_span_is_the_deadline_of_each_instance(said):
    portfolio, told = load_question(asked(job(release="2027-01-11", every="1 week", deadline=said)), {}, CATALOG)
    (back,) = portfolio.jobs
    assert [back.due(released) for released in (datetime(2027, 1, 11), datetime(2027, 1, 18))] == [
        datetime(2027, 1, 11, 8), datetime(2027, 1, 18, 8)]
    assert back.time_given(portfolio.horizon) == 8 * 3600
    assert ("base.deadline", "8 h from each release") in [(one.name, one.value) for one in told]
    again, _ = load_question(parse(to_yaml(portfolio), "again.yaml").data, {}, CATALOG)
    assert again == portfolio
    # what does not come back is due from the start of the horizon, or from the release that it names
    once, _ = load_question(asked(job(release="2027-01-11", deadline="2 weeks")), {}, CATALOG)
    named, _ = load_question(asked(job(release="2027-01-11", deadline="2 weeks after release")), {}, CATALOG)
    assert (once.jobs[0].deadline, named.jobs[0].deadline) == (datetime(2027, 1, 18), datetime(2027, 1, 25))


@pytest.mark.parametrize("blocks", [
    {"limits": {"budget_by_quarter": {"2027-Q1": "4 MUSD", "2027-Q2": "3 MUSD"}}},
    {"limits": {"budget_by_quarter": {"q2": "3 MUSD", "Q1 2027": 4_000_000}}},
    {"limits": {"budget_by_quarter": ["4 MUSD", "3 MUSD"]}}, {"budget_by_quarter": {"Q1": "4M", "Q2": "3M"}},
    {"limits": {"budget": {"Q1": "4 MUSD", "Q2": "3 MUSD"}}},
    {"budget": {"by_quarter": {"Q1": "4 MUSD", "Q2": "3 MUSD"}}}])
def test_quarters_have_budgets_of_their_own(blocks):
    horizon = {"start": "2027-01-04", "length": "39 weeks", "period": "1 week"}
    portfolio, told = load_question({**asked(), "horizon": horizon, **blocks}, {}, CATALOG)
    assert portfolio.limits.budget_by_quarter == {"2027-Q1": 4e6, "2027-Q2": 3e6}
    assert [one.value for one in told if one.name == "budget_by_quarter"] == ["none in 2027-Q3, 2027-Q4"]
    again, _ = load_question(parse(to_yaml(portfolio), "again.yaml").data, {}, CATALOG)
    assert again == portfolio


@pytest.mark.parametrize(("budget", "limits"), [
    ("4 MUSD/quarter", (None, 4e6)), ("4 MUSD per quarter", (None, 4e6)), ("4 MUSD", (4e6, None)),
    ({"total": "12 MUSD", "quarter": "4 MUSD"}, (12e6, 4e6))])
def test_a_budget_is_of_all_or_of_a_quarter(budget, limits):
    portfolio, _ = load_question(asked(limits={"budget": budget, "max_nodes": 9}), {}, CATALOG)
    assert (portfolio.limits.budget, portfolio.limits.budget_by_quarter) == limits
    assert portfolio.limits.max_nodes == 9


def test_money_of_a_job_is_in_any_currency():
    (paid,) = load_question(asked(job(worth="100 kEUR", deadline="2027-02-01", late="500 EUR/d")), {}, CATALOG)[0].jobs
    dollars = load_question(asked(limits={"budget": "100 kEUR"}), {}, CATALOG)[0].limits.budget
    assert paid.worth == dollars > 100_000
    assert paid.late == pytest.approx(dollars / 200)


def test_jobs_that_are_waited_for_are_listed_with_commas():
    jobs = [{"name": name, "workload": RUN} for name in "ab"]
    portfolio, _ = load_question(asked([*jobs, {"name": "c", "workload": RUN, "after": "a, b"}]), {}, CATALOG)
    assert portfolio.jobs[2].after == ("a", "b")


def test_nodes_are_maintained_several_times():
    times = [["2027-02-01", "2027-02-03"], {"from": "2027-02-10", "until": "2027-02-11"}]
    portfolio, _ = load_question(asked(sourcing={"own": [{"node": "dgx-h100", "nodes": 2, "maintenance": times}]}),
                                 {}, CATALOG)
    assert portfolio.sourcing.own[0].maintenance == ((datetime(2027, 2, 1), datetime(2027, 2, 3)),
                                                     (datetime(2027, 2, 10), datetime(2027, 2, 11)))
    again, _ = load_question(parse(to_yaml(portfolio), "again.yaml").data, {}, CATALOG)
    assert again == portfolio


def test_any_kind_of_work_is_a_job():
    # who leaves the kind out says it by the model, and rl is a word for one
    works = {"grpo": GRPO, "style": STYLE, "pictures": PICTURES, "batch": {"model": "sdxl", "samples": 1000},
             "label": {**CHAT, "rate": None, "documents": 1000}, "dpo": {**RUN, "method": "dpo"},
             "open": {"model": "sdxl", "steps": 1000}, "ppo": {**GRPO, "kind": "RL", "method": "ppo"}}
    portfolio, _ = load_question(asked([{"name": name, "workload": work} for name, work in works.items()]), {}, CATALOG)
    assert [job.workload.kind for job in portfolio.jobs] == ["posttraining", "diffusion", "generation", "generation",
                                                             "serving", "training", "diffusion", "posttraining"]
    assert [job.name for job in portfolio.jobs if not job.ends] == ["pictures"]
    again, _ = load_question(parse(to_yaml(portfolio), "again.yaml").data, {}, CATALOG)
    assert again == portfolio


@pytest.mark.parametrize(("key", "said", "meant"), [
    ("release", "2027-02", "2027-02-01"), ("release", "January", "2027-01-04"), ("release", "Feb 1", "2027-02-01"),
    ("deadline", "February", "2027-02-01"), ("deadline", "end of January", "2027-02-01"),
    ("deadline", "mid-February 2027", "2027-02-15"), ("deadline", "2027-02-01T12:00Z", "2027-02-01T12:00"),
    ("deadline", "2027-02-01T12:00:30+00:00", "2027-02-01T12:00:30"), ("release", "Q1", "2027-01-04"),
    ("every", "week", "7 d"), ("every", "weekly", "7 d"), ("every", "2 weeks", "14 d")])
def test_dates_are_said_by_the_calendar(key, said, meant):
    portfolio, defaults = load_question(asked(job(**{key: said})), {}, CATALOG)
    assert portfolio.jobs[0].model_dump(mode="json", by_alias=True)[key] == meant
    assert [default.value for default in defaults if default.name == f"base.{key}"] == (
        [meant] if said in ("January", "Feb 1", "February", "Q1", "end of January") else [])


@pytest.mark.parametrize(("horizon", "first", "days"), [
    ({"start": "2027-01", "end": "2027-12"}, "2027-01-01", 365), ("2027-Q2", "2027-04-01", 91),
    (2027, "2027-01-01", 365), ("8 weeks", "2027-01-04", 56)])
def test_a_horizon_is_a_year_a_quarter_or_ends_with_a_month(horizon, first, days):
    portfolio, _ = load_question(asked(horizon=horizon), {}, CATALOG)
    assert (f"{portfolio.horizon.start:%Y-%m-%d}", portfolio.horizon.periods) == (first, days)


@pytest.mark.parametrize("maintenance", [["2027-02-01", "2027-02-05"], {"from": "2027-02-01", "until": "2027-02-05"},
                                         ["Feb 1", "5 February"], ["4 weeks", "32 d"]])
def test_nodes_are_maintained_and_bought_as_people_say_it(maintenance):
    portfolio, _ = load_question({"portfolio": asked(sourcing={"buy": True, "own": [
        {"node": "dgx-h100", "nodes": 2, "maintenance": maintenance}]})}, {}, CATALOG)
    assert portfolio.sourcing.own[0].maintenance == ((datetime(2027, 2, 1), datetime(2027, 2, 5)),)
    assert portfolio.sourcing.buy is not None
    month, _ = load_question(asked(sourcing={"own": [
        {"node": "dgx-h100", "nodes": 2, "maintenance": "February", "from": "January", "until": "end of Q1"}]}), {},
                              CATALOG)
    (owned,) = month.sourcing.own
    assert owned.maintenance == ((datetime(2027, 2, 1), datetime(2027, 2, 28)),)
    assert (owned.from_, owned.until) == (datetime(2027, 1, 4), datetime(2027, 4, 1))


def test_keys_of_a_portfolio_are_read_at_its_top():
    flat = {**asked(job(value="30 kUSD")), "delivery": "12 weeks",
            "quota": {"dgx-h100": 3}, "site_power": "50 kW", "own": [{"node": "dgx-h100", "nodes": 2,
                                                                     "available_from": "2027-01-10"}],
            "terms": ["on-demand", "buy"], "horizon": {"start": "2027-01-04", "length": "8 weeks", "step": "1 week"}}
    portfolio, _ = load_question(flat, {}, CATALOG)
    sourcing = portfolio.sourcing
    assert (sourcing.buy.delivery, sourcing.rent.quota) == (84 * 86_400, {"dgx-h100": 3})
    assert (sourcing.rent.terms, sourcing.own[0].from_) == (("on-demand",), datetime(2027, 1, 10))
    assert (portfolio.limits.site_power, portfolio.horizon.periods, portfolio.jobs[0].worth) == (50_000, 8, 30_000)


@pytest.mark.parametrize("own", [{"dgx-h100": 4}, [{"node": "dgx-h100", "nodes": 4, "maintenance": "2027-02-01"}]])
def test_a_number_of_nodes_is_varied_by_their_type(own):
    data = asked(sourcing={"own": own, "rent": {"quota": {"dgx-h100": 3}}})
    portfolio, _ = load_question(data, {"sourcing.own.dgx-h100": "2", "sourcing.rent.quota.dgx-h100": "1"}, CATALOG)
    (owned,) = portfolio.sourcing.own
    assert (owned.nodes, portfolio.sourcing.rent.quota) == (2, {"dgx-h100": 1})
    assert (owned.maintenance is None) == isinstance(own, dict)


@pytest.mark.parametrize(("data", "words"), [
    (asked(job(after=["other"])), "after: 'other' is not a job: base"),
    (asked([{"name": "a", "workload": RUN, "after": ["b"]}, {"name": "b", "workload": RUN, "after": ["a"]}]),
     "a, b wait for each other"),
    (asked([*job(after=["chat"]), {"name": "chat", "workload": CHAT}]), "a service, which never ends"),
    (asked([*job(), *job()]), "jobs.1.name: 'base' is given twice"),
    (asked(job(release="2027-02-01", deadline="2027-01-20")), "deadline 2027-01-20 is not after the release"),
    (asked(job(deadline="2028-01-01")), "deadline 2028-01-01 is outside the horizon, 2027-01-04 to 2027-03-01"),
    (asked(job(deadline="2027-02-30")), "there is no such day"),
    (asked(job(deadline="02/03/2027")), "may be two days: write 2027-02-03 or 2027-03-02"),
    (asked(sourcing={"rent": {"quota": 16}}), "a quota is of a node type: write for example {dgx-h100: 16}"),
    (asked(limits={"budget_by_quarter": {"2027-Q3": "1 MUSD"}}), "2027-Q3 is outside the horizon, 2027-01-04 to"),
    (asked(limits={"budget_by_quarter": {"spring": "1 MUSD"}}), "'spring' is not a calendar quarter"),
    (asked(limits={"budget_by_quarter": {"Q1": "1 parsec"}}), "2027-Q1: unknown unit 'parsec'"),
    (asked(limits={"budget_by_quarter": {}}), "expected an amount, or quarters with theirs"),
    (asked(limits={"budget": "4 MUSD/quarter", "budget_by_quarter": "3 MUSD"}), "given twice: give one of them"),
    (asked(job(deadline="5 d", release="2027-02-01")), "or as 3 d after release from there"),
    (asked(job(deadline="Q1")),
     "deadline Q1 is its first day, 2027-01-01, and the horizon begins 2027-01-04: write end of Q1"),
    (asked(job(every="5 weeks", release="2027-02-01")), "so that it is never released"),
    (asked(job(optional=True)), "worth: 20 kUSD says that a job may be left out"),
    (asked(job(duration="10 d")), "how long a job takes follows from its model and its tokens"),
    (asked(job(every="fortnight")), "'fortnight' is not a span of time"),
    (asked(job(deadline="someday")), "is not a date: write for example 2027-06-30"),
    (asked(job(late="5 kUSD/d")), "there is none: give deadline"),
    (asked(job(growth="10%/month")), "growth applies to a service"),
    (asked(job(every="10 weeks")), "every is longer than the horizon"),
    (asked([{"name": "chat", "workload": CHAT, "deadline": "2027-02-01"}]), "deadline applies to a job that ends"),
    (asked([{"name": "base", "workload": {**RUN, "tokens": None}}]), "workload.tokens: required"),
    (asked([{"name": "base", "workload": {**RUN, "rate": "5 requests/s"}}]),
     "rate: applies to a service; this job is training"),
    (asked([{"name": "base", "workload": {**RUN, "kind": "cooking"}}]), "expected 'training' or 'serving'"),
    (asked([{"name": "base", "workload": {**STYLE, "steps": None}}]), "workload.steps: required"),
    (asked([{"name": "base", "workload": {**STYLE, "tokens": "1 G"}}]), "this job is training a diffusion model"),
    (asked([{"name": "base", "workload": {**GRPO, "rollouts_on": "l40s"}}]), "workload.rollouts_on: a job"),
    (asked([{"name": "base", "workload": {**PICTURES, "rate": None}}]), "workload.rate: required"),
    (asked([{"name": "base", "workload": {**CHAT, "rate": None}}]), "workload.rate: required"),
    (asked([{"name": "base", "workload": PICTURES, "may_pause": True}]), "may_pause applies to a job that ends"),
    (asked(horizon={"start": "2027-01-04", "length": "8 weeks", "period": "3 d"}),
     "length: 56 d is not a whole number of periods of 3 d: expected 54 d or 57 d"),
    ({**asked(), "jobs": []}, "jobs: expected entries, or no such key, got []"),
    (asked(job(after=["base"])), "base waits for itself (after)"),
    (asked(sourcing={"own": [{"node": "dgx-h100", "nodes": 2, "site": "x"}]}), "from, maintenance, node, nodes, until"),
    (asked(horizon={"start": "2027-01-04", "length": "8 weeks", "period": "90 min"}), "whole hours"),
    (asked(sourcing={"rent": {"quota": {"dgx-h1000": 4}}}), "dgx-h1000"),
    (asked(sourcing={"rent": {"quota": {"dgx-b200": 4}}}),
     "dgx-b200 is no candidate, so that its quota has no effect: candidates are dgx-h100"),
    (asked(sourcing={"own": [{"node": "dgx-h100", "nodes": 2, "maintenance": ["2027-02-02", "2027-02-01"]}]}),
     "its last day is before its first"),
    (asked(limits={"deadline": "30 d"}), "unknown key 'deadline'"),
    (asked(limits={"max_power": {"us-average": "1 MW"}}), "are at one site, sourcing.site"),
    (asked(limits={"max_nodes": {"dgx-h100": 4}}), "of one type have sourcing.rent.quota"),
    (asked(limits={"site_power": "30 kW"}), "site_power: has no effect here: it is of nodes that are owned or bought"),
    (asked(objective="time"), "objective"),
])
def test_what_is_wrong_is_refused_by_name(data, words):
    with pytest.raises(InputError) as error:
        load_question(data, {}, CATALOG)
    assert words in str(error.value)


def test_flags_override_what_all_jobs_share_and_no_single_job():
    portfolio, _ = load_question(asked(), {"limits.budget": "1 MUSD", "hardware.candidates": "dgx-h200"}, CATALOG)
    assert (portfolio.limits.budget, portfolio.hardware.candidates) == (1e6, ("dgx-h200",))
    held, _ = load_question(asked(sourcing={"rent": {"quota": {"dgx-h100": 4}}}), {
        "hardware.candidates": "dgx-h200"}, CATALOG)
    assert held.sourcing.rent.quota == {"dgx-h100": 4}
    with pytest.raises(InputError, match="several jobs"):
        load_question(asked(), {"workload.tokens": "1 G"}, CATALOG, labels={"workload.tokens": "--tokens"})
    with pytest.raises(InputError, match="not supported: a portfolio"):
        load_any(asked(), {}, CATALOG)


@pytest.mark.parametrize(("start", "now", "months"), [
    ("2027-01-31", "2027-02-27", 0), ("2027-01-31", "2027-02-28", 1), ("2027-07-01", "2028-07-01", 12)])
def test_months_go_by_on_the_day_or_the_last_of_a_shorter_month(start, now, months):
    assert months_since(*map(datetime.fromisoformat, (start, now))) == months
