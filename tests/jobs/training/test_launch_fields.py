"""What starts a run is in fields: how sequences, contexts, experts and micro-batches are handled, what is at stake."""

from __future__ import annotations

import pytest

from planner.answer.assignment import ServingAssignment, TrainingAssignment
from planner.answer.layout import Layout
from planner.ask.estimate import estimating
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from tests.asked import load_scenario

CATALOG = Catalog()


def layout(stack: str = "megatron-core", model: str = "llama-3.1-8b", gpus: int = 8, length: int = 8192,
           **axes: str) -> Layout:
    values = {"workload.model": model, "workload.sequence_length": length, "workload.global_batch": 64,
              "workload.stack": stack, "limits.gpus": gpus}
    return estimating(None, values, CATALOG, node="dgx-h100", layout=axes, labels={})().layout


def test_sequence_parallelism_is_on_where_tensors_are_split_and_it_is_not_turned_off() -> None:
    assert layout(tp="2").sequence_parallel is True
    assert layout(tp="2", sp="0").sequence_parallel is False
    assert layout(tp="1").sequence_parallel is False


@pytest.mark.parametrize(("stack", "schedule"), [
    ("megatron-core", "1f1b"), ("fsdp2", "gpipe"), ("fsdp2", "zero-bubble"), ("hai-llm", "dualpipe")])
def test_the_schedule_is_the_one_asked_for(stack: str, schedule: str) -> None:
    assert layout(stack, pp="4", schedule=schedule, zero="1" if stack == "hai-llm" else "0").schedule == schedule


def test_a_context_is_exchanged_by_some_method_only_where_it_is_split() -> None:
    assert layout(cp="1").cp_method is None
    assert layout(cp="2").cp_method in ("ring", "all-to-all")
    gathered = next(name for name in CATALOG.names("stacks") if CATALOG.stack(name).context_gathered)
    assert layout(gathered, cp="2").cp_method in ("all-gather", "all-to-all")


def test_experts_are_split_like_tensors() -> None:
    assert layout(tp="2").expert_tp is None
    assert layout(model="mixtral-8x22b", gpus=64, tp="2", pp="4", ep="8").expert_tp == 2


def test_a_plan_says_what_it_is_of_and_how_it_is_saved() -> None:
    scenario, defaults = load_scenario(None, {
        "workload.model": "llama-3.1-8b", "workload.tokens": "1 G", "hardware.candidates": "dgx-h100",
        "limits.gpus": "8"}, CATALOG)
    plan = make_plan(scenario, CATALOG, defaults=defaults)
    for one in (*plan.assignments, *plan.alternatives):
        assert isinstance(one, TrainingAssignment)
        assert (one.model, one.method, one.sequence_length) == ("llama-3.1-8b", "pretrain", 8192)
        assert one.global_batch == one.layout.dp * one.layout.micro_batch * one.layout.micro_batches == 2048
        assert one.failures is not None
        assert one.failures.checkpoint_write_seconds < one.failures.checkpoint_interval_seconds
        assert one.failures.checkpoint_interval_seconds < one.failures.seconds_between
        assert one.commitment is None
    assert all(one.name not in ("failures", "schedule", "sequence_parallel") for one in plan.provenance.defaults)


def test_a_model_that_is_run_is_asked_about_as_a_service() -> None:
    values = {"workload.model": "llama-3.1-8b", "workload.method": "inference", "limits.gpus": 1}
    made = estimating(None, values, CATALOG, node="dgx-h100", layout={}, labels={})()
    assert isinstance(made, ServingAssignment)
    assert (made.kind, made.method, made.model) == ("serving", None, "llama-3.1-8b")
    assert made.serving is not None
