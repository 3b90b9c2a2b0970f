"""Every shipped serving scenario is answered with a proof, whatever the constants that are fitted."""

from __future__ import annotations

import pytest

from planner.scenario.load import shipped
from tests.answered import shipped_answer as answer
from tests.jobs.serving.test_plan import check


@pytest.mark.parametrize("name", shipped("serving"))
def test_is_proven(name: str) -> None:
    found = answer(name)
    assert found.status in ("optimal", "infeasible")
    if found.status == "infeasible":
        # a single GPU, or two: whether they meet the targets depends on the constants
        assert name in ("gpt-oss-120b-one-h100", "70b-int4-two-4090")
        assert found.infeasible is not None
        assert found.infeasible.because
        return
    assert found.objective.value == found.objective.bound
    for one in found.assignments:
        check(one)
        assert one.serving is not None
        assert one.serving.replayed is not None
        assert one.serving.replayed.rejected == 0
        assert one.memory.fits == "fits"


def test_70b_chat_is_served_from_a_few_nodes() -> None:
    found = answer("llama-3.3-70b-chat")
    gpus = sum(a.gpus for a in found.assignments)
    assert 4 <= gpus <= 64
    rate = sum(a.serving.requests_per_second for a in found.assignments if a.serving)
    assert rate == pytest.approx(20, rel=0.02)


def test_405b_takes_a_whole_node() -> None:
    best, = answer("405b-fp8-one-node").assignments
    assert best.nodes == 1
    assert best.gpus == (4 if best.gpu.startswith(("b200", "mi300x")) and best.gpus == 4 else 8)


def test_deepseek_v3_fits_eight_h200_or_sixteen_h100() -> None:
    best = answer("deepseek-v3-h200-or-h100").assignments[0]
    assert (best.node, best.gpus) in (("dgx-h200", 8), ("dgx-h200", 16), ("dgx-h100", 16))


def test_a_pool_is_shared_by_two_models() -> None:
    found = answer("chat-and-code")
    assert {a.workload for a in found.assignments} == {"chat", "code"}
    assert found.objective.value == pytest.approx(sum(a.cost_usd or 0.0 for a in found.assignments))


def test_a_trace_is_planned_for_its_busiest_minutes_and_replayed_whole() -> None:
    found = answer("azure-conversation")
    seen = found.assignments[0].serving
    assert seen is not None
    assert seen.replayed is not None
    assert seen.replayed.requests == 19_366
    assert sum(a.serving.requests_per_second for a in found.assignments if a.serving) > 19_366 / 3600
    assert any("busiest five minutes" in one.why for one in found.provenance.defaults)
