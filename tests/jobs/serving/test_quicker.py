"""Of fleets that cost the same, a service without a latency target has the one whose answers come quickest."""

from __future__ import annotations

import pytest

from planner.catalog.load import Catalog
from planner.jobs.kinds import question_of
from planner.jobs.quicker import quicker
from planner.jobs.solved import Solved, solve
from planner.scenario.load import load_question

CATALOG = Catalog()
LARGE = {"workload.model": "llama-3.1-70b", "workload.concurrency": "16", "hardware.candidates": "dgx-a100"}


def solved(held: dict[str, str] | None = None, **more: str) -> Solved:
    asked = LARGE | {f"workload.{key}": value for key, value in more.items()}
    return solve(question_of(load_question(None, asked, CATALOG)[0], CATALOG), held=held or {})


def seconds(found: Solved) -> float:
    (only,) = found.assignments()
    assert only.serving is not None
    return only.serving.ttft_seconds.p50 + 100 * only.serving.tpot_seconds.p50


def test_no_layout_of_the_same_price_answers_sooner() -> None:
    """Eight stages of one GPU each were the answer, at a third of the pace of all eight together."""
    strongest = solved()
    found = quicker(strongest)
    assert found.objective == strongest.objective
    others = [one for tp in (2, 4, 8) for pp in (1, 2, 4) if tp * pp <= 8
              and (one := solved({"tp": str(tp), "pp": str(pp)})).solution.value == strongest.solution.value]
    assert len(others) > 2
    assert seconds(found) == pytest.approx(min(map(seconds, others)))
    assert seconds(found) < seconds(strongest) / 2.5


@pytest.mark.parametrize("more", [{"tpot": "200 ms"}, {"documents": "1k", "concurrency": ""}])
def test_whoever_has_a_target_or_waits_for_no_answer_keeps_what_answers_most(more: dict[str, str]) -> None:
    asked = {key: value for key, value in (LARGE | {f"workload.{key}": value for key, value in more.items()}).items()
             if value}
    found = solve(question_of(load_question(None, asked, CATALOG)[0], CATALOG))
    assert quicker(found) is found
