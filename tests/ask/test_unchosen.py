"""A "no" that hangs on a default which nobody chose is a plan with another value; what was chosen is kept."""

from typing import Any

import pytest

import planner

WAN: dict[str, Any] = {"model": "wan2.1-14b", "method": "lora", "steps": 100, "on": "rtx-4090-1x"}


@pytest.mark.parametrize(("asked", "key"), [({}, "frames"), ({"frames": 33}, "quantization"),
                                            ({"frames": 81}, "resolution")])
def test_what_nobody_chose_is_changed_and_said(asked: dict[str, Any], key: str) -> None:
    """The model's 81 frames, 16 bits of weights or its size do not fit 24 GB; what was asked for stays as it was."""
    plan = planner.plan(**WAN, **asked)
    assert plan.status == "optimal"
    said = next(default for default in plan.provenance.defaults if default.name == key)
    assert "nobody asked for" in said.why
    assert plan.notes[0].startswith(f"{key} ")
    assert f"planned for {said.value}" in plan.notes[0]
    work = plan.provenance.scenario["workload"]
    assert {name: work[name] for name in asked} == asked


def test_what_was_chosen_is_kept_to() -> None:
    """All of it asked for: the answer is no, and names what would be enough."""
    plan = planner.plan(**WAN, frames=33, quantization="bf16", resolution="832x480")
    assert plan.status == "infeasible"
    assert plan.infeasible is not None
    assert {"frames", "quantization", "resolution"} <= {each.limit for each in plan.infeasible.relaxations}


def test_what_is_run_changes_its_format_first() -> None:
    """Two experts of 14B in 16 bits wait on a host of 64 GB in no way, and in 8 bits they do."""
    plan = planner.plan(model="wan2.2-a14b", samples=10, on="rtx-4090-1x")
    assert (plan.status, plan.assignments[0].layout.precision) == ("optimal", "fp8-weights")
