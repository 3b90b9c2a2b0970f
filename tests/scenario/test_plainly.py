"""Files as people write them: keys at the top, in a job, relative to the start; and samples of unknown lengths."""

from __future__ import annotations

from typing import Any

import pytest

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.headings import read_headings
from planner.scenario.load import load_any, load_question
from planner.scenario.model_notes import text_notes
from planner.scenario.plainly import TOP, in_blocks, with_bought
from planner.scenario.portfolio import Portfolio
from planner.scenario.scenario import Scenario
from planner.yaml_io import Document

WORK = {"model": "llama-3.1-8b", "method": "lora", "tokens": "50 M"}
JOB = {"name": "tune", **WORK, "deadline": "3 d", "count": 2}


def portfolio(**blocks: Any) -> Portfolio:
    scenario, _ = load_question({"horizon": "30d", "own": "2xdgx-h100", "jobs": [JOB], **blocks}, {}, Catalog())
    assert isinstance(scenario, Portfolio)
    return scenario


def test_a_portfolio_in_few_words_is_the_one_in_many() -> None:
    long = {"horizon": {"start": "2027-01-04", "length": "30 d"}, "own": None,
            "sourcing": {"own": [{"node": "dgx-h100", "nodes": 2}]},
            "jobs": [{"name": "tune", "workload": {"kind": "training", **WORK}, "deadline": "2027-01-07", "count": 2}]}
    said = {key: value for key, value in long.items() if value is not None}
    spoken, _ = load_question(said, {}, Catalog())
    assert portfolio() == spoken
    assert portfolio(own=[{"node": "dgx-h100", "count": 2}]) == spoken


def test_a_date_is_a_span_from_the_start_also_of_nothing() -> None:
    assert portfolio(jobs=[{**JOB, "release": "0 d"}]).jobs[0].release == portfolio().horizon.start


def test_a_job_with_a_load_is_a_service() -> None:
    chat = {"name": "chat", "model": "llama-3.1-8b", "rate": "5 requests/s", "input": 1000, "output": 200,
            "from": "2 d"}
    asked = portfolio(jobs=[JOB, chat]).jobs[1]
    assert (asked.workload.kind, asked.from_ and asked.from_.day) == ("serving", 6)


def test_a_scenario_without_blocks_is_read() -> None:
    flat, _ = load_any({**WORK, "on": ["8xh100"], "budget": "100 USD", "max-nodes": 1}, {}, Catalog())
    blocks, _ = load_any({"workload": {"kind": "training", **WORK}, "hardware": {"candidates": ["8xh100"]},
                          "limits": {"budget": "100 USD", "max_nodes": 1}}, {}, Catalog())
    assert isinstance(flat, Scenario)
    assert flat == blocks


def test_a_file_is_of_the_work_that_its_keys_and_model_say() -> None:
    def kind(given: dict[str, Any], **flags: str) -> str:
        return load_any(given, flags, Catalog())[0].workload.kind
    assert kind({"model": "llama-3.1-8b", "rate": 3, "on": "h100"}) == "serving"
    assert kind({"model": "llama-3.1-8b", "on": "h100"}, **{"workload.rate": "3 requests/s"}) == "serving"
    assert kind({"model": "sdxl", "rate": "100 images/min"}) == "generation"
    assert kind({"model": "llama-3.1-8b", "tokens": "1T"}) == "training"


def test_what_is_said_twice_is_refused() -> None:
    asked = {"own": "dgx-h100", "sourcing": {"own": {"dgx-h100": 1}}}
    with pytest.raises(InputError, match="own is given twice: alone, and under sourcing"):
        in_blocks(Document(asked, "", {}), Catalog().recipes.requests)


@pytest.mark.parametrize(("terms", "left"), [("buy", None), ("on-demand, buy", ["on-demand"]), ("spot", "spot")])
def test_buying_is_asked_for_beside_terms(terms: str, left: object) -> None:
    said = with_bought({"sourcing.rent.terms": terms}, {})
    assert said.get("sourcing.rent.terms") == left
    assert said.get("sourcing.buy.utilization") == (0.8 if "buy" in terms else None)
    served = with_bought({"sourcing.rent.terms": terms, "workload.rate": 2}, {})
    assert served.get("sourcing.buy.utilization") == (1.0 if "buy" in terms else None)  # it has its nodes all day


def test_samples_of_unknown_length_are_no_longer_than_a_sequence() -> None:
    asked, defaults = load_any(None, {"workload.model": "llama-3.1-8b", "workload.method": "lora",
                                      "workload.samples": "1k", "workload.sequence_length": 2048,
                                      "hardware.candidates": ["8xh100"]}, Catalog())
    assert isinstance(asked, Scenario)
    assert asked.workload.tokens == 1000 * 2048
    assert any("mean_length says less" in default.why for default in defaults)


@pytest.mark.parametrize(("method", "said"), [("lora", "every sample is counted with 4,096 tokens"),
                                             ("dpo", "every answer is counted with 2,048 tokens")])
def test_samples_of_unknown_length_are_pointed_out(method: str, said: str) -> None:
    asked = {"model": "llama-3.1-8b", "method": method, "samples": "50k"}
    def notes(**more: Any) -> tuple[str, ...]:
        return text_notes(load_any({**asked, **more}, {}, Catalog())[1])
    assert any(note.startswith(said) for note in notes())
    assert not notes(mean_length=600)


