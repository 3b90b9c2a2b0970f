"""Files of questions and portfolios as people write them by guess: other words, other places, keys that are not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.scenario.configs.read import read_config, text_config
from planner.scenario.load import load_question, paths_of
from planner.scenario.portfolio import Portfolio

CATALOG = Catalog()
TUNED = {"model": "llama-3.1-8b", "method": "lora", "samples": "10k", "mean_length": 500, "deadline": "3 d"}
SERVED = {"model": "llama-3.1-8b", "rate": 2, "input": 500, "output": 100}


def asked(data: Any) -> Any:
    return load_question(data, {}, CATALOG)[0]


def portfolio(**more: Any) -> Portfolio:
    found = asked({"jobs": [{"name": "a", **TUNED}, {"name": "b", **SERVED}], "on": "h100", **more})
    assert isinstance(found, Portfolio)
    return found


def test_the_list_of_jobs_has_many_names():
    for data in ({"portfolio": [{"id": "a", **TUNED}]}, {"tasks": {"a": TUNED}}, {"jobs": [{**TUNED, "title": "a"}]}):
        assert [job.name for job in asked({**data, "on": "h100"}).jobs] == ["a"]
    names = [job.name for job in asked({"jobs": [TUNED, TUNED, SERVED | {"model": "qwen3-8b"}], "on": "h100"}).jobs]
    assert names == ["llama-3.1-8b-1", "llama-3.1-8b-2", "qwen3-8b"]


def test_the_keys_of_a_job_have_many_names():
    job = {**{key: value for key, value in TUNED.items() if key != "deadline"}, "end": "2027-02-01", "copies": 3,
           "start": "2027-01-10", "preemptible": True}
    run, service = asked({"jobs": [{"name": "a", **job}, {"name": "b", "start": "2027-03-01", **SERVED},
                                   {"name": "c", "depends_on": "a", **TUNED}], "on": "h100"}).jobs[:2]
    assert (run.count, run.may_pause, f"{run.deadline:%m-%d}", f"{run.release:%m-%d}") == (3, True, "02-01", "01-10")
    assert f"{service.from_:%m-%d}" == "03-01"


@pytest.mark.parametrize(("job", "said"), [
    ({"file": "job.yaml"}, r"jobs.0.file: jobs stand in the portfolio's own file.*--add JOB.yaml"),
    ({"priority": "high", "window": "22:00-06:00"}, r"jobs.0.priority: every job.*jobs.0.window: a job runs at"),
    ({"gpus": 8}, "jobs.0.gpus: a job of a portfolio runs on what is best"), ({"budget": 5}, "budget at the top")])
def test_what_a_job_has_not_is_told_with_what_to_write(job: dict[str, Any], said: str):
    with pytest.raises(InputError, match=said):
        asked({"jobs": [{"name": "a", **TUNED, **job}], "on": "h100"})


def test_a_service_has_no_end():
    with pytest.raises(InputError, match="a service runs until the end of the horizon"):
        asked({"jobs": [{"name": "a", "end": "2027-03-01", **SERVED}], "on": "h100"})


def test_start_and_end_are_the_horizon_and_money_goes_by_quarters():
    found = portfolio(start="2027-01-01", end="2027-06-30", budget_per_quarter="200k")
    assert (f"{found.horizon.start:%Y-%m-%d}", found.horizon.periods) == ("2027-01-01", 180)
    assert found.limits.budget_by_quarter == 200_000
    with pytest.raises(InputError, match="monthly_budget: a portfolio has budget_by_quarter"):
        portfolio(monthly_budget=5000)


@pytest.mark.parametrize(("said", "terms", "owned"), [
    ({"rent": "on-demand"}, ("on-demand",), 0), ({"rent": ["on-demand", "preemptible"]}, ("on-demand", "spot"), 0),
    ({"sourcing": {"spot": True}}, ("spot",), 0), ({"sourcing": ["rent", "spot"]}, ("on-demand", "spot"), 0),
    ({"sourcing": {"rent": {}, "spot": True}}, ("on-demand", "spot"), 0),
    ({"sourcing": {"on_demand": True, "spot": False, "own": "2xdgx-h100"}}, ("on-demand",), 2)])
def test_ways_to_rent_are_named_as_sources(said: dict[str, Any], terms: tuple[str, ...], owned: int):
    sourcing = portfolio(**said).sourcing
    assert sourcing.rent is not None
    assert sourcing.rent.terms == terms
    assert sum(stock.nodes for stock in sourcing.own) == owned


def test_a_source_that_is_refused_is_none():
    sourcing = portfolio(sourcing={"own": "2xdgx-h100", "spot": False}).sourcing
    assert (sourcing.rent, sourcing.own[0].nodes) == (None, 2)
    assert portfolio(sourcing={"buy": {"lead_time": "30 d"}}).sourcing.buy.delivery == 30 * 86_400


@pytest.mark.parametrize(("after", "release"), [
    ("Q1", "2027-04-01"), ("2027-03-01", "2027-03-01"), ("March", "2027-04-01"), ("02/15/2027", "2027-02-15"),
    ("15.2.2027", "2027-02-15")])
def test_a_job_after_a_date_is_released_then(after: str, release: str):
    found = asked({"jobs": [{"name": "a", "after": after, **TUNED, "deadline": "2027-12-01"},
                            {"name": "b", "after": "a", **TUNED, "deadline": "end of 2027"}], "on": "h100"})
    assert (f"{found.jobs[0].release:%Y-%m-%d}", found.jobs[0].after, found.jobs[1].after) == (release, (), ("a",))


def test_a_date_that_may_be_two_days_is_told_with_both():
    with pytest.raises(InputError, match="'03/04/2027' may be two days: write 2027-03-04 or 2027-04-03"):
        asked({"jobs": [{"name": "a", **TUNED, "deadline": "03/04/2027"}], "on": "h100"})


@pytest.mark.parametrize(("horizon", "days"), [
    ({"start": "2027-01-04", "weeks": 26}, 182), ({"quarters": 1}, 90), ({"start": "2027-01-04", "days": 30}, 30),
    ("2027-01-01 to 2027-07-01", 181)])
def test_a_horizon_has_its_length_by_its_unit_or_between_dates(horizon: object, days: int):
    assert portfolio(horizon=horizon).horizon.length == days * 86_400


def test_maintenance_goes_from_one_day_to_another():
    own = [{"node": "dgx-h100", "nodes": 1, "maintenance": "2027-04-05 to 2027-04-07"}]
    ((first, last),) = portfolio(own=own).sourcing.own[0].maintenance or ()
    assert [f"{day:%m-%d}" for day in (first, last)] == ["04-05", "04-07"]


def test_values_of_a_guessed_file_have_their_paths():
    data = {"tasks": {"a": TUNED}, "on": "h100", "own": {"dgx-h100": 2}, "quota": {"dgx-h100": 4}}
    known = paths_of(data, CATALOG).keys()
    assert {"sourcing.own.dgx-h100", "sourcing.rent.quota.dgx-h100", "jobs.a.deadline"} <= known


def test_jobs_that_are_due_within_hours_are_planned_by_the_hour():
    short = {"name": "a", **TUNED, "deadline": "8 h"}
    found, defaults = load_question({"jobs": [short], "on": "h100"}, {}, CATALOG)
    assert (found.horizon.periods, found.horizon.period) == (720, 3600)
    assert any(default.name == "horizon" and "by the hour" in default.value for default in defaults)
    # what comes back, or is due in months, needs the year
    assert asked({"jobs": [{**short, "every": "1 w", "late": "5 USD/h"}], "on": "h100"}).horizon.periods == 364
    assert asked({"jobs": [short, {"name": "b", **TUNED, "deadline": "90 d"}], "on": "h100"}).horizon.periods == 364


def test_a_job_of_images_says_its_kind_by_its_model_before_its_load():
    jobs = asked({"jobs": [
        {"name": "api", "model": "flux.1-dev", "rate": "20 images/min", "steps": 28, "e2e": "20s"},
        {"name": "clips", "model": "wan2.1-t2v-14b", "documents": 20, "frames": 81, "deadline": "3 d"},
        {"name": "style", "model": "flux.1-dev", "method": "lora", "steps": 2000, "deadline": "3 d"}],
        "sourcing": {"own": "4x8xl40s", "rent": {"terms": "on-demand", "on": ["h100-sxm"]}}}).jobs
    assert [job.workload.kind for job in jobs] == ["generation", "generation", "diffusion"]
    assert jobs[1].workload.samples == 20


def test_the_longest_answer_of_reinforcement_learning_is_kept():
    work = {"model": "qwen3-8b", "method": "grpo", "steps": 10, "input": 1024, "on": "h100"}
    assert asked({**work, "output": {"mean": 2000, "max": "8k"}}).workload.max_model_len == 1024 + 8000
    assert asked({**work, "output": {"mean": 2000, "max": 8000}, "max_model_len": 4096}).workload.max_model_len == 4096


@pytest.mark.parametrize(("data", "said"), [
    ({**TUNED, "offers": [{"provider": "x"}]}, r"offers: prices of your own.*DIR/prices/mine.yaml.*--catalogs DIR"),
    ({**TUNED, "colour": "blue"}, "unknown key 'colour'; the keys are those of the flags"),
    ({**TUNED, "dead_line": "3 d", "deadline": None}, "unknown key 'dead_line'; did you mean deadline")])
def test_a_key_that_nobody_knows_is_told_with_those_there_are(data: dict[str, Any], said: str):
    with pytest.raises(InputError, match=said):
        asked({**data, "on": "h100"})


def test_headings_of_training_say_its_method_and_a_kind_of_work_goes_with_it():
    found = asked({"model": "llama-3.1-8b", "training": {"type": "lora", "num_samples": "80k", "avg_tokens": 900},
                   "hardware": ["h100"]})
    assert (found.workload.method, found.workload.tokens) == ("lora", 72_000_000)
    found = asked({"task": "rlhf", "algorithm": "ppo", "policy_model": "qwen3-8b", "steps": 5, "gpu_type": "h100"})
    assert found.workload.method == "ppo"


def test_python_gives_jobs_axes_sets_and_spans_of_time():
    jobs = [{"name": "a", **TUNED, "model": "nobody"}]
    with pytest.raises(UnknownName, match="nobody"):
        planner.plan(jobs=jobs, on={"h100", "a100"})
    with pytest.raises(UnknownName, match="nobody") as caught:
        planner.plan(model="nobody", tokens="1T", deadline=timedelta(days=3))
    assert caught.value.name == "nobody"
    made = planner.estimate("llama-3.1-8b", method="pretrain", node="dgx-h100", tp=8, zero=1, mbs=1, global_batch=64)
    assert (made.tp, made.micro_batch_size, made.num_gpus, made["peak_memory"]) == (
        8, 1, 8, made.memory.peak_bytes)
    assert made.throughput == made.time.tokens_per_second_per_gpu * 8
    assert made.cost is None
    assert made.peak_memory_gb == made.memory.peak_bytes / 1e9
    served = planner.estimate("llama-3.1-8b", node="l40s-1x", input=500, output=100, concurrency=16)
    assert served.throughput == served.serving.output_tokens_per_second_per_gpu
    assert type(made).from_json(made.to_json()).to_json() == made.to_json()
    with pytest.raises(KeyError):
        _ = made["nothing_like_it"]
    with pytest.raises(InputError, match="not the JSON of a"):
        type(made).from_json("{}")


def test_what_others_than_the_owner_ask_reads_no_file(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text("base_model: gpt2\nmicro_batch_size: 1\nsequence_len: 512\n")
    (tmp_path / "zero.json").write_text('{"zero_optimization": {"stage": 3}}')
    line = f"axolotl train {tmp_path}/mine.yaml"
    assert read_config(line).reading.values["workload.model"] == "gpt2"
    with pytest.raises(InputError, match="none of"):
        text_config(line, "config")
    trained = f"base_model: gpt2\nmicro_batch_size: 1\nsequence_len: 512\ndeepspeed: {tmp_path}/zero.json\n"
    with pytest.raises(InputError, match=r"the file .*zero.json is not there"):
        text_config(trained, "config")
