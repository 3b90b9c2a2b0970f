"""Services from files, from flags and from both: names looked up, defaults said, and the two kinds kept apart."""

from pathlib import Path

import pytest

import planner
from planner.catalog.load import Catalog, data_root
from planner.errors import InputError, UnknownName, Unsupported
from planner.scenario.demand import Arrivals, Level
from planner.scenario.files import trace_file
from planner.scenario.load import load_any, load_work, paths_of, shipped
from planner.scenario.resolve import format_of, resolve_serving
from planner.scenario.scenario import Scenario, ServingScenario, only_training
from planner.sweeping.variants import varied
from tests.asked import load_scenario
from tests.scenario.said import said

CHAT, TRACED, TRAINED = "llama-3.3-70b-chat", "azure-conversation", "llama-3.1-70b-pretrain"
CATALOG = Catalog()
BARE = {"workload.model": "Llama-3.3-70B-Instruct", "workload.rate": "20", "workload.input": "2000",
        "workload.output": "300", "hardware.candidates": "dgx-h100"}
FILE = """\
workload:
  kind: serving
  model: llama-3.1-8b
  trace: own.csv
hardware: {candidates: [l4]}
"""


def test_the_chat_scenario_is_the_question_of_the_issue():
    scenario, defaults = load_any(CHAT, {}, CATALOG)
    assert isinstance(scenario, ServingScenario)
    (service,) = scenario.services
    assert (service.model, service.rate, service.input.mean, service.output.mean) == ("llama-3.3-70b", 20, 2000, 300)
    assert (service.ttft, service.tpot) == (Level(2.0, 95.0), Level(0.05, 95.0))
    assert service.quantization == ("bf16", "fp8")
    assert len({CATALOG.node(node).gpu for node in scenario.hardware.candidates}) == 10
    assert said(defaults) == ["engine=vllm", "kv_cache=auto", "arrivals=poisson", "percentile=p95"]


def test_resolving_again_changes_nothing():
    scenario, _ = load_any(CHAT, {}, CATALOG)
    assert resolve_serving(scenario, CATALOG) == (scenario, [])


@pytest.mark.parametrize("name", shipped("serving"))
def test_shipped_services_run_on_what_exists(name):
    scenario, _ = load_any(name, {}, CATALOG)
    for service in scenario.services:
        assert CATALOG.model(service.model).name == service.model
        assert service.quantization
        assert service.trace is None or trace_file(service.trace).is_file()
    assert {CATALOG.node(node).name for node in scenario.hardware.candidates} == set(scenario.hardware.candidates)


def test_shipped_scenarios_are_of_every_kind_and_each_of_one():
    assert sorted(shipped("training") + shipped("serving") + shipped("diffusion") + shipped("generation")
                  + shipped("posttraining") + shipped("portfolio")) == shipped()
    assert {CHAT, TRACED} <= set(shipped("serving"))
    assert all(isinstance(load_any(name, {}, CATALOG)[0], Scenario) for name in shipped("training"))


def test_flags_alone_make_a_service_and_every_default_is_said():
    scenario, defaults = load_any(None, BARE, CATALOG)
    (service,) = scenario.services
    assert (service.model, service.engine, service.quantization) == ("llama-3.3-70b", "vllm", ("bf16",))
    assert service.arrivals == Arrivals(1.0)
    assert said(defaults) == ["engine=vllm", "kv_cache=auto", "quantization=bf16", "arrivals=poisson",
                              "terms=on-demand"]


def test_without_hardware_every_node_type_with_an_admitted_offer_is_a_candidate():
    scenario, defaults = load_any(None, {k: v for k, v in BARE.items() if k != "hardware.candidates"}, CATALOG)
    assert {"dgx-h100", "l4-1x", "mi300x-platform"} <= set(scenario.hardware.candidates)
    assert said(defaults)[-1] == f"candidates={','.join(scenario.hardware.candidates)}"


@pytest.mark.parametrize(("model", "expected"), [
    ("deepseek-ai/DeepSeek-V3", "fp8"), ("gpt-oss-120b", "mxfp4"), ("Llama-3.3-70B-Instruct-FP8", "fp8"),
    ("meta-llama-3.1-70b-instruct-awq", "int4"), ("Llama-3.1-8B-Instruct-quantized.w8a8", "int8"),
    ("llama-3.1-8b-gptq-int8", "gptq-int8"), ("llama-3.1-8b-bnb-4bit", "nf4"), ("llama-3.1-8b", "bf16")])
def test_the_format_is_of_the_name_or_of_the_published_checkpoint(model, expected):
    scenario, defaults = load_any(None, BARE | {"workload.model": model}, CATALOG)
    assert scenario.services[0].quantization == (expected,)
    assert f"quantization={expected}" in said(defaults)
    stated, defaults = load_any(None, BARE | {"workload.model": model, "workload.quantization": "int4,fp8"}, CATALOG)
    assert stated.services[0].quantization == ("int4", "fp8")
    assert not [one for one in said(defaults) if one.startswith("quantization")]


def test_a_name_without_a_format_asks_for_none():
    assert format_of("meta-llama/Llama-3.3-70B-Instruct") is None


