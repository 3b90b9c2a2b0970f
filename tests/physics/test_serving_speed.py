"""Properties of an engine's steps and steady states."""

from dataclasses import replace

import numpy as np
import pytest

import planner
from planner.catalog.load import Catalog
from planner.evidence.hardware import candidate_of
from planner.evidence.rows import TrainRun
from planner.physics.serving.deployment import Replicas, deployment_of
from planner.physics.serving.disaggregated import WorkerPool, disaggregated
from planner.physics.serving.formats import format_of
from planner.physics.serving.level import Stream
from planner.physics.serving.steady import RequestMix, closed, offline, static
from planner.physics.serving.step import StepLoad, step_times
from planner.physics.serving.weights import weight_bytes

CATALOG = Catalog()


def deployment(model="llama-3.1-70b", gpu="h100-sxm", weights="fp8", engine="vllm"):
    shape = CATALOG.model(model)
    candidate = candidate_of(TrainRun(gpu=gpu), CATALOG.stack("megatron-core"), CATALOG, [], gpus=8)
    speed = CATALOG.speeds(engine).release(None, candidate.gpu.architecture)
    stored, cache = format_of(CATALOG.formats, weights, shape), CATALOG.formats.cache("bf16")
    return deployment_of(CATALOG, shape, weights, stored, cache, (candidate,), speed)


def replicas(*tp, pp=1, ep=1, dp=1):
    one = np.ones(len(tp), np.int64)
    return Replicas(0 * one, np.array(tp), pp * one, ep * one, dp * one)


def demand(*clients, prompt=1000.0, output=300.0):
    many = np.array(clients, np.float64)
    return RequestMix(np.full(len(many), prompt), np.full(len(many), output), many)


def decode(d, rows, sequences, context):
    many, far, none = np.full(len(rows), sequences), np.full(len(rows), context), np.zeros(len(rows))
    return step_times(d, rows, StepLoad(many * 1.0, far * 1.0, none, none)).total


@pytest.mark.parametrize(("model", "weights"), [("llama-3.1-70b", "fp8"), ("deepseek-v3", "fp8"),
                                                ("gpt-oss-120b", "mxfp4"), ("llama-3.1-8b", "bf16")])
def test_a_step_takes_longer_with_batch_and_context(model, weights):
    d, rows = deployment(model, "h200-sxm", weights), replicas(8)
    by_batch = [decode(d, rows, n, 2000)[0] for n in (1, 2, 8, 32, 128, 512)]
    by_context = [decode(d, rows, 32, n)[0] for n in (100, 1000, 10_000, 100_000)]
    assert by_batch == sorted(by_batch)
    assert by_context == sorted(by_context)
    assert by_batch[-1] < 512 * by_batch[0]


def test_tensor_parallelism_over_nvlink_shortens_a_step():
    took = decode(deployment(), replicas(1, 2, 4, 8), 16, 2000)
    assert (np.diff(took) < 0).all()
    assert took[3] > took[0] / 8


def test_over_pcie_eight_gpus_gain_less_than_over_nvlink():
    pcie, nvlink = (decode(deployment("llama-3.1-8b", gpu, "bf16"), replicas(1, 8), 64, 500)
                    for gpu in ("l40s", "h100-sxm"))
    assert pcie[0] / pcie[1] < nvlink[0] / nvlink[1]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama-cpp"])
@pytest.mark.parametrize(("gpu", "weights"), [("h100-sxm", "fp8"), ("a100-sxm-80gb", "bf16"), ("b200", "bf16")])
def test_one_sequence_is_no_faster_than_weights_can_be_read(engine, gpu, weights):
    d, rows = deployment("llama-3.1-8b", gpu, weights, engine), replicas(1)
    held = weight_bytes(d.model, d.weights, rows.tp, rows.pp)[0]
    # of the token table one row is read
    read = held - d.model.vocab * d.model.hidden * 2
    assert decode(d, rows, 1, 100)[0] > read / d.candidates[0].gpu.memory_bandwidth


