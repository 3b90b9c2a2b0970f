"""The replay has the last word: plans meet their targets on other requests, and one replica fewer does not."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planner
from planner.answer.schema import Plan
from planner.ask.account import Interrupted
from planner.ask.plan import UNREPLAYED, make_plan
from planner.ask.simulate import simulate_plan
from planner.errors import InputError
from planner.jobs.serving import tried_fleet
from planner.jobs.serving.day import day_of
from planner.jobs.serving.replay import requests_of
from planner.jobs.serving.service import services_of
from planner.jobs.serving.simulate import simulate_fleet
from planner.jobs.serving.trial import _traces
from planner.scenario.load import load_any
from planner.simulate.fleet import ReplicaGroup, simulate
from planner.simulate.steps import ReplicaKind
from planner.simulate.trace import Lengths, Trace, synthetic
from tests.jobs.serving.cases import CATALOG, resolved, write
from tests.simulate.test_slotted import Ranks

QUESTIONS: dict[str, dict[str, Any]] = {
    "dense": {"rate": 60, "tpot": "30 ms"},
    "a mixture nearly idle": {"model": "mixtral-8x7b", "rate": 0.26, "input": 2000, "output": 300, "tpot": "20 ms",
                              "hardware": {"candidates": ["dgx-h100"]}},
    "prefill apart": {"model": "llama-3.3-70b", "rate": 12, "input": 4000, "output": 200, "tpot": "40 ms",
                      "disaggregated": "only", "hardware": {"candidates": ["dgx-h100"]}},
}


def drawn(asked: Any, seed: int) -> Trace:
    """Return other requests than those that the plan was found with."""
    lengths = Lengths(asked.input.mean, asked.input.cv), Lengths(asked.output.mean, asked.output.cv)
    return synthetic(asked.rate, lengths, asked.gap_cv, count=4000, seed=seed)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_plan_meets_its_targets_on_other_requests(name: str) -> None:
    scenario = resolved(**QUESTIONS[name])
    plan = make_plan(scenario, CATALOG)
    assert plan.status == "optimal"
    assert plan.objective.by_replay is not None
    assert plan.objective.by_replay.met
    for seed in (11, 12):
        seen = simulate_plan(plan, CATALOG, drawn(scenario.services[0], seed))
        for which, level in scenario.services[0].levels:
            assert seen.latency_seconds[which].p95 <= 1.02 * level.seconds


def burst(seconds: float, rates: tuple[float, float], rest: float) -> Trace:
    """Return requests at one rate for so many seconds, and at another for the rest."""
    first, then = (synthetic(rate, (Lengths(1000), Lengths(100)), seconds=long)
                   for rate, long in zip(rates, (seconds, rest), strict=True))
    return replace(first, arrival=[*first.arrival, *(then.arrival + seconds)], input=[*first.input, *then.input],
                   output=[*first.output, *then.output])


def test_a_burst_of_a_trace_is_held(tmp_path: Path) -> None:
    trace = burst(45, (60, 5), 400)
    lines = [f'{{"timestamp": {at * 1000:.3f}, "input_length": {prompt}, "output_length": {answer}}}'
             for at, prompt, answer in zip(trace.arrival, trace.input, trace.output, strict=True)]
    (tmp_path / "burst.jsonl").write_text("\n".join(lines), encoding="utf-8")
    path = write(tmp_path, rate=None, input=None, output=None, trace="burst.jsonl", ttft="1 s", tpot="40 ms")
    scenario, _ = load_any(str(path), {}, CATALOG)
    plan = make_plan(scenario, CATALOG)
    seen = plan.assignments[0].serving
    assert seen is not None
    assert seen.replicas > 1
    assert seen.replayed is not None
    assert seen.replayed.ttft_seconds.p95 <= 1
    assert plan.objective.by_replay is not None
    assert plan.objective.by_replay.met


def test_the_largest_rate_is_held_and_more_is_not() -> None:
    """The plan for it needs no other GPUs, and by formula a little more than the bound has no fleet."""
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "input": 1000, "output": 300, "tpot": "50 ms", "on": ["l40s-1x"],
                             "engine": "vllm", "quantization": ["bf16"]}
    most = planner.plan(**asked, objective="rate", gpus=2)
    assert most.objective.name == "requests_per_second"
    assert most.objective.by_replay is not None
    assert most.objective.by_replay.met
    rate, bound = most.objective.value, most.objective.value * (1 + most.objective.by_replay.gap)
    assert most.assignments[0].serving.requests_per_second == pytest.approx(rate)
    assert planner.plan(**asked, rate=rate, gpus=2).status == "optimal"
    assert planner.plan(**asked, rate=bound * 1.01, gpus=2).status == "infeasible"


@pytest.mark.parametrize(("more", "said"), [
    ({"on": ["any"]}, "has no end without a limit"), ({"gpus": 2, "rate": 3}, "leave workload.rate out"),
    ({"gpus": 2, "users": 3}, "leave workload.users out")])
def test_the_largest_rate_needs_a_limit_and_no_load(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        planner.plan(**{"model": "llama-3.1-8b", "input": 1000, "output": 300, "on": ["l40s-1x"], "objective": "rate",
                        **more})


DAY = [0.2] * 8 + [1, 1, 0.6] + [0.2] * 13


def test_a_day_is_replayed_hour_by_hour() -> None:
    """Latencies are those of the busiest hour with its replicas, and a trace of an hour is taken as that hour."""
    scenario = resolved(rate=60, tpot="30 ms", day=DAY)
    plan = make_plan(scenario, CATALOG)
    assert plan.status == "optimal"
    (assignment,) = plan.assignments
    served = assignment.serving
    assert served is not None
    assert served.replicas_by_hour is not None
    assert (len(served.replicas_by_hour), max(served.replicas_by_hour)) == (24, served.replicas)
    assert served.replicas_by_hour[0] < served.replicas_by_hour[8] == served.replicas
    assert served.rate_at(8) == pytest.approx(60)
    assert served.replayed is not None
    assert served.replayed.share_within_level_of_day is not None
    assert served.replayed.share_within_level_of_day > 0.95
    assert 2 * 1900 < served.replayed.requests < 2 * 2100
    seen = simulate_plan(plan, CATALOG, drawn(scenario.services[0], 11))
    assert seen.latency_seconds["tpot"].p95 <= 1.02 * 0.030
    assert simulate_plan(plan, CATALOG).requests == served.replayed.requests


def test_a_day_ends_with_its_last_hour_and_its_hours_are_drawn_by_several_seeds() -> None:
    """What comes later would meet the replicas of another hour. An hour alone has fewer requests than the busiest."""
    (service,) = services_of(resolved(rate=60, day=[1, *[0.25] * 23], arrivals={"cv": 4}).services[0], CATALOG)
    found = day_of(service)
    assert found is not None
    day, many = found
    last = [day.warped(requests_of(service, seed=seed, count=many)).arrival for seed in range(8)]
    assert max(arrival[-1] for arrival in last) < 24 * day.seconds
    assert min(map(len, last)) > 0.8 * many
    assert len({float(trace.arrival[-1]) for trace in _traces(service, 0.25)}) == 3


def test_an_embedder_only_reads() -> None:
    """Its requests end with their prompts: no time per token, and no target for one."""
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "input": 512, "output": 0, "on": ["h100-sxm-1x"]}
    plan = planner.plan(**asked, rate=200, ttft="500 ms")
    served = plan.assignments[0].serving
    assert served is not None
    assert plan.objective.by_replay is not None
    assert plan.objective.by_replay.met
    assert (served.tpot_seconds.p95, served.output_tokens_per_second_per_gpu) == (0, 0)
    # 2 FLOPs a weight and token, at no more than the GPU does
    assert 200 * 512 * 2 * 8.03e9 / served.replicas < 989e12
    with pytest.raises(InputError, match="output 0 has none"):
        planner.plan(**asked, rate=200, tpot="20 ms")


def test_a_rate_below_one_may_be_the_largest() -> None:
    most = planner.plan(model="llama-3.1-8b", on=["l4-4x"], input=1000, output=500, ttft="4 s", tpot="100 ms",
                        objective="rate", gpus=1)
    assert most.objective.by_replay is not None
    assert most.objective.by_replay.met
    assert most.objective.value is not None
    assert 0 < most.objective.value < 1


def test_a_burst_that_fills_the_cache_is_worked_off() -> None:
    """Sequences that lose their cache are computed again: a replica may hold a load until a burst has filled it, and
    never recover, which only a long replay shows.
    """
    most = planner.plan(model="llama-3.1-8b", on=["h100-sxm-1x"], input=4000, output=1000, e2e="120 s",
                        objective="rate", gpus=1)
    assert most.objective.value is not None
    seen = simulate_plan(most, CATALOG, synthetic(most.objective.value, (Lengths(4000), Lengths(1000)), count=20000))
    assert seen.preempted
    assert seen.latency_seconds["ttft"].p99 < 60


def test_replicas_of_long_answers_are_replayed_until_they_are_full() -> None:
    """491 requests/s of 8B are more than 21 H100 answer, which takes minutes to show.

    Of 200,000 requests, the first token takes 16 s there at p95; of 4,000 0.14 s.
    """
    plan = planner.plan(model="llama-3.1-8b", on=["dgx-h100"], quantization=["bf16"], rate=491, input=1000,
                        output={"mean": 200, "cv": 1}, ttft="4 s", tpot="100 ms", engine="vllm")
    assert plan.assignments[0].serving.replicas == 22


def test_a_plan_that_misses_says_which_target_by_how_much() -> None:
    plan = planner.plan(model="llama-3.1-8b", rate=24, input=1000, output=100, ttft="1 s", tpot="30 ms", max_nodes=1,
                        on=["gh200"])
    assert plan.objective.by_replay is not None
    assert not plan.objective.by_replay.met
    (missed,) = plan.objective.by_replay.missed
    assert re.fullmatch(r"llama-3.1-8b TPOT [\d.]+ ms at p95, target 30 ms on the requests of seed \d", missed)


def test_without_a_latency_target_gpus_still_have_the_compute_that_is_asked_of_them():
    """No replay refutes a load that nobody waits for by a deadline."""
    plan = planner.plan(model="llama-3.1-8b", rate=100, input=1000, output=300, on="l4", engine="vllm",
                        quantization="bf16")
    gpus = sum(one.gpus for one in plan.assignments)
    needed = 100 * 1300 * 2 * 8.03e9
    assert needed < 0.8 * gpus * 121e12


def test_without_a_target_replicas_work_off_what_comes_as_with_one_that_nobody_misses() -> None:
    """Full caches answer fewer requests than computed: six of these would never work off a burst."""
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "on": ["h100-sxm-1x"], "rate": 40, "input": 300, "output": 1500,
                             "engine": "vllm", "quantization": "bf16"}
    free, loose = planner.plan(**asked), planner.plan(**asked, ttft="100 s", tpot="2 s")
    assert free.objective.value == loose.objective.value


def test_every_hour_of_a_day_is_held_once_its_replicas_have_filled() -> None:
    """Answers take 24 s: a few seconds of requests are over before the replicas of an hour are as full as they get."""
    share, rate = 0.62, 200
    scenario = resolved(rate=rate, input=300, output=800, ttft="2 s", tpot="30 ms", startup="1 s",
                        day=[share, 1.0, *[share] * 22])
    (one,) = make_plan(scenario, CATALOG).assignments
    assert one.serving is not None
    assert one.serving.replicas_by_hour is not None
    quiet = scenario.services[0].model_copy(update={"rate": rate * share, "day": None})

    def p95_of(replicas: int) -> float:
        there = one.serving.model_copy(update={"replicas": replicas, "replicas_by_hour": None})  # type: ignore[union-attr]
        fleet = one.model_copy(update={"serving": there,
                                       "layout": one.layout.model_copy(update={"dp": replicas})})
        return simulate_fleet(quiet, [fleet], CATALOG, seed=11).latency_seconds["tpot"].p95

    enough = one.serving.replicas_by_hour[0]
    assert p95_of(enough) <= 1.02 * 0.03 < p95_of(enough - 1)


def test_where_decode_misses_alone_prefill_apart_is_still_tried_with_less() -> None:
    scenario = resolved(model="deepseek-v3", engine="sglang", rate=10, input=6160, output=555, ttft="1.09 s at mean",
                        tpot="26 ms at p90", disaggregated="only", quantization=None,
                        hardware={"candidates": ["dgx-h100"]})
    plan = make_plan(scenario, CATALOG)
    prefill, decode = sorted(plan.assignments, key=lambda pool: pool.serving.role, reverse=True)  # type: ignore[union-attr]
    assert prefill.serving is not None

    def first_token(replicas: int) -> float:
        there = prefill.serving.model_copy(update={"replicas": replicas})  # type: ignore[union-attr]
        fleet = [prefill.model_copy(update={"serving": there, "layout": prefill.layout.model_copy(update={
            "dp": replicas * prefill.layout.dp // prefill.serving.replicas})}), decode]  # type: ignore[union-attr]
        return simulate_fleet(scenario.services[0], fleet, CATALOG, seed=11).latency_seconds["ttft"].mean

    enough = prefill.serving.replicas
    assert first_token(enough) <= 1.02 * 1.09 < first_token(enough - 1)


TWO: dict[str, Any] = {"model": "llama-3.1-8b", "rate": 20, "input": 1000, "output": 200, "ttft": "1 s",
                       "tpot": "80 ms", "on": "l4,l40s", "engine": "vllm", "quantization": "bf16"}


@cache
def chosen_of_two() -> Plan:
    """Return the plan on one of two GPUs that nothing interrupts."""
    return planner.plan(**TWO)


@pytest.mark.parametrize(("at", "is_replayed"), [(0, False), (1, False), (4, True)])
def test_what_ctrl_c_ends_amid_its_replays_is_the_fleet_so_far(
        at: int, is_replayed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, replays, run = chosen_of_two(), list[object](), tried_fleet.run_hoping

    def interrupted(*given: Any, **more: Any) -> Any:
        replays.append(given)
        if len(replays) == at + 1:
            raise KeyboardInterrupt
        return run(*given, **more)

    monkeypatch.setattr(tried_fleet, "run_hoping", interrupted)
    with pytest.raises(Interrupted) as ended:
        planner.plan(**TWO)
    plan = ended.value.plan
    assert plan.status == "feasible"
    assert len(plan.assignments) >= 1
    assert (UNREPLAYED in plan.notes, plan.objective.by_replay is not None) == (not is_replayed, is_replayed)
    assert plan.objective.value is not None
    assert whole.objective.value is not None
    if is_replayed:
        assert plan.objective.value >= whole.objective.value


def test_what_has_no_use_for_a_part_ends_where_its_replays_are_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "rate": 20, "input": 1000, "output": 200, "ttft": "1 s",
                             "on": "l4,l40s"}
    replays = list[object]()

    def interrupted(*given: Any, **_: Any) -> Any:
        replays.append(given)
        raise KeyboardInterrupt

    monkeypatch.setattr(tried_fleet, "run_hoping", interrupted)
    for verb in (planner.compare, planner.explain):
        replays.clear()
        with pytest.raises(KeyboardInterrupt):
            verb(**asked)
        assert len(replays) == 1, "another offer is not begun"


def test_what_missed_beside_another_kind_may_still_answer_all_that_is_hoped_of_it_alone() -> None:
    """Hardware more to choose from was eight times dearer: rates cut among several kinds were never hoped beyond."""
    asked: dict[str, Any] = {"model": "llama-3.3-70b", "users": 400, "ttft": "0.5 s", "quantization": "bf16",
                             "engine": "vllm"}
    one, both = (planner.plan(**asked, on=on) for on in (["dgx-h100"], ["dgx-h100", "b200-1x"]))
    assert both.objective.value == one.objective.value


def test_hardware_that_missed_beside_others_is_tried_by_itself() -> None:
    asked: dict[str, Any] = {"model": "qwen3-32b", "users": 150, "ttft": "1 s", "tpot": "60 ms", "quantization": "bf16",
                             "engine": "vllm"}
    kinds = ["gh200-96gb-1x", "b200-1x", "h200-sxm-1x", "rtx-6000-ada-2x", "a100-sxm-80gb-1x"]
    both, one = (planner.plan(**asked, on=on) for on in (kinds, kinds[:1]))
    assert both.objective.value <= one.objective.value


def test_more_hardware_serves_no_fewer_users() -> None:
    """Loads are tried until they are within 2%, on the cheapest fleets that replays admit, also below the formula's."""
    asked: dict[str, Any] = {"model": "llama-3.3-70b", "input": 1000, "output": 300, "ttft": "1 s", "tpot": "40 ms",
                             "objective": "users", "gpus": 8, "quantization": "bf16", "engine": "vllm"}
    both, one = (planner.plan(**asked, on=on).objective.value for on in (["dgx-h100", "dgx-a100"], ["dgx-h100"]))
    assert both >= 0.97 * one


def test_a_latency_without_end_is_told_as_what_it_is() -> None:
    """Requests that no replica holds ended a plan as a bug."""
    level = (1.0, 0.95)
    assert tried_fleet.beside("ttft", level, 1.5) == "TTFT 1.5 s at p95, target 1 s"
    assert tried_fleet.beside("ttft", level, float("inf")) == "TTFT: requests longer than a replica holds are refused"


def test_requests_beyond_the_longest_that_is_accepted_have_no_latency() -> None:
    """One of four thousand that no cache holds left a service without a plan, at a median of 1 s."""
    steps, many = Ranks(), 2000
    trace = replace(synthetic(2, (Lengths(100), Lengths(5)), count=many), input=np.full(many, 100))
    for too_long, ends in ((0, True), (2, True), (10, False)):
        longer = replace(trace, input=np.where(np.arange(many) < too_long, 10**6, 100))
        outcome = simulate(longer, [ReplicaGroup(ReplicaKind(steps, kv_tokens=10_000, max_batch=64))])
        assert outcome.rejected.sum() == too_long
        assert np.isfinite(tried_fleet.latency_of(outcome, "ttft", 0.5, slice(None))) == ends