def test_defaults_of_several_services_name_theirs():
    scenario, defaults = load_any("chat-and-code", {}, CATALOG)
    assert [service.label for service in scenario.services] == ["chat", "code"]
    assert "chat.arrivals=poisson" in said(defaults)
    assert not [one for one in said(defaults) if one.startswith("code.arrivals")]


def test_a_flag_overrides_a_file_and_the_rest_stays():
    scenario, _ = load_any(CHAT, {"workload.rate": "300 requests/min", "limits.budget": "500USD/h"}, CATALOG)
    assert (scenario.services[0].rate, scenario.services[0].output.mean) == (5.0, 300)
    assert scenario.limits.budget == 500


@pytest.mark.parametrize(("reference", "overrides", "message"), [
    (TRAINED, {"workload.rate": "20"}, r"^--x: applies to a service; this scenario is training"),
    (CHAT, {"workload.tokens": "1T"}, r"^--x: applies to training; this scenario is a service"),
    (None, BARE | {"workload.tokens": "1T"}, "applies to training; this scenario is a service"),
    (CHAT, {"limits.deadline": "3 d"}, r"^--x: a service has no deadline"),
    (CHAT, {"workload.engine": "vlm"}, r"^--x: unknown engine 'vlm'; did you mean vllm\?"),
    (CHAT, {"workload.model": "llama-9"}, r"^--x: unknown model 'llama-9'"),
    ("chat-and-code", {"workload.rate": "5"}, r"^--x: the scenario has several workloads"),

    (TRAINED, {"workload.kind": "frob"},
     "expected 'training' or 'serving' or 'diffusion' or 'generation' or 'posttraining', "
     "got 'frob'"),
])
def test_the_two_kinds_are_kept_apart(reference, overrides, message):
    with pytest.raises(InputError, match=message):
        load_any(reference, overrides, CATALOG, labels=dict.fromkeys(overrides, "--x"))


def test_a_file_of_both_kinds_is_refused_by_line(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(FILE.replace("  trace: own.csv", "  tokens: 15 T"))
    with pytest.raises(InputError, match=r"s.yaml:4: workload.tokens: applies to training"):
        load_any(str(path), {}, CATALOG)


def test_what_takes_training_alone_says_so():
    with pytest.raises(Unsupported, match="not supported: what was asked of a workload of kind: serving"):
        load_scenario(CHAT, {}, CATALOG)
    training, _ = load_scenario(TRAINED, {}, CATALOG)
    assert only_training(training, "compare") is training


def test_a_trace_is_found_beside_its_scenario_and_below_the_shipped_ones(tmp_path, monkeypatch):
    (tmp_path / "s.yaml").write_text(FILE)
    with pytest.raises(InputError, match=r"s.yaml:4: workload.trace: no such file 'own.csv': a path is seen from"):
        load_any(str(tmp_path / "s.yaml"), {}, CATALOG)
    (tmp_path / "own.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    scenario, _ = load_any(str(tmp_path / "s.yaml"), {}, CATALOG)
    assert trace_file(scenario.services[0].trace) == tmp_path / "own.csv"
    monkeypatch.chdir(tmp_path)
    scenario, _ = load_any(TRACED, {}, CATALOG)
    assert scenario.services[0].trace == "traces/azure-llm-2023-conv.csv"
    assert trace_file(scenario.services[0].trace) == data_root("scenarios") / "traces" / "azure-llm-2023-conv.csv"
    scenario, _ = load_any(TRACED, {"workload.trace": "own.csv"}, CATALOG, labels={"workload.trace": "--vary"})
    assert Path(scenario.services[0].trace) == tmp_path / "own.csv"


def test_one_service_is_read_from_flags_for_an_estimate():
    given = {"workload.model": "deepseek-v3", "workload.concurrency": "64", "workload.input": "2000"}
    scenario, _ = load_work(None, given | {"workload.output": "300"}, CATALOG)
    assert (scenario.workload.concurrency, scenario.workload.quantization) == (64, ("fp8",))
    with pytest.raises(InputError, match=r"^--input: 'x' is not a length"):
        load_work(None, given | {"workload.input": "x"}, CATALOG, labels={"workload.input": "--input"})


def test_a_sweep_varies_what_services_have():
    lists = paths_of(None, CATALOG)
    (rates,) = varied(["workload.rate=10,20"], lists)
    assert rates.values == ("10", "20")
    assert varied(["workload.quantization=fp8,bf16+fp8"], lists)[0].values == ("fp8", "bf16+fp8")
    with pytest.raises(UnknownName, match=r"did you mean workload\.rate"):
        varied(["workload.rates=1,2"], lists)


def test_requests_without_lengths_have_usual_ones_and_the_answer_says_so() -> None:
    made = planner.plan(model="qwen2.5-1.5b", rate=1, on="t4-1x")
    said = {default.name: default.value for default in made.provenance.defaults}
    assert (said["input"], said["output"]) == ("1155 tokens", "211 tokens")
    assert made == planner.plan(model="qwen2.5-1.5b", rate=1, on="t4-1x", input=1155, output=211).model_copy(
        update={"provenance": made.provenance, "search": made.search})
    assert made.assignments[0].layout.precision == "fp16", "Turing has no bf16"