def test_a_mixture_reads_more_experts_with_more_rows():
    d, rows = deployment("deepseek-v3", "h200-sxm"), replicas(8)
    one, many = (step_times(d, rows, StepLoad(*(np.array([float(x)]) for x in (n, 1000, 0, 0)))).experts[0]
                 for n in (1, 64))
    assert 5 * one < many < 64 * one


@pytest.mark.parametrize(("gpu", "weights", "sent"), [("b200", "bf16", 2), ("b200", "fp8", 1), ("b200", "nvfp4", 0.5),
                                                     ("a100-sxm-80gb", "fp8", 2)])
def test_rows_go_to_experts_as_products_read_them_and_come_back_in_16_bits(gpu, weights, sent):
    d, rows = deployment("deepseek-v3", gpu, weights), replicas(1, ep=8, dp=8)
    # bytes so many that bandwidth alone counts
    load = StepLoad(*(np.array([float(x)]) for x in (0, 0, 8e6, 0)))
    wide = replace(d, weights=CATALOG.formats.weights["bf16"])
    ours, plain = (step_times(one, rows, load).exchange[0] for one in (d, wide))
    assert ours / plain == pytest.approx((sent + 2) / 4, rel=0.02)


def test_a_closed_loop_of_many_is_the_offline_maximum():
    d, rows, most = deployment(), replicas(4), np.array([64.0])
    best = offline(d, rows, demand(64), most)
    many = closed(d, rows, demand(4000), most)
    assert many.tokens[0] == pytest.approx(best.tokens[0], rel=0.05)
    assert many.ttft[0] > 10 * closed(d, rows, demand(64), most).ttft[0]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama-cpp"])
@pytest.mark.parametrize(("prompt", "output"), [(100_000, 500), (30_000, 200), (2000, 300), (128, 2000), (5000, 10),
                                                (500, 2), (5000, 1)])
def test_who_is_there_is_the_rate_times_the_time_they_stay(engine, prompt, output):
    """Little's law, of caches that are nearly empty, full, and have several times as many waiting."""
    d, clients = deployment("llama-3.1-8b", "a100-sxm-80gb", "bf16", engine), (1, 6, 16, 64, 400)
    found = closed(d, replicas(*[1] * len(clients)), demand(*clients, prompt=float(prompt), output=float(output)),
                   np.full(len(clients), 15.3))
    there = found.requests * (found.ttft + (output - 1) * found.tpot)
    assert there == pytest.approx(np.array(clients), rel=0.02)


def test_one_client_and_a_batch_of_one_are_alike():
    d, rows, most = deployment(), replicas(4), np.array([64.0])
    loop, batch = closed(d, rows, demand(1), most), static(d, rows, demand(1), most)
    assert loop.tpot[0] == pytest.approx(batch.tpot[0], rel=0.05)
    assert loop.tokens[0] == pytest.approx(batch.tokens[0], rel=0.15)
    slow = replace(d, engine=d.engine.model_copy(update={"request": d.engine.request + 1.0}))  # of a server
    assert closed(slow, rows, demand(1), most).ttft[0] == pytest.approx(loop.ttft[0] + 1.0)
    assert static(slow, rows, demand(1), most).ttft[0] == batch.ttft[0]


def test_who_comes_waits_for_half_of_the_steps_that_are_scheduled_at_once():
    """SGLang's recipes of InferenceX look for new requests every 30 steps: measured TTFT jumps by some 15 of them.
    Those who begin together are there before a step.
    """
    d, rows, most, asked = deployment(), replicas(4), np.array([64.0]), demand(16)
    one, thirty = (closed(d, rows, replace(asked, scheduled=many), most) for many in (1, 30))
    # some of the steps have prompts
    assert thirty.ttft[0] - one.ttft[0] == pytest.approx(
        14.5 * (1 - 2 * d.engine.burst) * one.tpot[0], rel=0.05)
    assert thirty.tpot[0] == pytest.approx(one.tpot[0], rel=0.05)


