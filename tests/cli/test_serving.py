"""Serving through the command line: estimate, plan, compare, simulate, and what they refuse."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.physics.serving.capacity import CacheInput, capacity
from planner.physics.serving.formats import format_of
from planner.physics.serving.sequences import Cut
from tests.cli.conftest import Ran

SMALL = ("--model", "llama-3.1-8b", "--input", "1000", "--output", "100")
PLAN = ("plan", *SMALL, "--rate", "20", "--ttft", "2s", "--tpot", "80ms", "--on", "h100-sxm-1x")
ESTIMATE = ("estimate", *SMALL, "--node", "dgx-h100")
TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:00:{at // 10:02d}.{at % 10}000000,{500 + at},{20 + at % 7}\n" for at in range(300))


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Return a folder with the JSON of two plans, one of two services, and a trace; made once."""
    folder = tmp_path_factory.mktemp("plans")
    (folder / "trace.csv").write_text(TRACE)
    one = "{kind: serving, name: %s, model: %s, rate: 5, input: 800, output: 50, quantization: [bf16]}"
    (folder / "two.yaml").write_text("workloads:\n" + "".join(
        f"  - {one % pair}\n" for pair in (("chat", "llama-3.1-8b"), ("code", "qwen2.5-7b"))) +
        "hardware: {candidates: [h100-sxm-1x]}\n")
    for name, args in (("one", PLAN), ("two", ("plan", str(folder / "two.yaml")))):
        with redirect_stdout(StringIO()) as printed:
            assert main([*args, "--json"]) == 0
        (folder / f"{name}.json").write_text(printed.getvalue())
    return folder


def refused(ran: Ran, *said: str) -> None:
    """Check exit code 2, silence on stdout, and what the message names."""
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    for part in said:
        assert part in ran.err


