"""What is said beside a plan of a service whose formula and replay differ."""

from __future__ import annotations

from functools import cache

import pytest

import planner
from planner.answer.schema import Plan
from planner.ask.cautions import unlike_replay


@cache
def plan() -> Plan:
    return planner.plan(model="llama-3.1-8b", on=["h100-sxm-1x"], rate=5, input=1000, output=200, ttft="2 s",
                        tpot="50 ms")


@pytest.mark.parametrize(("times", "said"), [
    (1.0, False), (1.4, False), (1 / 1.4, False), (1.7, True), (1 / 1.7, True)])
def test_a_formula_far_from_its_replay_is_told(times: float, said: bool) -> None:
    (made,) = plan().assignments
    assert made.serving is not None
    assert made.serving.replayed is not None
    seen = made.serving.replayed.ttft_seconds.p95
    ttft = made.serving.ttft_seconds.model_copy(update={"p95": times * seen})
    changed = made.model_copy(update={"serving": made.serving.model_copy(update={"ttft_seconds": ttft})})
    told = [note for note in unlike_replay([changed]) if note.startswith("TTFT")]
    assert bool(told) is said
    assert all("by formula" in note and "by replay" in note for note in told)
