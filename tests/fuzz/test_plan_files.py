"""A plan's JSON after someone wrote into it: a report and a replay, or one line that says what is wrong."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given

from tests.fuzz.mutation import mutated
from tests.fuzz.running import folder, fuzzing, run

TRAINED = ("--model", "gpt2", "--tokens", "1G", "--seq-len", "1024", "--global-batch", "64")
SERVED = ("--model", "llama-3.1-8b", "--rate", "5", "--input", "500", "--output", "100", "--ttft", "2s")
REQUESTS = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50.99,396,19\n"


@cache
def plan(served: bool) -> str:
    """The JSON of a small plan."""
    return run("plan", *(SERVED if served else TRAINED), "--on", "h100-sxm-1x", "--max-gpus", "2", "--json")[1]


@pytest.mark.parametrize("served", [False, True])
def test_a_mutated_plan_is_reported_or_refused(served: bool) -> None:
    @fuzzing(12)
    @given(mutated(json.loads(plan(served)), most=2))
    def reported(data: Any) -> None:
        with folder() as place:
            (place / "plan.json").write_text(json.dumps(data), encoding="utf-8")
            assert run("report", place / "plan.json", "-o", place / "page.html", "-q")[0] in (0, 2)

    reported()


def test_a_mutated_plan_is_replayed_or_refused() -> None:
    @fuzzing(10)
    @given(mutated(json.loads(plan(True)), most=2))
    def replayed(data: Any) -> None:
        with folder() as place:
            (place / "plan.json").write_text(json.dumps(data), encoding="utf-8")
            (place / "trace.csv").write_text(REQUESTS, encoding="utf-8")
            assert run("simulate", place / "plan.json", "--trace", place / "trace.csv", "-q")[0] in (0, 2)

    replayed()


@pytest.mark.parametrize(("served", "path", "value", "key"), [
    (False, "provenance.scenario.workload", "text", "provenance.scenario.workload"),
    (False, "provenance.scenario.limits", 7, "provenance.scenario.limits"),
    (False, "provenance.scenario.confidence", "high", "provenance.scenario.confidence"),
    (False, "provenance.scenario.workload.tokens", [], "provenance.scenario.workload.tokens"),
    (True, "assignments.0.workload", "another", "assignments.0.workload: expected 'llama-3.1-8b'"),
    (True, "provenance.scenario.workload.model", "another", "assignments.0.workload: expected 'another'"),
    (True, "provenance.scenario.workload.kind", "training", "provenance.scenario.workload"),
    (True, "assignments.0.kind", "training", "assignments.0"),
    (False, "assignments.0.layout.tp", 10**30, "assignments.0")])
def test_what_a_tampered_plan_says_is_checked(served: bool, path: str, value: object, key: str,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(plan(served))
    *parts, last = path.split(".")
    inner = data
    for part in parts:
        inner = inner[int(part) if part.isdigit() else part]
    inner[last] = value
    with folder() as place:
        file = place / "plan.json"
        file.write_text(json.dumps(data), encoding="utf-8")
        from planner.cli.main import main
        assert main(["report", str(file), "-o", str(place / "page.html")]) == 2
        said = capsys.readouterr().err
    assert key in said
    assert str(file) in said
