"""The stack is part of the search: its optimum is that of trying every layout of every stack, group by group."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import plan
from planner.catalog.load import Catalog
from planner.catalog.stack import Stack
from planner.errors import InputError
from planner.jobs.job import Change
from planner.jobs.kinds import question_of
from planner.jobs.solved import ResolvedScenario, solve
from planner.jobs.training import in_use
from planner.jobs.training.in_use import stacks_of
from planner.jobs.training.stacks import ByStack
from planner.scenario.workload import Training
from planner.scenario.writing import to_yaml
from planner.solver.settings import Effort
from tests.asked import load_scenario
from tests.small_cases import Small, truth

TOY = """
name: toy-stacks
source: made up for a test
as_of: 2026
kind: assumed
hidden: 2048
vocab: 32000
tied: false
norm: rmsnorm
blocks: [{count: 4, attention: {heads: 4, kv_heads: 2, head_dim: 512}, mlp: {kind: gated, ffn: 8192}}]
sequence_length: 1024
global_batch: 4
"""
TUNE = {"model": "llama-3.1-8b", "method": "full", "tokens": "50M", "global_batch": 64, "seq_len": 2048}


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = Path(tmp_path_factory.mktemp("toys"))
    (folder / "models").mkdir()
    (folder / "models" / "toy-stacks.yaml").write_text(TOY)
    return Catalog([folder])


def asked(toys: Catalog, stack: str, objective: str, gigabytes: float, budget: str) -> ResolvedScenario:
    """The toy on two kinds of nodes whose GPUs have so much less memory."""
    scenario, _ = load_scenario(None, {
        "workload.model": "toy-stacks", "workload.method": "full", "workload.tokens": "3G", "workload.stack": stack,
        "objective": objective, "hardware.candidates": "rtx-4090-1x,rtx-4090-2x", "limits.max_gpus": "2",
        "limits.budget": budget}, toys)
    return question_of(scenario, toys).changed(Change(memory=-gigabytes * 1e9))


def best_of(group: tuple[object, ...]) -> int | None:
    """The least value of the objective over every point of the grids of some jobs."""
    found = [truth(Small(job.question, job.facts.space, job.facts, job.search)).best for job in group]  # type: ignore[attr-defined]
    return min((plans[0].rank[0] for plans in found if plans), default=None)


@pytest.mark.parametrize("stack", ["auto", "megatron-core,fsdp2,deepspeed", "hf-peft,fsdp2"])
@pytest.mark.parametrize(("objective", "less", "budget"), [
    ("cost", 0, "1 kUSD"), ("time", 14, "1 kUSD"), ("gpus", 17, "1 kUSD"), ("energy", 19, "1 kUSD"),
    ("cost", 21.9, "40 USD"), ("cost", 23, "1 kUSD")])
def test_the_optimum_is_that_of_every_layout_of_every_stack(toys: Catalog, stack: str, objective: str, less: float,
                                                            budget: str) -> None:
    question = asked(toys, stack, objective, less, budget)
    (job,) = question.jobs
    assert isinstance(job, ByStack)
    expected = next((best for group in job.groups if (best := best_of(group)) is not None), None)
    for effort in (Effort(), Effort(workers=2)):
        solved = solve(question, effort)
        assert (solved.status, solved.solution.value) == ("infeasible" if expected is None else "optimal", expected)
    assert solve(question, depth="best").solution.value == expected
    assert (solve(question, depth="any").solution.value is None) == (expected is None)


def test_stacks_without_a_measured_speed_come_behind_those_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # every stack in use has a published speed by now, so one is taken for unmeasured
    monkeypatch.setattr(in_use, "has_evidence", lambda catalog, stack, method: stack.name != "deepspeed")
    found = stacks_of(Training(model="llama-3.1-8b", method="full", tokens=10**6), Catalog())
    assert [one for group in found for one in group][:1] == ["megatron-core"]
    assert "deepspeed" in found[1]
    assert "deepspeed" not in found[0]
    assert "deepspeed" in stacks_of(Training(model="llama-3.1-8b", method="full"), Catalog(), timed=False)[0]
    assert found[-1] == ["llmq"]


def test_a_no_does_not_depend_on_a_default_stack() -> None:
    answer = plan(**TUNE, on="rtx-4090-1x")
    assert answer.status == "optimal"
    (best,) = answer.assignments
    assert best.stack == "deepspeed"
    assert best.time.evidence is not None
    assert best.time.evidence.rows == 5
    assert {one.name: one.value for one in answer.provenance.defaults}["stack"] == best.stack
    assert plan(**TUNE, on="rtx-4090-1x", stack=["megatron-core", "fsdp2"]).status == "infeasible"


def test_every_other_stack_with_a_plan_is_among_the_alternatives() -> None:
    answer = plan(**TUNE, on="dgx-h100", gpus=8)
    others = {one.stack: one for one in answer.alternatives}
    assert {"fsdp2", "deepspeed"} <= others.keys() | {answer.assignments[0].stack}
    assert others["deepspeed"].why.startswith("with deepspeed: ")


@pytest.mark.parametrize(("stack", "message"), [
    ("auto,fsdp2", "auto stands for"), ("", "expected auto"), ("megatronn", "megatron"), ([3], "stack")])
def test_a_wrong_stack_is_refused(stack: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(model="llama-3.1-8b", tokens="1G", on="dgx-h100", stack=stack)


@pytest.mark.parametrize("stack", ["auto", "fsdp2", "fsdp2, deepspeed", ["fsdp2", "deepspeed"]])
def test_stacks_are_written_as_they_are_read(stack: object) -> None:
    scenario, _ = load_scenario({"workload": {"model": "gpt2", "tokens": "1G", "stack": stack},
                                 "hardware": {"candidates": ["dgx-h100"]}}, {}, Catalog())
    text = to_yaml(scenario)
    assert f"stack: {stack if isinstance(stack, str) else ', '.join(stack)}" in text


def test_what_a_stack_is_used_for_is_not_taken_by_one_that_is_like_it() -> None:
    known = Catalog()
    assert all(not known.stack(name).used_for for name in ("fsdp2-eager", "megatron-core-2025", "litgpt"))
    for method in ("pretrain", "full", "lora", "qlora", "inference"):
        places = [stack.used_for[method] for stack in known.all("stacks", Stack) if method in stack.used_for]
        assert places
        assert len(set(places)) == len(places)
