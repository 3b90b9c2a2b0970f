"""Plans of the first edition: read, reported and replayed; what they say in prose comes out as fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.answer.assignment import ServingAssignment, TrainingAssignment
from planner.answer.first_edition import upgraded
from planner.answer.schema import Plan, to_json
from planner.cli.plan_file import read_plan

STORED = Path(__file__).parent / "first_edition"
TRAINING, SERVING = STORED / "training.json", STORED / "serving.json"


def test_a_training_plan_is_read() -> None:
    plan = read_plan(TRAINING)
    assert plan.schema_ == "planner.plan/2"
    assert plan.provenance.pareto == ("cost_usd", "duration_days")
    assert {one.name: one.value for one in plan.provenance.defaults} == {
        "method": "pretrain", "precision": "bf16", "sequence_length": "8192", "global_batch": "2048 sequences",
        "terms": "on-demand", "prices": "2026 to 2026-11"}
    first = plan.assignments[0]
    assert isinstance(first, TrainingAssignment)
    assert (first.model, first.method, first.sequence_length, first.global_batch) == (
        "llama-3.1-8b", "pretrain", 8192, 2048)
    assert (first.layout.schedule, first.layout.no_sync) == ("1f1b", False)
    assert {one.sourcing for one in (first, *plan.alternatives)} == {"rent"}
    assert plan.alternatives[0].layout.schedule is None  # of alternatives nothing was said


def test_a_serving_plan_is_read() -> None:
    plan = read_plan(SERVING)
    (first,) = plan.assignments
    assert isinstance(first, ServingAssignment)
    assert (first.model, first.method, first.sourcing, first.layout.schedule) == ("llama-3.3-70b", None, "owned", None)


@pytest.mark.parametrize("file", [TRAINING, SERVING], ids=["training", "serving"])
def test_every_field_keeps_its_name_place_and_value(file: Path) -> None:
    def kept(old: Any, new: Any, where: str) -> None:
        if isinstance(old, dict):
            for key in old.keys() - ({"schema", "defaults"} if where in ("", ".provenance") else set()):
                kept(old[key], new[key], f"{where}.{key}")
        elif isinstance(old, list) and old and isinstance(old[0], dict):
            for at, (mine, its) in enumerate(zip(old, new, strict=True)):
                kept(mine, its, f"{where}[{at}]")
        else:
            assert old == new, where

    kept(json.loads(file.read_text()), json.loads(to_json(read_plan(file))), "")


@pytest.mark.parametrize("file", [TRAINING, SERVING], ids=["training", "serving"])
def test_a_report_is_written_of_it(planner: Any, tmp_path: Path, file: Path) -> None:
    ran = planner("report", file, "-o", tmp_path / "report.html")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(file.read_text())["assignments"][0]["gpu"] in (tmp_path / "report.html").read_text()


def test_a_service_of_it_is_replayed(planner: Any, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = [f"2023-11-16 18:15:{second:02d}.0000000,1000,50" for second in range(0, 60, 20)]
    trace.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows, ""]))
    ran = planner("simulate", SERVING, "--trace", trace, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["requests"] == 3


def test_prose_becomes_fields() -> None:
    data = json.loads(TRAINING.read_text())
    data["provenance"]["defaults"] = [
        "sequence_parallel=off, which is faster here", "schedule=dualpipe", "no_sync=1, gradients accumulate",
        "context_parallel=all-to-alls of heads (Ulysses), faster here than a ring", "max_gpus=131072",
        "prefer=simple, +0.4% against the optimum, which comes next", "not_held=nothing holds full"]
    plan = Plan.model_validate(data)
    layout = plan.assignments[0].layout
    assert (layout.sequence_parallel, layout.schedule, layout.no_sync, layout.cp_method) == (
        False, "dualpipe", True, "all-to-all")
    assert (plan.provenance.prefer, plan.notes) == ("simple", ("nothing holds full",))
    assert [one.name for one in plan.provenance.defaults] == ["max_gpus"]


def test_what_only_held_a_model_was_called_by_its_method() -> None:
    data = {"schema": "planner.plan/1", "provenance": {"scenario": {"workload": {"kind": "training", "model": "a, b"}}},
            "assignments": [{"kind": "serving", "workload": "inference b"}]}
    assert upgraded(data)["assignments"] == [  # type: ignore[index]
        {"kind": "serving", "workload": "inference b", "model": "b", "method": "inference"}]


@pytest.mark.parametrize("data", [[], {}, {"schema": "planner.plan/3"}, None])
def test_anything_else_is_left_as_it_is(data: object) -> None:
    assert upgraded(data) == data


def test_what_is_broken_is_refused_and_not_repaired() -> None:
    for part in ("provenance", "assignments", "objective"):
        data = json.loads(TRAINING.read_text()) | {part: 7}
        with pytest.raises(ValueError, match=part):
            Plan.model_validate(data)
