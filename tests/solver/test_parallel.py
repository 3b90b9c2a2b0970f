"""However many processes share a search out, the answer and its account are the same."""

from __future__ import annotations

import pytest

from planner.answer.schema import Plan
from planner.api import plan
from planner.layouts.enumerate import Grid
from planner.solver.settings import Effort
from tests.search_cases import choose, random_case


def asked(workers: int, **more: object) -> Plan:
    return plan(model="llama-3.1-8b", tokens="100 G", on="dgx-h100,dgx-a100", max_gpus=64, workers=workers, **more)


@pytest.mark.parametrize("more", [{}, {"deadline": "1 h"}])
def test_two_processes_answer_as_one_does(more: dict[str, object]) -> None:
    one, two = asked(1, **more), asked(2, **more)
    same = {"search": one.search.model_copy(update={"wall_seconds": 0.0, "removed": {}})}
    assert one.search.removed == two.search.removed
    assert two.model_copy(update={"search": two.search.model_copy(update={"wall_seconds": 0.0, "removed": {}})}) \
        == one.model_copy(update=same)


def test_a_question_of_one_candidate_needs_no_second_process() -> None:
    case = next(c for c in map(random_case, range(600, 640)) if len(c.question.candidates) == 1)
    one, many = (choose(case.question, Grid(case.facts), case.job, Effort(workers=n)) for n in (1, 8))
    assert (one.status, one.value) == (many.status, many.value)
