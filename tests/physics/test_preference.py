"""Preferences: what a sample adds to memory and time, held against arithmetic by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner.layouts.axes import RECOMPUTE
from planner.layouts.table import from_rows
from planner.physics.training.evaluate import Evaluation, evaluate_fixed
from planner.physics.training.memory import memory_terms
from planner.physics.training.preference import Sample, longest_of, sample_of
from planner.physics.training.question import Question, question_of
from planner.physics.training.tuning import tuning_of
from tests.search_cases import candidate, catalog

METHODS = catalog().recipes.preference.methods
VOCAB, HIDDEN, LENGTH = 128256, 4096, 2048
"""Of Llama 3 8B, and the tokens of an answer."""


def asked(method: str, trains: str = "full", reference: str | None = "copy", *, stack: str = "trl",
          longest: int | None = None, passes: float = 1.0) -> Question:
    own = catalog().stack(stack)
    return question_of(
        catalog(), catalog().model("llama-3-8b"), (candidate("dgx-h100"),), own, sequence_length=LENGTH,
        global_batch=16, precisions=("bf16",), method=method, confidence=0.95,
        tuning=tuning_of(catalog().recipes, own, trains, 16),
        sample=sample_of(catalog().recipes.preference, method, reference, passes), longest=longest)


def found(question: Question, **row: float) -> Evaluation:
    rows = from_rows([{"dp": 8, "zero": 3, "recompute": RECOMPUTE.index("full"), **row}], 16)
    return evaluate_fixed(question, rows, 0)


def test_a_frozen_copy_is_16_bits_of_every_weight_sharded_as_the_policy() -> None:
    for zero, shards in ((3, 8), (2, 1), (0, 1)):
        held = found(asked("dpo"), zero=zero).memory.components["reference"]
        assert held == pytest.approx(2 * 8_030_261_248 / shards, rel=1e-3)


@pytest.mark.parametrize(("method", "trains", "reference"), [
    ("dpo", "lora", "adapters-off"), ("dpo", "full", "precomputed"), ("orpo", "full", None), ("simpo", "full", None),
    ("reward-model", "full", None), ("kto", "qlora", "adapters-off")])
def test_what_has_no_copy_holds_none(method: str, trains: str, reference: str | None) -> None:
    assert found(asked(method, trains, reference)).memory.components["reference"] == 0


@pytest.mark.parametrize(("method", "answers", "reference"), [("dpo", 2, 2), ("kto", 1, 2), ("simpo", 2, 0),
                                                              ("orpo", 2, 0)])
def test_logits_are_of_every_answer_and_of_the_reference(method: str, answers: int, reference: int) -> None:
    """In a pair both answers stand in one batch; the reference adds two bytes a logit at the peak."""
    question = asked(method, stack="hf-peft")
    logits = memory_terms(question, from_rows([{"dp": 8, "zero": 3}], 16)).logits[0]
    each = question.stack.loss_bytes_per_logit + reference
    assert logits == pytest.approx(answers * LENGTH * VOCAB * each)


@pytest.mark.parametrize(("method", "made"), [("dpo", False), ("kto", False), ("orpo", True), ("simpo", True)])
def test_a_head_fused_with_its_loss_makes_no_logits_of_policy_or_reference(method: str, made: bool) -> None:
    """TRL fuses them for DPO and KTO, and has ORPO and SimPO as they were."""
    assert bool(memory_terms(asked(method), from_rows([{"dp": 8, "zero": 3}], 16)).logits[0]) == made


def test_a_reward_model_has_one_value_and_no_head() -> None:
    scored, plain = asked("reward-model"), asked("simpo")
    assert plain.shape.total - scored.shape.total == VOCAB * HIDDEN - HIDDEN
    assert found(scored).memory.components["logits"] < found(plain).memory.components["logits"] / 1000
    # the head is 525 of 7,505 million products of a token, at the rate of large ones
    with_, without = (found(question, zero=0).step.components["compute"] for question in (plain, scored))
    assert 0.03 < 1 - without / with_ < 525 / 7505


def test_a_pair_keeps_two_checkpoints_a_layer() -> None:
    kept = memory_terms(asked("simpo"), from_rows([{"dp": 8, "zero": 3}], 16)).kept[0, RECOMPUTE.index("full")]
    assert kept == 2 * LENGTH * HIDDEN * 2


def test_memory_is_of_the_longest_pair_and_time_of_the_mean() -> None:
    short, long = asked("dpo"), asked("dpo", longest=2 * LENGTH)
    assert found(long).step.seconds == found(short).step.seconds
    assert found(long).memory.peak > found(short).memory.peak
    assert found(long).memory.peak == found(replace(short, sequence_length=2 * LENGTH, longest=2 * LENGTH)).memory.peak


def test_several_pairs_are_padded_to_the_longest_of_them() -> None:
    """Of two standard normals the larger is 1/sqrt(pi) on average; nothing is padded beyond the longest."""
    assert longest_of(1) == pytest.approx(0, abs=1e-9)
    assert longest_of(2) == pytest.approx(math.pi**-0.5, rel=0.01)
    rows = from_rows([{"dp": 1, "micro_batch": size} for size in (1, 2, 4)], 16)
    spread = catalog().recipes.preference.usual.spread
    tokens = asked("dpo", longest=4 * LENGTH).tokens(rows) / (2 * LENGTH)
    assert tokens.tolist() == pytest.approx([1, 2 * (1 + spread * longest_of(2)), 4 * (1 + spread * longest_of(4))])
    assert asked("dpo", longest=LENGTH + 1).tokens(rows)[2] == pytest.approx(4 * 2 * (LENGTH + 1))
    free = replace(asked("dpo", longest=4 * LENGTH), sample=replace(asked("dpo").sample, spread=0.0))
    assert (free.tokens(rows) / (2 * LENGTH)).tolist() == [1, 2, 4]


def test_a_pass_of_the_reference_costs_a_forward() -> None:
    """Where products bound the step, forward is a third of forward and backward, or a quarter with the recompute."""
    with_, without = (found(asked(name), recompute=0, zero=0).step.components for name in ("dpo", "simpo"))
    assert with_["compute"] / without["compute"] == pytest.approx(4 / 3, rel=0.03)
    again, plain = (found(asked(name), zero=0).step for name in ("dpo", "simpo"))
    assert again.components["recompute"] == plain.components["recompute"], "what keeps nothing is not repeated"


def test_kto_runs_three_passes_beside_its_own() -> None:
    kto, one = (found(question, recompute=0, zero=0).step.components["compute"] for question in (
        asked("kto"), replace(asked("kto"), sample=Sample())))
    # forward is a third of one's own pass, or less where gradients are added up
    assert 1.85 < kto / one < 2


def test_adapters_are_off_in_the_reference() -> None:
    lora = asked("dpo", "lora", "adapters-off", stack="hf-peft")
    more = replace(lora, sample=replace(lora.sample, policy_forwards=1.0, reference_forwards=0.0))
    assert found(lora, zero=0).step.seconds < found(more, zero=0).step.seconds


def test_a_reference_that_runs_before_training_runs_once_for_all_epochs() -> None:
    assert sample_of(catalog().recipes.preference, "dpo", "precomputed", 3.0).reference_forwards == pytest.approx(1 / 3)
    assert sample_of(catalog().recipes.preference, "dpo", "copy", 3.0).reference_forwards == 1
    one, three, held = (found(asked("dpo", reference=where, passes=passes)).step.seconds for where, passes in (
        ("precomputed", 1.0), ("precomputed", 3.0), ("copy", 1.0)))
    assert three < one == pytest.approx(held, rel=1e-6)


def test_supervised_training_is_as_it_was() -> None:
    own = catalog().stack("trl")
    plain = question_of(catalog(), catalog().model("llama-3-8b"), (candidate("dgx-h100"),), own, sequence_length=LENGTH,
                        global_batch=16, precisions=("bf16",), method="full", confidence=0.95)
    assert plain.sample == Sample() == sample_of(catalog().recipes.preference, "full", None)
    assert found(plain).memory.components["reference"] == 0


def test_zero_3_gathers_the_weights_once_more_for_the_reference() -> None:
    with_, without = (found(asked(name)).step.components["data_parallel"] for name in ("dpo", "simpo"))
    assert with_ > without