@pytest.mark.parametrize(("tp", "name", "engine"), [(1, "bf16", "vllm"), (2, "fp8", "vllm"), (4, "bf16", "sglang")])
def test_an_estimate_holds_what_capacity_does(planner, tp: int, name: str, engine: str) -> None:
    ran = planner(*ESTIMATE, "--layout", f"tp={tp}", "--quantization", name, "--engine", engine, "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    catalog = Catalog()
    model, gpu, software = catalog.model("llama-3.1-8b"), catalog.gpu("h100-sxm"), catalog.engine(engine)
    weights = format_of(catalog.formats, name, model)
    assert weights is not None
    held = capacity(CacheInput(model, weights, catalog.formats.cache("bf16"), software, software.release(None),
                          gpu.usable_memory, length=1100, architecture=gpu.architecture),
                    Cut(np.array([tp]), np.array([1])))
    assert found["serving"]["kv_tokens"] == int(held.tokens[0])
    assert found["serving"]["max_batch"] <= held.concurrency[0]
    assert found["gpus"] == tp
    assert sum(found["memory"]["components"].values()) == found["memory"]["peak_bytes"]


def test_an_estimate_that_does_not_fit_is_an_answer(planner) -> None:
    big = ("estimate", "--model", "llama-3.1-405b", "--input", "2000", "--output", "300", "--node", "dgx-h100")
    four = planner(*big, "--layout", "tp=4", "--quantization", "fp8", "--json")
    assert (four.code, json.loads(four.out)["memory"]["fits"]) == (0, "does not fit")
    assert planner(*big, "--layout", "tp=4", "--quantization", "fp8", "-q").out.startswith("Does not fit")
    eight = planner(*big, "--layout", "tp=8", "--quantization", "fp8", "--json")
    assert (eight.code, json.loads(eight.out)["memory"]["fits"]) == (0, "fits")


def test_an_estimate_is_at_a_concurrency_a_rate_or_at_most(planner) -> None:
    def rate(*more: str) -> float:
        found = json.loads(planner(*ESTIMATE, "--layout", "tp=1", "--json", *more).out)
        return float(found["serving"]["requests_per_second"])

    assert rate("--concurrency", "1") < rate("--concurrency", "16") < rate("--concurrency", "64") <= rate() * 1.01
    assert rate("--rate", "5") == pytest.approx(5, rel=0.01)
    assert rate("--gpus", "4") == pytest.approx(4 * rate())


@pytest.mark.parametrize(("layout", "said"), [
    ("vpp=2", "'vpp' is not an axis of a serving layout: tp, pp, ep, dp"), ("tp=3", "does not divide the 32 heads"),
    ("tp=0", "tp=0 is not a whole number above zero"),
    ("tp=x", "tp=x"), ("pp=99", "more than the 32 layers"),
    ("ep=2", "mixtures of experts"), ("dp=2", "mixtures of experts"), ("tp", "'tp' is not AXIS=VALUE"),
    ("tp=2,tp=4", "'tp' is given twice")])
def test_a_layout_that_does_not_exist_is_refused(planner, layout: str, said: str) -> None:
    refused(planner(*ESTIMATE, "--layout", layout), "--layout", said)


@pytest.mark.parametrize(("flags", "said"), [
    (("--gpus", "3", "--layout", "tp=2"), "--gpus 3 is not a multiple of the 2 GPUs"),
    (("--quantization", "fp8,bf16"), "an estimate is for one format"),
    (("--concurrency", "0"), "--concurrency"),
    (("--concurrency", "4", "--rate", "3"), "rate and concurrency are given")])
def test_an_estimate_refuses(planner, flags: tuple[str, ...], said: str) -> None:
    refused(planner(*ESTIMATE, *flags), said)


@pytest.mark.parametrize(("flags", "said"), [
    (("--pareto", "cost,gpus"), "--pareto is for one training job"),
    (("--prefer", "simple"), "--prefer is for one training job"), (("--deadline", "3 d"), "a service has no deadline"),
    (("--rate", "-1"), "--rate"), (("--rate", "0"), "--rate"), (("--ttft", "2"), "--ttft: '2' has no unit"),
    (("--tpot", "fast"), "--tpot"), (("--tokens", "3G"), "--tokens"), (("--quantization", "fp3"), "got 'fp3'"),
    (("--engine", "vlm"), "--engine: unknown engine 'vlm'; did you mean vllm"), (("--input", "0"), "--input"),
    (("--objective", "time"), "expected 'cost', 'gpus', 'energy', 'rate' or 'users', got 'time'"),
    (("--replay", "no.csv"), "no.csv")])
def test_a_plan_of_a_service_refuses(planner, flags: tuple[str, ...], said: str) -> None:
    refused(planner(*PLAN, *flags), said)


def test_a_replay_of_training_and_of_several_services_is_refused(planner, saved) -> None:
    trace = saved / "trace.csv"
    refused(planner("plan", "--model", "llama-3.1-8b", "--tokens", "1G", "--on", "dgx-h100", "--replay", trace),
            "--replay is for services")
    refused(planner("plan", saved / "two.yaml", "--replay", trace), "--replay", "--workload NAME")


@pytest.mark.parametrize(("line", "said"), [
    ("2023-11-16 18:00:01,12", "bad.csv:4: 2 values in a row of 3 columns"), ("2023-11-16 18:00:01,x,3", "'x'"),
    ("yesterday,5,3", "'yesterday'"),
    ("2023-11-16 18:00:01,-5,3", "-5")])
def test_a_bad_line_of_a_trace_is_named(planner, tmp_path, line: str, said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("".join([*TRACE.splitlines(True)[:3], line, "\n"]))
    refused(planner(*PLAN, "--replay", path), str(path), said)


@pytest.mark.parametrize(("key", "said"), [
    ("disaggregated: sometimes", "disaggregated"), ("spare_replicas: -1", "spare_replicas"),
    ("headroom: 3000%", "headroom"), ("prefix_hits: 1.5", "prefix_hits"), ("arrivals: {cv: -1}", "arrivals"),
    ("day: [1, 2]", "day"), ("concurrency: 4", "rate and concurrency"), ("input: {mean: 3}", "input"),
    ("speculative: {tokens: 0, acceptance: 0.5}", "speculative"), ("trace: no.csv", "rate and trace"),
    ("ttft: 2 s at p30", "p30")])
def test_a_wrong_key_of_a_service_is_named(planner, tmp_path, key: str, said: str) -> None:
    path = tmp_path / "q.yaml"
    lines = ["kind: serving", "model: llama-3.1-8b", "rate: 3", "input: 100", "output: 10"]
    lines = [line for line in lines if line.partition(":")[0] != key.partition(":")[0]]
    path.write_text("workload:\n" + "".join(f"  {line}\n" for line in [*lines, key]) +
                    "hardware: {candidates: [h100-sxm-1x]}\n")
    refused(planner("plan", path), str(path), said)


def test_a_plan_goes_through_a_file_into_a_replay(planner, saved) -> None:
    ran = planner("simulate", saved / "one.json", "--trace", saved / "trace.csv", "--json")
    found, plan = json.loads(ran.out), json.loads((saved / "one.json").read_text())
    assert (ran.code, found["schema"], found["requests"], found["rejected"]) == (0, "planner.simulation/1", 300, 0)
    serving = plan["assignments"][0]["serving"]
    assert found["replicas"] == serving["replicas"]
    assert found["computed"] == {"ttft": serving["ttft_seconds"], "tpot": serving["tpot_seconds"]}
    for latency in found["latency_seconds"].values():
        assert latency["p50"] <= latency["p90"] <= latency["p95"] <= latency["p99"]
    assert 0 < found["busy_share"] <= 1
    again = planner("simulate", saved / "one.json", "--trace", saved / "trace.csv", "--json")
    assert again.out == ran.out
    drawn = [planner("simulate", saved / "one.json", "--json", "--seed", seed).out for seed in ("0", "3", "3")]
    assert drawn[0] == planner("simulate", saved / "one.json", "--json").out != drawn[1] == drawn[2]
    refused(planner("simulate", saved / "one.json", "--trace", saved / "trace.csv", "--seed", "3"), "--seed draws")
    text = planner("simulate", saved / "one.json", "--trace", saved / "trace.csv", "--policy", "round-robin")
    assert "requests met every latency target for llama-3.1-8b" in " ".join(text.out.split())


def test_a_plan_replays_a_trace_in_place_of_drawn_requests(planner, saved) -> None:
    ran = planner(*PLAN, "--replay", saved / "trace.csv", "--json")
    replayed = json.loads(ran.out)["assignments"][0]["serving"]["replayed"]
    simulated = json.loads(planner("simulate", saved / "one.json", "--trace", saved / "trace.csv", "--json").out)
    assert replayed["requests"] == 300
    # the prompts' tables are made beside the batch of the largest rate here, of the planned one there
    for name in ("ttft", "tpot"):
        assert replayed[f"{name}_seconds"]["p50"] == pytest.approx(simulated["latency_seconds"][name]["p50"], rel=0.1)


def test_one_of_several_services_is_named_for_a_replay(planner, saved) -> None:
    trace = ("--trace", saved / "trace.csv")
    refused(planner("simulate", saved / "two.json", *trace), "--workload", "chat, code")
    refused(planner("simulate", saved / "two.json", *trace, "--workload", "cod"), "no service 'cod'")
    ran = planner("simulate", saved / "two.json", *trace, "--workload", "code", "--json")
    assert (ran.code, json.loads(ran.out)["workload"]) == (0, "code")


def test_what_is_no_serving_plan_is_not_replayed(planner, saved, tmp_path) -> None:
    trace = ("--trace", saved / "trace.csv")
    training = json.loads((saved / "one.json").read_text())
    training["provenance"]["scenario"] = {"workload": {"kind": "training", "model": "llama-3.1-8b"}}
    for name, text in (("t.json", json.dumps(training)), ("e.json", "{}"), ("x.json", "nothing")):
        (tmp_path / name).write_text(text)
        refused(planner("simulate", tmp_path / name, *trace))
    refused(planner("simulate", tmp_path / "none.json", *trace), "none.json")
    refused(planner("simulate", saved / "one.json", "--trace", tmp_path / "none.csv"), "none.csv")
    no = planner(*PLAN, "--ttft", "1ms", "--json")
    assert no.code == 3
    (tmp_path / "no.json").write_text(no.out)
    refused(planner("simulate", tmp_path / "no.json", *trace), "no replicas", "infeasible")


def test_a_comparison_of_services_exits_3_only_where_none_has_a_plan(planner) -> None:
    wide = (*PLAN[1:], "--on", "l4-1x,h100-sxm-1x", "--rate", "3", "--tpot", "20ms")
    ran = planner("compare", *wide, "--json")
    rows = json.loads(ran.out)["rows"]
    assert ran.code == 0
    assert {row["status"] for row in rows} == {"optimal", "infeasible"}
    assert planner("compare", *wide, "--ttft", "1ms", "-q").code == 3
    refused(planner("compare", *wide, "--trace"), "compare --trace")


def test_the_text_of_a_plan_says_the_level_as_computed_and_as_replayed(planner) -> None:
    text = " ".join(planner(*PLAN).out.split())
    for part in ("Cheapest: ", "proven optimal", "computed computed replayed replayed", "TTFT", "event by event"):
        assert part in text


@pytest.mark.parametrize("moments", [("18:15:46",), ("18:15:46", "18:15:46")])
def test_requests_that_come_all_at_once_are_replayed_and_have_no_rate(saved, planner, tmp_path, moments):
    """A trace of one request, or of one moment, ended in exit 70: its rate is infinite."""
    lines = [f"2023-11-16 {moment},500,50\n" for moment in moments]
    (tmp_path / "t.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(lines))
    ran = planner("simulate", saved / "one.json", "--trace", tmp_path / "t.csv", "--json")
    assert (ran.code, json.loads(ran.out)["requests_per_second"]) == (0, None)
    ran = planner("simulate", saved / "one.json", "--trace", tmp_path / "t.csv")
    assert f"{len(moments)}, all at once" in ran.out
    (tmp_path / "s.yaml").write_text("workload: {kind: serving, model: llama-3.1-8b, trace: t.csv, ttft: 2 s}\n"
                                     "hardware: {candidates: [h100-sxm-1x]}\n")
    ran = planner("plan", tmp_path / "s.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "within 0 s: no rate that a service can be planned for" in ran.err


@pytest.mark.parametrize(("flags", "named"), [
    (("--layout", "foo=bar", "--max", "model"), "'foo'"), (("--layout", "cp=3;foo", "--max", "model"), "cp=3;foo"),
    (("--layout", "tp=8", "--max", "model", "--stack", "nope"), "'nope'")])
def test_what_no_model_can_be_estimated_with_is_an_error_and_no_answer(planner, flags, named):
    """It was "No model fits", exit 0."""
    ran = planner("estimate", "--node", "dgx-h100", *flags)
    assert (ran.code, ran.out) == (2, "")
    assert named in ran.err


def test_json_has_an_estimate_where_nothing_fits(planner):
    """Stdout was empty, at exit 0."""
    ran = planner("-q", "estimate", "--model", "llama-3.1-405b", "--node", "dgx-h100", "--layout", "tp=8", "--max",
                  "micro-batch", "--json")
    assert (ran.code, json.loads(ran.out)["memory"]["fits"]) == (0, "does not fit")


def test_any_fleet_is_simulated(planner):
    fleet = ("--node", "h100-sxm-1x", "--rate", "20", "--ttft", "2s", "--tpot", "80ms")
    ran = planner("simulate", *SMALL, *fleet, "--gpus", "2", "--json")
    assert json.loads(ran.out)["replicas"] == 2
    refused(planner("simulate", *SMALL, "--rate", "20"), "--node")
    refused(planner("simulate", *SMALL, "--node", "h100-sxm-1x"), "give --rate, --users or --trace")
    refused(planner("simulate", "--model", "llama-3.1-8b", "--tokens", "1G", "--node", "dgx-h100"), "training question")


@pytest.mark.parametrize("asked", [
    ("--tokens", "1T", "--on", "dgx-h100"), ("--rate", "20", "--input", "1000", "--output", "200", "--ttft", "2s"),
    ("--documents", "1M", "--input", "1000", "--output", "200")], ids=["training", "service", "batch"])
@pytest.mark.parametrize("verb", ["plan", "compare", "explain"])
def test_the_time_limit_holds_for_every_kind_and_verb(planner, verb, asked):
    ran = planner(verb, "--model", "llama-3.1-8b", *asked, "--time-limit", "0.001", "--json")
    assert ran.code == 4
    found = json.loads(ran.out)
    # compare also has rows of hardware that nobody offers
    assert {row["status"] for row in found.get("rows", [found]) if row.get("offer", "") is not None} == {"undecided"}
    assert ran.seconds < 3


def test_a_replay_speaks_of_latency_targets_only_where_there_are_some(planner) -> None:
    replay = ("simulate", *SMALL, "--node", "h100-sxm-1x", "--gpus", "1", "--rate", "2", "-q")
    assert "1 replica; no latency target is given" in planner(*replay).out
    for target in ("--ttft", "--e2e"):
        assert "100.0% of 4,000 requests met every latency target" in planner(*replay, target, "30s").out
