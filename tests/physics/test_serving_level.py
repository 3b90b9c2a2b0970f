"""The service level: how it must move with the load and the question, and what a replay of the same steps finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.jobs.columns import Pick, ReplicaColumn
from planner.jobs.serving.delivered import working
from planner.jobs.serving.deployed import deployment, held
from planner.jobs.serving.rates import largest
from planner.jobs.serving.replay import replay
from planner.jobs.serving.service import service_of
from planner.layouts.table import Floats
from planner.money.rent import usual_candidate
from planner.physics.serving.apart import decoding, prefilling, sending
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.level import Served, Stream, at_rate, served
from planner.physics.serving.points import SHARES
from planner.physics.serving.steady import RequestMix, closed, offline
from planner.scenario.serving import Serving
from planner.simulate.trace import Lengths, synthetic
from tests.jobs.serving.test_columns import CATALOG, on, row, stream

H100 = on("llama-3.3-70b", "dgx-h100", "fp8")
LOADS = np.geomspace(0.02, 250, 60)
CASES = [(H100, row(4)), (on("llama-3.1-8b", "l4-1x"), row()), (on("deepseek-v3", "dgx-h200", "fp8"), row(1, 1, 8, 8)),
         (on("llama-3.3-70b", "dgx-h100"), row(2, 2)), (on("gpt-oss-120b", "h100-sxm-1x", "mxfp4"), row())]


def over(d: Deployment, one: Replicas, asked: Stream, loads: Floats = LOADS) -> Served:
    return served(d, one.take(np.zeros(len(loads), np.int64)), asked, loads)


def at(d: Deployment, one: Replicas, asked: Stream, rate: float) -> Served:
    """Return what a replica does that gets so many requests/s."""
    return at_rate(lambda loads: over(d, one, asked, loads), rate, 0.02, 500.0)


@pytest.mark.parametrize(("d", "one"), CASES)
@pytest.mark.parametrize("asked", [stream(), stream(cv=1.0), stream(8000, 50, gap_cv=2.0), stream(50, 1000)])
def test_rate_and_latencies_rise_with_the_load_and_with_the_share(d: Deployment, one: Replicas, asked: Stream) -> None:
    found = over(d, one, asked)
    good = found.prompts <= 0.9
    assert good.sum() > 10
    ttft, tpot = (np.array([f(q)[good] for q in (0.5, 0.9, 0.95, 0.99)]) for f in (found.ttft_at, found.tpot_at))
    assert (np.diff(ttft, axis=0) >= 0).all()
    assert (np.diff(tpot, axis=0) >= 0).all()
    # a step longer by a tile of a kernel makes small dents
    assert (np.diff(found.rate[good]) > -0.01 * found.rate[good][:-1]).all()
    for rising, dent in ((ttft[0], 0.05), (ttft[2], 0.25), (tpot[0], 0.02), (tpot[2], 0.1)):
        assert (rising >= (1 - dent) * np.maximum.accumulate(rising)).all()
    assert ttft[0, -1] > ttft[0, 0]
    assert tpot[0, -1] > tpot[0, 0]
    assert (tpot[0] >= found.step[good] / asked.tokens_per_step * 0.999).all()
    assert (found.crowd >= found.batch).all()


@pytest.mark.parametrize(("d", "one"), CASES)
def test_sequences_are_the_rate_times_what_an_answer_takes(d: Deployment, one: Replicas) -> None:
    """Little's law: D = X (output - 1) TPOT."""
    asked = stream()
    found = over(d, one, asked)
    good = found.prompts < 0.9
    assert found.batch[good] == pytest.approx((found.rate * (asked.output - 1) * found.tpot)[good], rel=0.03)


@pytest.mark.parametrize(("d", "one"), CASES)
def test_a_lone_request_waits_for_nobody(d: Deployment, one: Replicas) -> None:
    found = over(d, one, stream(), np.array([0.02]))
    assert found.wait[0] < 0.02 * found.own[0]
    assert found.ttft_at(0.95)[0] <= found.own[0] + found.rest[0] * 1.05
    assert found.ttft_at(0.5)[0] == pytest.approx(found.ttft_at(None)[0], rel=0.1)


@pytest.mark.parametrize("rate", [2.0, 7.0, 12.0])
def test_even_gaps_are_best_and_bursts_worst(rate: float) -> None:
    ttft, tpot = (np.array([f(0.95)[0] for f in fs]) for fs in zip(
        *((found.ttft_at, found.tpot_at) for found in (
            at(H100, row(4), stream(gap_cv=cv), rate) for cv in (0.0, 1.0, 3.0))), strict=True))
    assert (np.diff(ttft) > 0).all()
    assert (np.diff(tpot) > 0).all()


@pytest.mark.parametrize(("helps", "name"), [({"hits": 0.7}, "ttft_at"), ({"hits": 0.7}, "tpot_at"),
                                             ({"drafts": 3, "accepted": 0.8}, "tpot_at")])
