"""Open and closed loop are two views of one queue: at the same load the same time per token."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.jobs.serving.deployed import deployment, held
from planner.jobs.serving.service import service_of
from planner.layouts.table import Floats
from planner.money.rent import usual_candidate
from planner.physics.serving.apart import decoding, prefilling, sending
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.disaggregated import WorkerPool, disaggregated
from planner.physics.serving.level import Served, Stream, at_rate, served
from planner.physics.serving.steady import RequestMix, closed
from planner.scenario.serving import Serving

CATALOG = Catalog()
SHARES = (0.3, 0.7, 0.95)
"""Of what a replica answers at most."""
POINTS = 80
"""Clients at which the closed loop is looked at."""
DENSE = (1, 1, 1, 1), (4, 1, 1, 1), (8, 1, 1, 1), (2, 4, 1, 1), (4, 2, 1, 1)
MIXED = (8, 1, 1, 1), (4, 2, 1, 1), (1, 1, 8, 8), (1, 1, 1, 8), (1, 1, 1, 4)
"""TP, PP, EP and copies of attention."""


def working(d: Deployment, rows: Replicas, stream: Stream, load: Floats) -> Served:
    """Return the open loop of one layout at loads."""
    return served(d, rows.take(np.zeros(len(load), np.int64)), stream, load)


def once_each(work: Callable[[Floats], Served]) -> Callable[[Floats], Served]:
    """Return what does the same, for the same loads once: the first that are tried are those of every rate."""
    known: dict[bytes, Served] = {}

    def remembered(load: Floats) -> Served:
        if (at := load.tobytes()) not in known:
            known[at] = work(load)
        return known[at]
    return remembered


MODELS = (("llama-3.1-8b", "dgx-h100", "fp8", DENSE), ("llama-3.3-70b", "dgx-h200", "fp8", DENSE[1:]),
          ("deepseek-v3", "dgx-h200", "fp8", MIXED), ("qwen3-235b-a22b", "dgx-b200", "fp8", MIXED))
ENGINES, LENGTHS = ("vllm", "sglang", "tensorrt-llm"), ((1000, 1000), (4000, 500))
# every pair of model and engine, lengths in turn: each model, and each engine, has both
CASES = [(*model, engine, LENGTHS[(at + place) % 2]) for at, model in enumerate(MODELS)
         for place, engine in enumerate(ENGINES)]
CASES += [("deepseek-r1", "dgx-b200", "nvfp4", MIXED, "tensorrt-llm", (8192, 1024)),
          ("gpt-oss-120b", "dgx-h100", "mxfp4", MIXED, "vllm", (8192, 1024)),
          ("qwen3-next-80b-a3b", "dgx-h100", "fp8", MIXED, "vllm", (4000, 500)),
          ("llama-3.1-70b", "mi300x-platform", "bf16", DENSE[1:], "sglang", (1000, 1000))]


DELAYED = [(*case, delay) for case in CASES if case[3] == MIXED for delay in (30,) if case[4] != "vllm"]
"""Where prompts wait for each other."""


@pytest.mark.parametrize(("model", "node", "name", "layouts", "engine", "lengths", "delay"),
                         [*((*case, None) for case in CASES), *DELAYED])
def test_open_and_closed_loop_agree(model: str, node: str, name: str, layouts: tuple[tuple[int, ...], ...], engine: str,
                                    lengths: tuple[int, int], delay: int | None) -> None:
    candidate = usual_candidate(CATALOG.node(node), CATALOG)
    service = service_of(Serving.model_validate({
        "model": model, "rate": "1 requests/s", "input": lengths[0], "output": lengths[1], "quantization": [name],
        "engine": engine, "prefill_delay": delay}), CATALOG)
    d = deployment(CATALOG, service, candidate, name)
    for layout in layouts:
        rows = Replicas(*(np.full(1, value) for value in (0, *layout)))
        room = held(CATALOG, service, d, rows, service.mean_length).concurrency
        most = np.minimum(room, d.engine.sequences * rows.dp)
        if most[0] < 64:
            continue
        clients = np.geomspace(1, float(most[0]), POINTS)
        many = rows.take(np.zeros(POINTS, np.int64))
        stream = service.stream
        demand = RequestMix(np.full(POINTS, stream.input), np.full(POINTS, stream.output), clients)
        seen = closed(d, many, demand, np.full(POINTS, float(most[0])))
        work = once_each(partial(working, d, rows, stream))
        for share in SHARES:
            at = int(np.searchsorted(seen.requests, share * seen.requests[-1]))

            found = at_rate(work, float(seen.requests[at]), 0.02, float(most[0]))
            assert found.rate[0] == pytest.approx(seen.requests[at], rel=0.02), (layout, share)
            assert found.tpot[0] == pytest.approx(seen.tpot[at], rel=0.1), (layout, share)


WORKERS = ((4, 1, 1, 1), (2, 1, 1, 1)), ((1, 4, 1, 1), (8, 1, 1, 1)), ((4, 1, 1, 1), (1, 1, 8, 8))
"""Layouts of those who read prompts, and of those who answer."""
APART = [(*case, workers) for case in CASES[::2] for workers in WORKERS
         if case[0] not in ("llama-3.1-70b",) and (case[3][0][0] == 8 or workers[1][3] == 1)
         # 671 G parameters leave no room on two GPUs
         and not (case[0].startswith("deepseek") and workers[1][0] == 2)]


@pytest.mark.parametrize(("model", "node", "name", "_", "engine", "lengths", "workers"), APART)
@pytest.mark.parametrize("more", [0.5, 2.0])
def test_open_and_closed_loop_agree_with_prefill_apart(model: str, node: str, name: str, _: object, engine: str,
                                                       lengths: tuple[int, int], workers: tuple[tuple[int, ...], ...],
                                                       more: float) -> None:
    """`more`: prefill workers, as many times those that one decode worker keeps busy."""
    candidate = usual_candidate(CATALOG.node(node), CATALOG)
    service = service_of(Serving.model_validate({
        "model": model, "rate": "1 requests/s", "input": lengths[0], "output": lengths[1], "quantization": [name],
        "engine": engine, "disaggregated": "only"}), CATALOG)
    d, stream = deployment(CATALOG, service, candidate, name), service.stream
    reads, answers = (Replicas(*(np.full(1, value) for value in (0, *layout))) for layout in workers)
    room = held(CATALOG, service, d, answers, service.mean_length).concurrency
    most = float(np.minimum(room, d.engine.sequences * answers.dp)[0])
    assert most >= 64
    full = decoding(d, answers, stream, np.full(1, most)).rate
    each = prefilling(d, reads, stream, np.full(1, 1 - 1e-6)).rate
    count, points = float((more * full / each)[0]), np.zeros(POINTS, np.int64)
    # clients enough to keep all who answer at work, and those whose prompts are read
    clients = np.geomspace(1, 4 * most, POINTS)
    demand = RequestMix(np.full(POINTS, stream.input), np.full(POINTS, stream.output), clients)
    seen = disaggregated(d, WorkerPool(reads.take(points), np.full(POINTS, count)),
                         WorkerPool(answers.take(points), np.ones(POINTS)), demand, np.full(POINTS, most))
    # what they do at most is what the slower kind does
    assert seen.requests[-1] == pytest.approx(float(np.minimum(full, count * each)[0]), rel=0.1)
    sent = float(sending(d, reads, stream.prompt)[0]) / (stream.output - 1)

    @once_each
    def answering(load: Floats) -> Served:
        return decoding(d, answers.take(np.zeros(len(load), np.int64)), stream, load)

    for share in SHARES:
        at = int(np.searchsorted(seen.requests, share * seen.requests[-1]))
        found = at_rate(answering, float(seen.requests[at]), 0.02, most)
        assert found.rate[0] == pytest.approx(seen.requests[at], rel=0.02), share
        assert found.tpot[0] - sent == pytest.approx(seen.tpot[at], rel=0.1), share
