"""A "no" leads with what is nearest: the smallest change first, and what would hold the states where nothing fits."""

from __future__ import annotations

import pytest

from planner import plan
from planner.answer.schema import Plan, Relaxation
from planner.ask.explain.relaxing import by_change

DEADLINE, GPUS, BUDGET = (Relaxation(limit=name, from_="a", to="b") for name in ("deadline", "max_gpus", "budget"))


def test_the_smallest_relative_change_comes_first() -> None:
    assert by_change([(2.0, DEADLINE), (1.1, GPUS), (3.0, BUDGET)]) == [GPUS, DEADLINE, BUDGET]


def test_a_change_out_of_all_proportion_is_left_out_where_another_is_enough() -> None:
    assert by_change([(5000.0, DEADLINE), (4.0, GPUS)]) == [GPUS]
    assert by_change([(5000.0, DEADLINE)]) == [DEADLINE]
    assert by_change([]) == []


def test_the_nearest_miss_is_the_first_relaxation() -> None:
    answer = plan(model="llama-3.1-8b", tokens="1 G", on="dgx-h100", max_gpus=8, deadline="2 h").infeasible
    assert answer is not None
    assert {r.limit for r in answer.relaxations} == {"max_gpus", "deadline"}
    assert answer.nearest == f"{answer.relaxations[0].to} instead of {answer.relaxations[0].from_}"


def test_limits_that_fail_only_together_are_said_to() -> None:
    answer = plan(model="llama-3.1-70b", tokens="1 T", on="dgx-h100", deadline="1 d", budget="10 kUSD", max_gpus=64)
    assert answer.infeasible is not None
    assert answer.infeasible.relaxations == ()
    assert answer.infeasible.nearest == "no single limit is the cause: two or more have to change"


def test_the_rule_that_emptied_the_space_leads() -> None:
    answer = plan(model="llama-3.1-8b", tokens="1 G", on="dgx-h100", gpus=12).infeasible
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