def test_owned_gpus_of_a_portfolio_are_nodes_of_them() -> None:
    scenario, _ = load_question({"horizon": "30d", "own": "4x4090", "jobs": [JOB]}, {}, Catalog())
    assert isinstance(scenario, Portfolio)
    assert [(owned.node, owned.nodes) for owned in scenario.sourcing.own] == [("rtx-4090-4x", 1)]


@pytest.mark.parametrize(("guessed", "meant"), [
    ({"slo": {"ttft_p95": "1.5s", "tpot_ms": 45}, "requests_per_second": 6},
     {"ttft": "1.5s at p95", "tpot": "45 ms", "rate": "6/second"}),
    ({"workload": {"type": "serving", "model": "llama-3.1-8b", "requests_per_second": 6, "input_tokens": 800},
      "hardware": {"gpus": ["h100", "h200"]}},
     {"workload": {"kind": "serving", "model": "llama-3.1-8b"}, "rate": "6/second", "input": 800,
      "on": ["h100", "h200"]}),
    ({"latency": {"ttft": {"max": "5s", "percentile": 95}, "tpot": {"p99": "60ms"}}, "e2e": {"target": "9s"},
      "requests": {"prefix_cache_hits": 0.8}}, {
          "ttft": "5s at p95", "tpot": "60ms at p99", "e2e": "9s", "prefix_hits": 0.8}),
    ({"dataset": {"samples": 35000, "avg_tokens": 900}, "epochs": 3}, {
        "samples": 35000, "mean_length": 900, "epochs": 3}),
    ({"cluster": {"node": "dgx-h100", "nodes": 16}, "limits": {"max_days": 45}}, {
        "on": "dgx-h100", "max_nodes": 16, "deadline": "45 days"}),
    ({"model": {"name": "llama-3.1-8b"}, "lora": {"rank": 32}, "batch": {"size": 64}}, {
        "model": "llama-3.1-8b", "lora_rank": 32, "global_batch": 64}),
    ({"gpus": "16xh100", "models": ["llama-3.1-8b"]}, {"on": ["16xh100"], "model": "llama-3.1-8b"}),
    ({"hardware": ["h100", "h200"], "own": {"dgx-h100": 2}}, {"hardware": {"candidates": ["h100", "h200"]},
                                                              "own": {"dgx-h100": 2}})])
def test_blocks_and_keys_as_people_call_them(guessed: dict[str, Any], meant: dict[str, Any]) -> None:
    usual = Catalog().recipes.requests
    found = read_headings(guessed, TOP, usual)
    assert {key: value for key, value in found.items() if value != {}} == meant


@pytest.mark.parametrize(("guessed", "told"), [
    ({"slo": {"beauty": 3}}, "slo.beauty"), ({"slo": {"ttft": "1s"}, "ttft": "2s"}, "mean the same"),
    ({"limts": {"deadline": "3 d"}, "limits": {"deadline": "9 d"}},
     "limts.deadline and limits.deadline mean the same"),
    ({"training": {"lr": 1e-4}}, "leave it out")])
def test_what_nobody_knows_below_a_heading_is_refused(guessed: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_headings(guessed, TOP, Catalog().recipes.requests)


@pytest.mark.parametrize(("asked", "batch"), [
    ({"on": "8xa100", "per_device_batch": 2, "grad_accum": 4}, 64),
    ({"on": "4090", "global_batch": 2, "grad_accum": 8}, 16),
    ({"on": "h100", "gpus": 16, "grad_accum": 4}, 64), ({"own": "2xdgx-h100", "micro_batch_size": 1}, 16),
    ({"on": "dgx-h100", "max_nodes": 2, "per_device_batch": 1}, 16)])
def test_the_batch_of_a_step_follows_from_that_of_a_gpu(asked: dict[str, Any], batch: int) -> None:
    work = {"model": "llama-3.1-8b", "method": "lora", "tokens": "50 M"}
    assert load_any({**work, **asked}, {}, Catalog())[0].workload.global_batch.sequences == batch


def test_steps_are_tokens_and_answers_are_drawn_in_groups() -> None:
    asked, said = load_any({"model": "llama-3.1-8b", "method": "qlora", "steps": 1000, "global_batch": 16,
                            "sequence_length": 1024, "on": "t4"}, {}, Catalog())
    assert asked.workload.tokens == 1000 * 16 * 1024
    assert any("1,000 steps of 16 sequences" in default.why for default in said)
    drawn, _ = load_any({"model": "qwen2.5-7b", "method": "grpo", "on": "8xh100", "per_device_batch": 8,
                         "grad_accum": 4, "samples_per_prompt": 16}, {}, Catalog())
    assert drawn.workload.prompts == 8 * 4 * 8 // 16


def test_a_year_is_planned_unless_said() -> None:
    planned, said = load_question({"own": "2xdgx-h100", "jobs": [JOB]}, {}, Catalog())
    assert isinstance(planned, Portfolio)
    assert (planned.horizon.periods, next(each.value for each in said if each.name == "horizon")) == (
        364, "364 d from 2027-01-04")