def test_throughput_and_times_rise_with_clients():
    d, many = deployment(), (1, 4, 16, 64, 256)
    found = closed(d, replicas(*[4] * len(many)), demand(*many), np.full(len(many), 300.0))
    assert (np.diff(found.tokens) > 0).all()
    assert (np.diff(found.tpot) > 0).all()
    assert (np.diff(found.ttft) > 0).all()


def test_apart_prompts_do_not_disturb_decoding_and_few_workers_make_a_queue():
    d, most, asked = deployment(), np.array([200.0]), demand(64, prompt=8000.0)
    one, four = (disaggregated(d, WorkerPool(replicas(4), np.array([n])),
                               WorkerPool(replicas(4), np.array([1.0])), asked, most)
                 for n in (1.0, 4.0))
    together = closed(d, replicas(4), asked, most)
    assert four.tpot[0] < together.tpot[0]
    assert four.ttft[0] < one.ttft[0]
    assert four.tokens[0] > one.tokens[0]


@pytest.mark.parametrize("gpu", ["rtx-3060", "rtx-3090", "a10g", "l4", "a100-sxm-80gb", "rtx-pro-6000"])
def test_one_answer_in_4_bits_takes_half_as_long_as_in_16_whatever_the_gpu(gpu):
    """Reading the weights decides, of which 0.26 are left: their expansion and tiles of few rows never cost as much."""
    wide, packed = (decode(deployment("llama-3.1-8b", gpu, weights), replicas(1), 1, 500)[0]
                    for weights in ("bf16", "int4"))
    d = deployment("llama-3.1-8b", gpu, "int4")
    assert packed < 0.5 * wide
    # 32 layers of 218.1M parameters in 4 bits and 16-bit scales and zeros of 128 each, and a head of 525M in 16
    assert packed > (32 * 218.1e6 * (0.5 + 2.5 / 128) + 525e6 * 2) / d.candidates[0].gpu.memory_bandwidth


def test_few_rows_cost_what_the_tile_of_the_matrix_instruction_does():
    """H20 multiplies at a seventh of H100's rate: 64 rows of a warpgroup's instruction show, 16 of a warp's do not."""
    h20, h100 = (deployment("qwen3-14b", gpu, "bf16") for gpu in ("h20", "h100-sxm"))
    took, usual = (decode(d, replicas(1), 1, 500)[0] for d in (h20, h100))
    assert took > 2 * usual
    assert took == pytest.approx(decode(h20, replicas(1), 32, 500)[0], rel=0.1)


def test_mxfp4_is_expanded_before_blackwell():
    hopper, blackwell = (deployment("gpt-oss-120b", gpu, "mxfp4") for gpu in ("h100-sxm", "b200"))
    assert hopper.computes(hopper.candidates[0].gpu) == "bf16"
    assert hopper.unpacked(hopper.candidates[0].gpu) < 1
    assert blackwell.computes(blackwell.candidates[0].gpu) == "fp8"


def test_a_slower_release_is_slower():
    d, rows = deployment(), replicas(4)
    late = replace(d, engine=d.engine.model_copy(update={"layer": d.engine.layer + 1e-4}))
    assert decode(late, rows, 8, 1000)[0] - decode(d, rows, 8, 1000)[0] == pytest.approx(80 * 1e-4)


def test_prefix_hits_drafts_and_spread_count_in_a_closed_loop_as_in_an_open_one():
    plain = demand(32.0)
    d, rows, most = deployment(), replicas(8), np.full(1, 256.0)

    def found(**changes):
        return closed(d, rows, replace(plain, **changes), most)

    assert found(hits=0.7).ttft[0] < 0.6 * found().ttft[0]
    assert found(hits=0.7).tokens[0] > found().tokens[0]
    assert found(drafts=3, accepted=0.7).tpot[0] < 0.7 * found().tpot[0]
    assert found(output_cv=1.5).tpot[0] > found().tpot[0]
    # clients whose requests are alike fall into step, and wait for each other besides
    assert found().ttft[0] > found(input_cv=1.5).ttft[0] > found(input_cv=0.2).ttft[0]
    wide = replace(plain, hits=0.7, input_cv=0.0, output_cv=1.5)
    stream = Stream(1000.0, 300.0, (), (), 0.0, 1.5, 1.0, hits=0.7)
    assert (wide.prompt[0], wide.behind[0], wide.context[0]) == pytest.approx(
        (stream.prompt, stream.behind, stream.context))


