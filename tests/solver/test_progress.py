"""What is told of a search on its way: shares of all its parts, values and bounds that hold what is answered."""

from dataclasses import replace

import pytest

from benchmarks.portfolios import portfolio
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.scenario.load import load_question
from planner.solver import progress
from planner.solver.fleet.schedule import CENT
from planner.solver.fleet.scheduling import telling
from planner.solver.progress import SoFar, part, say

PORTFOLIO = {"horizon": {"start": "2027-01-04", "length": "8 weeks", "period": "7 d"},
             "jobs": [{"name": name, "workload": {"kind": "training", "model": "gpt2", "method": "pretrain",
                                                  "tokens": tokens}, "deadline": "2027-02-01"}
                      for name, tokens in (("a", "1 G"), ("b", "2 G"))],
             "hardware": {"candidates": ["h100-sxm-1x", "l4-1x"]}}


@pytest.fixture
def told(monkeypatch):
    """Return what is told from now on, each time that it could be."""
    heard = []
    monkeypatch.setattr(progress, "tell", lambda news: heard.append(news()))
    return heard


def test_a_part_of_a_part_is_told_as_a_share_of_all(told):
    with part("LoRA", 1, 4), part("on GPUs alone", 1, 2):
        say(lambda: SoFar("gpus", 0.5, 3, 2, "layouts"))
    say(lambda: SoFar("gpus", 0.5, 3, 2))
    assert told == [SoFar("gpus", (1 + (1 + 0.5) / 2) / 4, 3, 2, "LoRA, on GPUs alone, layouts"),
                    SoFar("gpus", 0.5, 3, 2)]


@pytest.mark.parametrize(("asked", "parts"), [
    ({"workload.model": "gpt2"}, ["qlora", "lora", "full"]),
    ({"workload.model": "sdxl", "workload.method": "inference", "workload.rate": "1 images/s",
      "workload.e2e": "20 s", "hardware.candidates": "l4,h100-sxm-1x"}, ["", "requests are replayed on the best"]),
    ({"workload.model": "llama-3.1-8b", "workload.rate": 2, "workload.input": 500, "workload.output": 100,
      "workload.ttft": "2 s", "hardware.candidates": "l4,l40s"},
     ["layouts of replicas", "requests are replayed on the best"]),
    ({"workload.model": "qwen2.5-0.5b", "workload.method": "grpo", "workload.steps": 10,
      "hardware.candidates": "h100-sxm-1x,dgx-h100"}, [""]),
    (PORTFOLIO, ["layouts of a", "schedules of all jobs"])])
def test_every_kind_of_question_tells_how_far_it_is(asked, parts, told):
    catalog = Catalog()
    question, _ = load_question(asked, {}, catalog) if "jobs" in asked else load_question(None, asked, catalog)
    made = make_plan(question, catalog)
    assert made.status == "optimal"
    assert list(dict.fromkeys(one.part.partition(",")[0] for one in told)) == parts
    assert all(0 <= one.done <= 1 and (one.bound is None or one.value is None or one.bound <= one.value)
               for one in told)


def test_bounds_and_values_of_a_portfolio_hold_its_answer(told):
    catalog = Catalog()
    made = make_plan(load_question(PORTFOLIO, {}, catalog)[0], catalog)
    schedules = [one for one in told if one.part == "schedules of all jobs"]
    values = [one.value / 100 for one in schedules if one.value is not None]
    bounds = [one.bound / 100 for one in schedules if one.bound is not None]
    assert values or bounds
    assert min([*values, made.objective.value]) >= made.objective.value - 0.01
    assert max([*bounds, 0]) <= made.objective.value


def test_the_best_schedule_and_bound_of_all_searches_are_told(told):
    """One search after another begins with a dearer schedule and a lower bound than are known by then."""
    heard = telling(replace(portfolio(2, 4, 12, 0), tasks=()))
    for value, bound in ((9 * CENT, None), (None, 3 * CENT), (12 * CENT, CENT), (8 * CENT, 9 * CENT)):
        heard(value, bound)
    assert [(one.value, one.bound) for one in told] == [(None, None), (9, None), (9, 3), (9, 3), (8, 8)]


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_no_bound_told_of_some_candidates_is_above_the_answer_on_another(told, objective):
    """Of a group of candidates the bound is theirs alone, while who waits reads it as that of all."""
    catalog = Catalog()
    question, _ = load_question(None, {
        "workload.model": "llama-3.1-8b", "workload.tokens": "10 G", "workload.stack": "fsdp2", "objective": objective,
        "limits.max_gpus": 16, "hardware.candidates": "l4,a10g,l40s,t4,v100,a100,h100,b200"}, catalog)
    made = make_plan(question, catalog)
    value = made.objective.value * (100 if objective == "cost" else 86400e6)
    searched = [one for one in told if not one.part]
    assert len({one.done for one in searched}) > 3
    assert all(one.bound <= value * (1 + 1e-9) for one in searched if one.bound is not None)
    assert all(one.value >= value * (1 - 1e-9) for one in searched if one.value is not None)
    dones = [one.done for one in searched]
    assert dones == sorted(dones)