def test_cached_prefixes_and_good_drafts_help(helps: dict[str, float], name: str) -> None:
    plain, better = (at(H100, row(4), one, 3.0) for one in (stream(2000), stream(2000, **helps)))
    assert getattr(better, name)(0.95)[0] < getattr(plain, name)(0.95)[0]
    assert getattr(better, name)(None)[0] < getattr(plain, name)(None)[0]


def test_drafts_that_are_never_right_cost_time() -> None:
    plain, worse = (at(H100, row(4), one, 5.0) for one in (stream(), stream(drafts=3, accepted=0.0)))
    assert worse.tpot[0] > plain.tpot[0]


def test_a_long_tail_of_prompts_keeps_its_mean() -> None:
    assert stream(1000, cv=2.0).input == 1000
    assert np.average(stream(1000, cv=2.0).inputs, weights=SHARES) == pytest.approx(1000, rel=0.03)
    assert sum(SHARES) == pytest.approx(1)


def test_tokens_before_one_of_a_prompt_are_those_cached_and_half_of_the_others() -> None:
    assert stream(1000).behind == 500
    assert stream(1000, hits=0.5).behind == 750


def test_pools_apart_do_one_thing_each() -> None:
    """Decode has no prompts in its steps; prefill no answers; the cache that is sent takes time."""
    asked, batch = stream(2000), np.array([30.0])
    decode, whole = decoding(H100, row(4), asked, batch), served(H100, row(4), asked, batch)
    assert decode.rate[0] > whole.rate[0]
    assert decode.tpot[0] < whole.tpot[0]
    assert decode.tpot_at(0.95)[0] >= decode.tpot_at(0.5)[0]
    busy = np.array([0.02, 0.3, 0.6, 0.9])
    prefill = prefilling(H100, row(4).take(np.zeros(4, np.int64)), asked, busy)
    assert (np.diff(prefill.rate) > 0).all()
    assert (np.diff(prefill.ttft_at(0.95)) > 0).all()
    assert prefill.rate / busy == pytest.approx(prefill.rate[0] / busy[0])
    assert sending(H100, row(4), 2000.0)[0] == pytest.approx(2 * sending(H100, row(4), 1000.0)[0])
    assert sending(H100, row(8), 2000.0)[0] < sending(H100, row(4), 2000.0)[0]


def serving(model: str, name: str, rate: float, **more: object) -> Serving:
    return Serving.model_validate({"model": model, "rate": f"{rate:.9f} requests/s", "input": 1000, "output": 200,
                                   "ttft": "4 s", "tpot": "100 ms", "quantization": [name], **more})


BAD = {"mean": 1000, "cv": 1}, {"mean": 200, "cv": 1}


@pytest.mark.parametrize(("model", "node", "name", "one", "more", "misses"), [
    ("llama-3.3-70b", "dgx-h100", "fp8", row(4), {}, {}),
    ("llama-3.3-70b", "dgx-h100", "fp8", row(4), {"arrivals": {"cv": 0}}, {}),
    ("llama-3.3-70b", "dgx-h100", "fp8", row(4), {"prefix_hits": 0.6}, {}),
    # prompts of uneven length meet in a step more often than the model has it: the far tail is twice as long
    ("llama-3.3-70b", "dgx-h100", "fp8", row(4), {"input": BAD[0], "output": BAD[1]}, {"ttft p95": 0.65}),
    ("llama-3.3-70b", "dgx-h100", "fp8", row(4), {"input": 8000, "output": 100}, {}),
    ("llama-3.3-70b", "dgx-h100", "fp8", row(4), {"input": 2000, "output": 10}, {"tpot p50": 0.28}),
    ("qwen2.5-32b", "dgx-h100", "fp8", row(4), {"input": {"p50": 1469, "p95": 7315}, "output": {"p50": 13, "p95": 90}},
     {}),
    ("llama-3.1-8b", "l4-1x", "fp8", row(), {}, {}),
    ("llama-3.1-8b", "rtx-4090-1x", "int8", row(), {}, {"ttft p95": 0.6}),
    ("deepseek-v3", "dgx-h200", "fp8", row(8), {}, {}),
    ("deepseek-v3", "dgx-h200", "fp8", row(1, 1, 8, 8), {}, {})])
