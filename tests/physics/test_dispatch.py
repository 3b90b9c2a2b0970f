"""Tokens on their way to experts: how many copies leave, and what a stack hides or fuses."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from planner.layouts.table import from_rows
from planner.physics.layers import Experts
from planner.physics.training.communication import missed, reached
from planner.physics.training.estimate import time_terms
from planner.physics.training.evaluate import evaluate_fixed
from planner.physics.training.question import Question, question_of
from tests.search_cases import candidate, catalog

ROW = {"tp": 1, "pp": 1, "cp": 1, "dp": 64, "ep": 64, "zero": 1}


def question(model: str = "gpt-oss-120b", stack: str = "megatron-core", **overlap: float) -> Question:
    found = catalog().stack(stack)
    found = found.model_copy(update={"overlap": found.overlap.model_copy(update=overlap)})
    return question_of(catalog(), catalog().model(model), (candidate("dgx-h100"),), found, sequence_length=4096,
                       global_batch=256, precisions=("bf16",), method="pretrain", confidence=0.95)


@pytest.mark.parametrize(("count", "chosen", "parts"), [(8, 2, 4), (8, 3, 2), (6, 2, 6), (12, 4, 3)])
def test_the_share_missed_is_that_of_all_choices(count: int, chosen: int, parts: int) -> None:
    first = set(range(count // parts))
    choices = list(combinations(range(count), chosen))
    share = sum(first.isdisjoint(choice) for choice in choices) / len(choices)
    assert missed(Experts(count, chosen, 1, 1, False), np.array([float(parts)]))[0] == pytest.approx(share)


@pytest.mark.parametrize(("count", "chosen", "parts"), [
    (256, 8, 64), (256, 8, 8), (128, 6, 8), (512, 22, 64), (512, 22, 8), (12, 4, 3), (8, 3, 8), (6, 4, 1)])
def test_experts_in_turn_reach_the_parts_that_a_count_of_tokens_has(count: int, chosen: int, parts: int) -> None:
    """AutoModel's FakeBalancedGate: token t has the experts t x chosen to (t + 1) x chosen - 1, modulo their count."""
    tokens = [{(token * chosen + at) % count * parts // count for at in range(chosen)} for token in range(count)]
    counted = sum(map(len, tokens)) / len(tokens)
    assert reached(Experts(count, chosen, 1, 1, False), np.array([float(parts)]), in_turn=True)[0] == pytest.approx(
        counted)


def test_a_token_goes_once_to_a_node_where_the_stack_deduplicates() -> None:
    """DeepSeek-V3: 8 of 256 experts on 8 nodes are on 5.3 of them, so over the network less than 8 copies go."""
    plain = question("deepseek-v3")
    assert plain.stack.experts is not None
    once = replace(plain, stack=plain.stack.model_copy(update={
        "experts": plain.stack.experts.model_copy(update={"deduplicated": True})}))
    all_copies, fewer = (time_terms(q, from_rows([ROW], 256)).expert[0] for q in (plain, once))
    nodes = 8 * (1 - missed(Experts(256, 8, 1, 1, True), np.array([8.0]))[0])
    assert fewer / all_copies == pytest.approx(nodes / 8, rel=0.05)


def test_what_is_hidden_is_hidden_behind_compute() -> None:
    exposed, hidden = (time_terms(question(expert_parallel=share), from_rows([ROW], 256)) for share in (0.0, 0.5))
    compute = exposed.compute[0]
    assert hidden.expert[0] == pytest.approx(exposed.expert[0] - 0.5 * min(exposed.expert[0], compute))


@pytest.mark.parametrize("slowdown", [0.5, 0.97, 1.2])
def test_parts_of_a_step_add_up_and_none_is_negative(slowdown: float) -> None:
    ours = question()
    asked = replace(ours, stack=ours.stack.model_copy(update={"slowdown": slowdown}))
    step = evaluate_fixed(asked, from_rows([ROW], 256), 0).step
    assert sum(step.components.values()) == pytest.approx(step.seconds)
    assert min(step.components.values()) >= 0


def test_biased_experts_pay_for_unfused_kernels() -> None:
    """GPT-OSS on 64 GB300 before release 26.06: 4.2 s a step, where fused kernels would take 2.9."""
    ours = question()
    assert ours.stack.experts is not None
    fused = replace(ours, stack=ours.stack.model_copy(update={
        "experts": ours.stack.experts.model_copy(update={"biased_passes": 0.0})}))
    slow, fast = (evaluate_fixed(q, from_rows([ROW], 256), 0).step.components["compute"] for q in (ours, fused))
    assert slow > 1.2 * fast
    mixtral = question("mixtral-8x7b")
    assert not any(kind.experts and kind.experts.biased for kind, _ in mixtral.shape.kinds)


def test_a_busier_gpu_takes_longer_on_the_way_and_at_work() -> None:
    even = question("mixtral-8x22b", "fsdp2")
    assert even.stack.experts is not None
    busy = replace(even, stack=even.stack.model_copy(update={
        "experts": even.stack.experts.model_copy(update={"imbalance": 1.5})}))
    row = from_rows([ROW | {"ep": 8}], 256)
    before, after = (time_terms(q, row) for q in (even, busy))
    assert after.expert[0] == pytest.approx(1.5 * before.expert[0], rel=0.1)
    assert 1.1 < after.compute[0] / before.compute[0] < 1.5


def test_one_micro_batch_alone_hides_nothing() -> None:
    """Another micro-batch must be at work."""
    row = {"tp": 1, "pp": 4, "dp": 64, "ep": 64, "zero": 1}
    alone, among = (time_terms(question("deepseek-v3", "hai-llm"), from_rows([row], batch)).expert[0]
                    for batch in (64, 512))
    assert among < 0.5 * alone
