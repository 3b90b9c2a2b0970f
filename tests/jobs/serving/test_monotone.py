"""More kinds of hardware to choose from never make a service dearer, whatever its replays show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.jobs.job import Tried
from planner.jobs.kinds import question_of
from planner.jobs.settle import settle
from planner.jobs.solved import solve
from tests.jobs.serving.cases import CATALOG, resolved

CHAT: dict[str, Any] = {"model": "llama-3.3-70b", "input": 1155, "output": 211, "rate": None, "tpot": None}
QUESTIONS: dict[str, dict[str, Any]] = {
    # by formula one node of H100 is 10% over the target, by replay it is 13% under it
    "users": {**CHAT, "users": 400, "ttft": "0.5 s", "hardware": {"candidates": ["dgx-h100", "dgx-b200"]},
              "sourcing": {"buy": {"utilization": 1.0}, "rent": {"terms": ["on-demand"]}}},
    "a rate": {"rate": 8, "ttft": "0.3 s", "tpot": "20 ms",
               "hardware": {"candidates": ["l40s-1x", "a100-sxm-80gb-1x", "h100-sxm-1x"]}},
    "a mixture": {"model": "mixtral-8x7b", "rate": 3, "input": 2000, "output": 300, "ttft": "1 s", "tpot": "25 ms",
                  "hardware": {"candidates": ["dgx-a100", "dgx-h100"]}}}


@pytest.mark.parametrize("name", QUESTIONS)
def test_all_hardware_is_never_dearer_than_one_node_type(name: str) -> None:
    question, known = question_of(resolved(**QUESTIONS[name]), CATALOG), dict[object, Tried]()
    market = question.terms.market
    best = settle(solve(question), known=known)
    assert best.met
    assert best.solved.objective.value is not None
    for candidate in market.at_hand:
        offers = tuple(offer for offer in market.offers if offer.candidate == candidate)
        alone = question.under(replace(question.terms, market=replace(market, offers=offers)))
        found = settle(solve(alone), known=known)
        value = found.solved.objective.value
        assert not found.met or value is None or best.solved.objective.value * (1 - best.gap) <= value * (1 + 1e-9)
