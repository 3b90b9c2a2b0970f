"""A "no" leads with what is nearest: the smallest change first, and what would hold the states where nothing fits."""

from __future__ import annotations

import pytest

from planner import plan
from planner.answer.relaxation import Relaxation
from planner.answer.schema import Plan
from planner.ask.explain.relaxing import by_change

DEADLINE, GPUS, BUDGET = (Relaxation(limit=name, from_="a", to="b") for name in ("deadline", "max_gpus", "budget"))


def test_the_smallest_relative_change_comes_first() -> None:
    assert by_change([(2.0, DEADLINE), (1.1, GPUS), (3.0, BUDGET)]) == [GPUS, DEADLINE, BUDGET]


def test_a_change_out_of_all_proportion_is_left_out_where_another_is_enough() -> None:
    assert by_change([(5000.0, DEADLINE), (4.0, GPUS)]) == [GPUS]
    assert by_change([(5000.0, DEADLINE)]) == [DEADLINE]
    assert by_change([]) == []


def test_the_nearest_miss_is_the_first_relaxation() -> None:
    answer = plan(model="llama-3.1-8b", tokens="1 G", on="dgx-h100", max_gpus=8, deadline="2 h",
                  stack="megatron-core").infeasible
    assert answer is not None
    assert {r.limit for r in answer.relaxations} == {"max_gpus", "deadline"}
    assert answer.nearest == f"{answer.relaxations[0].to} instead of {answer.relaxations[0].from_}"


def test_limits_that_fail_only_together_are_said_to() -> None:
    answer = plan(model="llama-3.1-70b", tokens="1 T", on="dgx-h100", deadline="1 d", budget="10 kUSD", max_gpus=64,
                  stack="megatron-core")
    assert answer.infeasible is not None
    assert answer.infeasible.relaxations == ()
    assert answer.infeasible.nearest == "no single limit is the cause: two or more have to change"


def test_the_rule_that_emptied_the_space_leads() -> None:
    answer = plan(model="llama-3.1-8b", tokens="1 G", on="dgx-h100", gpus=12, stack="megatron-core").infeasible
    assert answer is not None
    assert answer.because[0].startswith("the GPUs must fill whole nodes (whole_nodes: ")


@pytest.fixture(scope="module")
def far() -> Plan:
    return plan(model="llama-3.1-405b", tokens="1 G", on="dgx-h100", max_gpus=8, stack="megatron-core")


def test_memory_far_beyond_the_gpu_names_how_many_would_hold_it(far: Plan) -> None:
    assert far.infeasible is not None
    assert far.infeasible.nearest is not None
    assert far.infeasible.nearest.endswith(" such GPUs would hold the states")
    count = int(far.infeasible.nearest.split("about ")[1].split()[0])
    enough = int(far.infeasible.relaxations[0].to)
    assert 8 < count <= enough < 3 * count


def test_memory_that_misses_by_little_names_only_the_bytes() -> None:
    answer = plan(model="llama-3.1-70b", tokens="1 G", on="dgx-h100", max_gpus=16, stack="megatron-core").infeasible
    if answer is not None:
        assert answer.nearest is not None
        assert "such GPUs" not in answer.nearest


@pytest.mark.parametrize(("gpus", "sides"), [(100, {"96", "104"}), (12, {"8", "16"})])
def test_the_nearest_counts_of_gpus_on_both_sides_are_named_and_work(gpus: int, sides: set[str]) -> None:
    job = {"model": "llama-3.1-8b", "tokens": "1 G", "on": "dgx-h100", "stack": "megatron-core"}
    answer = plan(**job, gpus=gpus).infeasible
    assert answer is not None
    assert {one.to for one in answer.relaxations if one.limit == "gpus"} == sides
    assert answer.nearest is not None
    assert answer.nearest.endswith(f" instead of {gpus}")
    assert all(plan(**job, gpus=one.to).status == "optimal" for one in answer.relaxations)


@pytest.mark.parametrize(("gpus", "batch", "nearest"), [(24, 64, 72), (8, 999_983, 999_984), (8, 1, 8)])
def test_the_nearest_batch_that_the_gpus_divide_is_named(gpus: int, batch: int, nearest: int) -> None:
    """On data parallelism alone, a batch is a multiple of the GPUs."""
    answer = plan(model="llama-3.1-8b", method="lora", stack="hf-peft", tokens="1 G", on="dgx-h100", gpus=gpus,
                  global_batch=batch).infeasible
    assert answer is not None
    assert answer.because[0].startswith("no legal layout divides a global batch of ")
    assert f"{nearest} sequences" in [one.to for one in answer.relaxations if one.limit == "global_batch"]


def test_what_binds_leads_and_as_much_of_it_is_enough() -> None:
    """Weights of 70B in four bits, in pinned blocks, are above the memory of a desktop's host, not of its GPU."""
    answer = plan(model="llama-3.1-70b", method="qlora", stack="hf-peft", seq_len=4096, global_batch=16, tokens="100 M",
                  on="rtx-4090-1x").infeasible
    assert answer is not None
    assert "host memory binds" in answer.because[0]
    assert "keeps 56.8 GiB there" in answer.because[0]
    (enough,) = answer.relaxations
    assert enough.limit == "host_memory"
    assert 56.8 / 0.85 <= float(enough.to.split()[0]) < 56.8 / 0.85 * 1.05


def test_another_format_is_named_where_the_gpu_lacks_the_one_asked_for() -> None:
    answer = plan(model="gpt2", tokens="1 G", on="v100-sxm-16gb", stack="megatron-core", precision="bf16").infeasible
    assert answer is not None
    assert [(one.limit, one.to) for one in answer.relaxations] == [("precision", "fp16")]