def test_a_replay_of_the_same_steps_agrees(model: str, node: str, name: str, one: Replicas, more: dict[str, object],
                                           misses: dict[str, float]) -> None:
    """Medians within 20%, p95 within 40%, beside what is said of a case.

    Seen on 16 such cases at both loads: TTFT 5% off in the middle at p50 and 7% at p95, TPOT 2% and 4%.
    """
    candidate = usual_candidate(CATALOG.node(node), CATALOG)
    service = service_of(serving(model, name, 1.0, **more), CATALOG)
    d = deployment(CATALOG, service, candidate, name)
    most = held(CATALOG, service, d, one, service.mean_length).concurrency
    at_once = np.minimum(most, float(d.engine.sequences) * one.dp)
    limit, load, _ = largest(d, "whole", one, service.stream, service.level, at_once)
    best = ReplicaColumn(0, name, "whole", *(int(axis[0]) for axis in (one.tp, one.pp, one.ep, one.dp)),
                         float(limit[0]), float(load[0]), float(most[0]))
    for share in (0.5, 0.9):
        rate = best.rate * share
        asked = service_of(serving(model, name, rate, **more), CATALOG)
        found = working(d, best, asked, rate)
        assert found.rate[0] == pytest.approx(rate, rel=0.01)
        pick = Pick(0, 0, replace(best, batch=float(found.batch[0])), None, 1, 1, (1,))  # type: ignore[arg-type]
        lengths = [Lengths(of.mean, of.cv) for of in (asked.asked.input, asked.asked.output) if of is not None]
        seen, _ = replay(CATALOG, asked, [candidate], [pick], synthetic(rate, (lengths[0], lengths[1]),
                                                                        asked.asked.gap_cv, count=1500, seed=1))
        for kind, computed in (("ttft", found.ttft_at), ("tpot", found.tpot_at)):
            for quantile, label, usual in ((0.5, "p50", 0.2), (0.95, "p95", 0.4)):
                wanted = seen.percentiles(kind)[label]  # type: ignore[arg-type]
                allowed = max(usual, misses.get(f"{kind} {label}", 0.0))
                assert float(computed(quantile)[0]) == pytest.approx(wanted, rel=allowed), (share, kind, label)


LAYOUTS = [("llama-3.3-70b", "dgx-h100", "vllm", (4, 2, 1, 1), (1000, 300)),
           ("llama-3.3-70b", "dgx-h100", "tensorrt-llm", (8, 1, 1, 1), (500, 100)),
           ("gpt-oss-120b", "dgx-h100", "vllm", (2, 1, 1, 1), (500, 100)),
           ("deepseek-v3", "dgx-h200", "sglang", (8, 1, 1, 1), (500, 100)),
           ("deepseek-v3", "dgx-h200", "sglang", (1, 1, 8, 8), (4000, 500)),
           ("deepseek-v3", "dgx-h200", "vllm", (2, 1, 1, 4), (500, 100)),
           ("deepseek-r1", "dgx-b200", "tensorrt-llm", (1, 1, 8, 8), (8192, 1024))]


@pytest.mark.parametrize(("model", "node", "engine", "layout", "lengths"), LAYOUTS)
def test_open_and_closed_loops_are_two_views_of_one_queue(
        model: str, node: str, engine: str, layout: tuple[int, int, int, int], lengths: tuple[int, int]) -> None:
    """At one load the time per token is the same within 10%, 12% at 95% of the most and by replay, up to 80%."""
    name = {"gpt-oss-120b": "mxfp4"}.get(model, "fp8")
    asked = serving(model, name, 1.0, input=lengths[0], output=lengths[1], engine=engine, ttft=None, tpot=None)
    service, candidate = service_of(asked, CATALOG), usual_candidate(CATALOG.node(node), CATALOG)
    d, rows = deployment(CATALOG, service, candidate, name), Replicas(*(np.array([one]) for one in (0, *layout)))
    most = np.minimum(held(CATALOG, service, d, rows, service.mean_length).concurrency,
                      float(d.engine.sequences) * rows.dp)
    steady = offline(d, rows, _clients(lengths, float(most[0])), most)
    column = ReplicaColumn(0, name, "whole", *layout, float(steady.requests[0]), float(most[0]), float(most[0]))
    for share in (0.3, 0.6, 0.8, 0.95):
        counts = np.geomspace(2, 2 * most[0], 60)
        table = rows.take(np.zeros(60, np.int64))
        many = closed(d, table, _clients(lengths, counts), np.repeat(most, 60))
        at = int(np.argmin(np.abs(many.requests - share * steady.requests[0])))
        rate = float(many.requests[at])
        found = working(d, column, service, rate)
        assert float(found.tpot[0]) == pytest.approx(float(many.tpot[at]), rel=0.12 if share > 0.9 else 0.1), share
        if share in (0.3, 0.8):
            pick = Pick(0, 0, replace(column, batch=float(found.batch[0])), None, 1, 1, (1,))  # type: ignore[arg-type]
            # what waits for others in a pipeline takes longer to come to its mean: seeds are 7% apart at 6,000 requests
            count = 12000 if layout[1] > 1 else 6000
            trace = synthetic(rate, (Lengths(lengths[0]), Lengths(lengths[1])), count=count, seed=5)
            seen, _ = replay(CATALOG, service, [candidate], [pick], trace)
            mean = float(seen.tpot[1000:count - 400].mean())
            assert float(found.tpot[0]) == pytest.approx(mean, rel=0.12), share


def _clients(lengths: tuple[int, int], clients: Any) -> RequestMix:
    count = np.atleast_1d(np.asarray(clients, float))
    return RequestMix(np.full(len(count), float(lengths[0])), np.full(len(count), float(lengths[1])), count)


def test_a_column_is_what_its_layout_answers() -> None:
    one = ReplicaColumn(0, "fp8", "whole", 2, 2, 1, 1, 1.0, 1.0, 1.0)
    assert (one.gpus, int(one.rows.tp[0]), int(one.rows.pp[0])) == (4, 2, 2)
