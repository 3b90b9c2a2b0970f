"""LoRA adapters in serving: memory by hand, time by its parts, and refusals."""

import numpy as np
import pytest

import planner
from planner.errors import InputError
from planner.physics.serving.adapters import AdapterSlots

ASKED = {"model": "llama-3.1-8b", "input": 1000, "output": 200, "concurrency": 32}
QKV, OUT, UP, DOWN = (4096, 6144, 3), (4096, 4096, 1), (4096, 28672, 2), (14336, 4096, 1)
"""Products of a layer: in, out, and matrices that each is of; the first and third are split by columns."""


def estimate(tp=1, **more):
    return planner.estimate(**ASKED | more, node="dgx-h100", layout={"tp": tp}, gpus=tp)


@pytest.mark.parametrize(("tp", "rank"), [(1, 16), (2, 16), (4, 64)])
def test_slots_take_what_the_products_have(tp, rank):
    """Column products split the outer matrix, row products the inner one; PEFT counts 41.9 M at rank 16."""
    each = sum(m * k + n / tp for k, n, m in (QKV, UP)) + sum(k / tp + n for k, n, _ in (OUT, DOWN))
    found = estimate(tp, adapters=8, lora_rank=rank)
    assert found.serving.adapters.bytes_per_gpu == 8 * rank * 32 * each * 2
    if tp == 1:
        assert 16 * 32 * each == 41_943_040
    more = found.memory.components.weights - estimate(tp).memory.components.weights
    assert more == pytest.approx(found.serving.adapters.bytes_per_gpu, abs=2)
    assert found.serving.kv_tokens < estimate(tp).serving.kv_tokens


def test_steps_take_longer_by_starts_and_by_what_is_read():
    plain, one, many, wide = (estimate(**more).time.step_seconds for more in (
        {}, {"adapters": 1}, {"adapters": 64}, {"adapters": 64, "lora_rank": 64}))
    assert one - plain > 32 * 7 * 8.9e-6
    # 32 requests for one of 64 adapters each ask for 25 of them
    read = 64 * (1 - (1 - 1 / 64) ** 32)
    # memory at 60 to 100% of the datasheet's bandwidth
    assert 1 < (many - one) / ((read - 1) * 83.9e6 / 3.35e12) < 1.6
    assert 1 < (wide - many) / (read * 3 * 83.9e6 / 3.35e12) < 1.6


def test_how_many_are_asked_for_is_as_drawn():
    drawn = np.random.default_rng(0).integers(0, 8, (4000, 12))
    seen = np.mean([len(set(row)) for row in drawn.tolist()])
    assert AdapterSlots(8, 16).asked_for(np.array([12.0]))[0] == pytest.approx(seen, rel=0.02)


def test_experts_have_adapters_each():
    found = planner.estimate("qwen3-30b-a3b", "dgx-h100", {"tp": 1}, gpus=1, input=500, output=100, concurrency=8,
                             adapters=1)
    experts = 48 * 128 * (2 * (2048 + 768) + 768 + 2048) * 16 * 2
    assert experts < found.serving.adapters.bytes_per_gpu < 1.1 * experts


@pytest.mark.parametrize(("more", "said"), [
    ({"lora_rank": 16}, "lora_rank applies to adapters"),
    ({"adapters": 4, "engine": "llama-cpp"}, "does not run requests"),
    ({"adapters": 0}, "greater than 0|at least|above")])
def test_what_has_no_effect_is_refused(more, said):
    with pytest.raises(InputError, match=said):
        estimate(**more)


def test_a_plan_has_them_too():
    plan = planner.plan("llama-3.1-8b-small-gpus", on="l40s-1x", rate=2, adapters=16, lora_rank=32)
    served = plan.assignments[0].serving
    assert (served.adapters.count, served.adapters.rank) == (16, 32)
    assert plan.objective.by_replay.met


def test_an_engine_whose_caches_stay_where_they_are_has_no_prefill_apart():
    with pytest.raises(InputError, match="llama-cpp answers requests whole: sglang"):
        planner.plan("llama-3.1-8b-small-gpus", on="l40s-1x", rate=2, disaggregated="only", engine="llama-cpp")
