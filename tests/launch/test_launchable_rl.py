"""A search of reinforcement learning held to a target finds ways that its emitter writes, and the best of those."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.answer.schema import Plan
from planner.errors import InputError, Unsupported
from planner.jobs.posttraining.assignment import assignment_of
from planner.jobs.posttraining.launchable import tellable
from planner.jobs.posttraining.options import ways_on
from planner.jobs.posttraining.question import questions
from planner.jobs.posttraining.way import RlWay
from planner.launch.axes import CannotExpress, settings_of
from planner.launch.emitter import ReinforcedEmitter, all_targets
from planner.launch.reinforced import reinforced_of
from planner.launch.written import write_all
from planner.layouts.candidate import Candidate
from planner.money.rent import usual_candidate
from planner.scenario.load import load_question
from planner.scenario.posttraining import PostTraining, PostTrainingScenario
from tests.launch.emitters import emitters_of
from tests.search_cases import catalog

TARGETS = sorted(emitters_of(ReinforcedEmitter))
ASKED: dict[str, Any] = {"model": "qwen2.5-1.5b", "on": "dgx-h100", "gpus": 8, "steps": 10, "input": 300, "output": 800,
                         "prompts": 60}


def _work(**changed: str) -> PostTraining:
    asked, _ = load_question(None, {**{f"workload.{key}": str(ASKED[key]) for key in (
        "model", "steps", "input", "output", "prompts")}, "workload.method": "grpo",
        "hardware.candidates": "dgx-h100", **{f"workload.{key}": value for key, value in changed.items()}}, catalog())
    assert isinstance(asked, PostTrainingScenario)
    return asked.workload


def _ways(work: PostTraining, candidates: tuple[Candidate, ...], gpus: int) -> list[RlWay]:
    return [way for question in questions(work, catalog(), candidates, 0, 0.95) for way in ways_on(question, gpus, {})]


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("target", TARGETS)
def test_the_table_of_a_target_admits_what_its_emitter_writes(target: str, lag: int) -> None:
    framework = catalog().releases.target(target).stacks[0]
    if lag > catalog().posttraining_law.frameworks[framework].most_lag:
        return
    candidates = (usual_candidate(catalog().node("dgx-h100"), catalog()),)
    work = _work(stack=framework, policy_lag=str(lag))
    held = work.model_copy(update={"launchable": target})
    told = {_shape(way) for gpus in (1, 3, 8, 24) for way in _ways(held, candidates, gpus)}
    table, seen = all_targets()[target].table, set()
    for gpus in (1, 3, 8, 24):
        for way in _ways(work, candidates, gpus):
            placed = assignment_of("w", work, way, candidates, catalog().posttraining_law)
            written = reinforced_of(placed, work, catalog(), target)
            try:
                settings_of(written, table)
            except CannotExpress:
                assert _shape(way) not in told
                seen.add(False)
            else:
                assert _shape(way) in told
                seen.add(True)
    assert True in seen or not told


def _shape(way: RlWay) -> tuple[object, ...]:
    return (way.placed, way.question.kind, tuple(sorted(way.layout.items())),
            replace(way.rollouts, drawn=way.rollouts.drawn), way.question.framework.packed)


@pytest.mark.parametrize("target", TARGETS)
def test_files_are_written_for_what_is_found(target: str, tmp_path: Path) -> None:
    found = planner.plan(**ASKED, method="grpo", launchable=target)
    assert isinstance(found, Plan)
    assert write_all(found, catalog(), tmp_path / "run", target)[0][1].target == target


def test_a_framework_names_its_target_of_this_work() -> None:
    plans = [planner.plan(**ASKED, method="grpo", launchable=name) for name in ("trl", "trl-grpo")]
    assert plans[0].assignments == plans[1].assignments


@pytest.mark.parametrize(("asked", "why"), [
    ({"launchable": "megatron-lm", "method": "grpo"}, "megatron-lm is for training, and this is reinf"),
    ({"launchable": "trl", "method": "ppo"}, "trl-grpo cannot be told method ppo"),
    ({"launchable": "openrlhf", "method": "grpo", "stack": "verl"}, "verl is not what openrlhf starts"),
    ({"launchable": "auto", "method": "grpo", "stack": "areal"}, "areal .not written yet"),
])
def test_what_a_target_does_not_do_is_refused(asked: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        planner.plan(**{**ASKED, **asked})


def test_pretraining_is_not_started_by_a_target_of_reinforcement_learning() -> None:
    with pytest.raises(InputError, match="verl is for reinforcement learning, and this is training"):
        planner.plan(model="qwen2.5-1.5b", on="dgx-h100", gpus=8, tokens="10M", launchable="verl")


def test_the_nearest_of_another_framework_is_named(tmp_path: Path) -> None:
    found = planner.plan(**ASKED, method="grpo", stack="areal")
    with pytest.raises(InputError, match=r"areal .not written yet.; .*--launchable TARGET.* verl, openrlhf"):
        write_all(found, catalog(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_of_one_framework_nothing_is_written_for() -> None:
    assert not tellable(_work().model_copy(update={"launchable": "auto"}), "areal", catalog()).targets
    with pytest.raises(Unsupported, match="areal"):
        catalog().releases.some("areal", work="posttraining")


def test_what_is_launchable_with_a_target_is_started_by_it(tmp_path: Path) -> None:
    """TRL's stack is ms-swift's too, and TRL's own script its usual target."""
    found = planner.plan(**ASKED, method="grpo", launchable="ms-swift-grpo")
    assert write_all(found, catalog(), tmp_path / "run")[0][1].target == "ms-swift-grpo"