def step_by_step(d, rows, requests, room, prompt, output):
    """Return seconds of a run of requests alike, all there at its start, one step after the other."""
    grid = np.unique(np.geomspace(1, room, 24).astype(int)).astype(np.float64)
    plain, with_prompts = (step_times(d, rows.take(np.zeros(len(grid), np.int64)), StepLoad(
        grid, grid * 0 + prompt + output / 2, grid * 0 + tokens, grid * 0 + prompt / 2)).total for tokens in (
            0.0, float(d.engine.chunk)))
    waiting, left, seconds = requests * prompt, [], 0.0
    joining = [0.0]
    while waiting or left or joining[0]:
        tokens = min(d.engine.chunk, waiting, max(room - len(left), 0) * prompt - joining[0])
        waiting, batch = waiting - tokens, max(len(left), 1)
        share = tokens / d.engine.chunk
        seconds += (1 - share) * np.interp(batch, grid, plain) + share * np.interp(batch, grid, with_prompts)
        joining[0] += tokens
        joined, joining[0] = int(joining[0] // prompt), joining[0] % prompt
        left = [tokens_left - 1 for tokens_left in left if tokens_left > 1] + [output - 1] * joined
    return seconds


@pytest.mark.parametrize(("requests", "room", "prompt", "output"), [
    (500, 1024, 1024, 200), (520, 256, 512, 300), (300, 200, 128, 400), (2000, 256, 1024, 128), (40, 64, 2048, 256)])
def test_a_run_of_so_many_requests_takes_as_long_as_its_steps(requests, room, prompt, output):
    d, rows = deployment("llama-3.1-8b", "h100-sxm", "bf16"), replicas(1)
    asked = replace(demand(1, prompt=prompt, output=output), prompts=np.array([float(requests)]))
    run = offline(d, rows, asked, np.array([float(room)]))
    assert requests / run.requests[0] == pytest.approx(step_by_step(d, rows, requests, room, prompt, output), rel=.03)
    many = replace(asked, prompts=np.array([1e9]))
    endless = replace(asked, prompts=np.inf)
    assert offline(d, rows, many, np.array([room])).requests == pytest.approx(
        offline(d, rows, endless, np.array([room])).requests, rel=1e-3)


def test_a_closed_loop_of_few_requests_has_no_more_clients_than_these():
    d, rows, room = deployment(), replicas(4), np.full(1, 256.0)
    few = replace(demand(64), prompts=np.array([8.0]))
    assert closed(d, rows, few, room).tpot == pytest.approx(closed(d, rows, demand(8), room).tpot)
    uneven = replace(demand(64), output_cv=.6)
    whole = closed(d, rows, replace(uneven, prompts=np.array([256.0])), room)
    assert whole.requests < closed(d, rows, uneven, room).requests


@pytest.mark.parametrize(("node", "name", "size"), [("dgx-h100", "fp8", 1.0), ("dgx-b200", "nvfp4", 0.5)])
def test_no_interval_begins_below_what_reading_weights_takes(node: str, name: str, size: float) -> None:
    """However fast quantized products are: 80 layers of a 70B model at the datasheet's bandwidth, counted by hand."""
    matrices = 80 * 8192 * (2 * 8192 + 2 * 1024 + 3 * 28672)
    one = planner.estimate("llama-3.3-70b", node, {"tp": 1}, input=200, output=100, concurrency=1, quantization=[name])
    bandwidth = Catalog().gpu(Catalog().node(node).gpu).memory_bandwidth
    least = (size * matrices + 2 * 128256 * 8192) / bandwidth
    low, _ = one.time.interval90_seconds
    assert least <= low <= one.time.step_seconds < 2 * least
