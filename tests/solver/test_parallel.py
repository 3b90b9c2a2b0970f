"""However many processes share a search out, the answer and its account are the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner import plan
from planner.answer.schema import Plan, to_json
from planner.layouts.enumerate import Grid
from planner.process.workers import Answer, K, Workers
from planner.solver.search.parallel import UNGROWN, search_grid
from planner.solver.settings import UNLIMITED, Effort
from tests.cli.conftest import planner  # noqa: F401 - the fixture that runs the command
from tests.search_cases import choose, random_case


def asked(workers: int, **more: object) -> Plan:
    return plan(model="gpt2", tokens="10 G", on="dgx-h100,dgx-a100", stack="megatron-core", max_gpus=16,
                workers=workers, **more)


@pytest.mark.parametrize("more", [{}, {"deadline": "1 min"}])
def test_two_processes_answer_as_one_does(more: dict[str, object]) -> None:
    one, two = asked(1, **more), asked(2, **more)
    assert to_json(one) == to_json(two)


def test_a_question_of_one_candidate_needs_no_second_process() -> None:
    case = next(c for c in map(random_case, range(600, 640)) if len(c.question.candidates) == 1)
    one, many = (choose(case.question, Grid(case.facts), case.job, Effort(workers=n)) for n in (1, 8))
    assert (one.status, one.value) == (many.status, many.value)


class Here(Workers[K]):
    """Answers in this process, the last call first: the order in which processes end is anybody's guess."""

    def answers(self, seconds: float | None = None) -> Any:
        while self.waiting:
            key, call = self.waiting.pop()
            yield Answer(key, call())


QUESTIONS = {
    "plan": ("--model", "gpt2", "--tokens", "1G", "--on", "dgx-h100,dgx-a100,dgx-h200,l40s-8x-pcie",
             "--max-gpus", "32", "--global-batch", "64"),
    "infeasible": ("--model", "llama-3.1-70b", "--tokens", "1G", "--on", "dgx-h100,dgx-a100,h100-sxm-1x,l40s-8x-pcie",
                   "--max-gpus", "8", "--global-batch", "64"),
    "holding": ("--model", "llama-3.1-8b", "--method", "lora", "--on", "dgx-h100,dgx-a100,l40s-8x-pcie"),
}


@pytest.mark.parametrize("asked", QUESTIONS)
def test_the_same_question_has_the_same_bytes_whatever_workers(planner, monkeypatch, asked):  # noqa: F811
    monkeypatch.setattr("planner.solver.search.parallel.Workers", Here)
    answers = []
    for workers in (1, 3):
        ran = planner("plan", *QUESTIONS[asked], "--workers", workers, "--json")
        data = json.loads(ran.out)
        answers.append((ran.code, ran.err, ran.out))
    assert answers[0] == answers[1]
    assert len(data["search"]["removed"]) > 2


def test_candidates_behind_those_that_are_shown_need_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best stays the best, nothing is lost from the account, and something is left out at all."""
    spared = 0
    for seed in range(900, 925):
        case = random_case(seed)
        whole, part = Grid(case.facts), Grid(case.facts)
        expected = choose(case.question, whole, case.job)
        with monkeypatch.context() as patched:
            patched.setattr("planner.solver.search.turns.SHOWN", 1)
            found = choose(case.question, part, case.job)
            frontier = search_grid(case.question, Grid(case.facts), case.job, UNLIMITED)
            least = search_grid(case.question, Grid(case.facts), case.job, UNLIMITED, each=False)
        assert (found.status, found.value) == (expected.status, expected.value)
        assert min((one.key for one in least.found), default=None) == min(
            (one.key for one in frontier.found), default=None)
        assert part.grown <= whole.grown
        spared += whole.grown - part.grown
        ungrown = sum(frontier.removed[name] for name in UNGROWN)
        assert part.grown + part.removed.total() + ungrown == part.size
    assert spared > 0
