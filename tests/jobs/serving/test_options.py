"""Columns of a service: the settings of the engine that are chosen for each, against trying every one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from planner.jobs.columns import ReplicaColumn
from planner.jobs.serving.blocks import SEQUENCES, TOKENS, Account
from planner.jobs.serving.deployed import deployment, held
from planner.jobs.serving.options import options
from planner.jobs.serving.rates import largest
from planner.jobs.serving.service import service_of
from planner.money.rent import usual_candidate
from planner.physics.serving.settings import USUAL, EngineSettings
from tests.jobs.serving.cases import CATALOG, resolved

LONG = {"mean": 3000, "cv": 1.0}
TIGHT = {"model": "llama-3.3-70b", "quantization": ["int4"], "rate": 0.1, "input": 1000, "output": 500, "ttft": "20 s",
         "tpot": "200 ms", "engine_version": "0.16", "hardware": {"candidates": ["rtx-4090-2x"]}}
"""Two cards that hold the weights and little else."""
CASES = [TIGHT, {"input": LONG, "output": {"mean": 2000, "cv": 1.0}, "rate": 1, "ttft": "5 s",
                 "hardware": {"candidates": ["l4-1x"]}},
         {"model": "qwen2.5-32b", "quantization": ["fp8"], "rate": 1, "hardware": {"candidates": ["l40s-4x"]}}]


def found(**changes: Any) -> list[ReplicaColumn]:
    service = service_of(resolved(**changes).services[0], CATALOG)
    candidates = [usual_candidate(CATALOG.node(name), CATALOG) for name in changes["hardware"]["candidates"]]
    return options(CATALOG, service, candidates, Account())


@pytest.mark.parametrize("case", CASES)
def test_no_settings_answer_more_than_those_chosen(case: dict[str, Any]) -> None:
    """Every share of memory, chunk and batch limit, one by one, for the layout that answers most."""
    service = service_of(resolved(**case).services[0], CATALOG)
    candidate = usual_candidate(CATALOG.node(case["hardware"]["candidates"][0]), CATALOG)
    best = max(found(**case), key=lambda column: column.rate)
    tried = {}
    for settings in (EngineSettings(*one) for one in product((None, 0.95), (None, *TOKENS), (None, *SEQUENCES))):
        d = deployment(CATALOG, service, candidate, best.format, settings)
        longest, mean = (held(CATALOG, service, d, best.rows, length, settings).concurrency
                         for length in (service.length, service.mean_length))
        if longest[0] >= 1:
            most = np.minimum(mean, float(d.engine.sequences) * best.dp)
            tried[settings] = float(largest(d, "whole", best.rows, service.stream, service.level, most)[0][0])
    assert best.rate == pytest.approx(max(tried.values()), rel=0.01)
    assert tried[best.settings] == pytest.approx(best.rate, rel=0.01)


def test_settings_are_the_defaults_where_these_answer_as_much() -> None:
    """A node with room to spare needs none; a card that is nearly full of weights needs some."""
    roomy = found(rate=1, hardware={"candidates": ["h100-sxm-1x"]})
    assert any(column.settings == USUAL for column in roomy)
    tight = max((column for column in found(**TIGHT) if column.gpus == 2), key=lambda column: column.rate)
    assert tight.settings.changed


WIDE = {"model": "deepseek-v3", "quantization": ["fp8"], "rate": 1, "input": 4000, "output": 500, "ttft": "5 s",
        "tpot": "50 ms", "engine": "sglang", "hardware": {"candidates": ["dgx-h200"]}}
"""Copies of attention, each of whose prompts holds up all."""


def test_prompts_wait_for_each_other_where_that_answers_more() -> None:
    """Nothing else is changed; a release that cannot, and a question that does not want it, get what there was."""
    waiting, plain = found(**WIDE), found(**WIDE, prefill_delay=0)
    best, before = (max(columns, key=lambda column: column.rate / column.gpus) for columns in (waiting, plain))
    assert best.dp > 1
    assert best.settings.delay
    assert best.rate / best.gpus > 1.5 * before.rate / before.gpus
    assert not any(column.settings.delay for column in plain)
    assert not any(column.settings.delay for column in found(**WIDE, engine_version="0.5.7"))
    # what has no copies waits for none
    assert all(column.dp > 1 and column.pp == 1 for column in waiting if column.settings.delay)


def test_replicas_apart_are_not_joined_by_prompts_that_wait() -> None:
    assert {column.role for column in found(**WIDE, disaggregated="only")} == {"prefill", "decode"}
    assert {column.role for column in found(**WIDE, disaggregated="allowed")} == {"whole", "prefill", "decode"}


APART = {"model": "mixtral-8x7b", "rate": 0.3, "input": 2000, "output": 100, "ttft": "10 s", "tpot": "100 ms",
         "disaggregated": "allowed", "hardware": {"candidates": ["dgx-a100"]}}


@pytest.mark.parametrize(("engine", "staged"), [("vllm", {"whole"}), ("sglang", {"whole", "prefill"}),
                                                ("tensorrt-llm", {"whole", "prefill", "decode"})])
def test_stages_are_searched_of_the_roles_that_the_engine_can_have_in_them(engine: str, staged: set[str]) -> None:
    # every column is kept that answers anything: those that others match too
    service = service_of(resolved(**APART, engine=engine).services[0], CATALOG)
    account = Account()
    options(CATALOG, service, [usual_candidate(CATALOG.node("dgx-a100"), CATALOG)], account)
    columns = [column for made in account.searched[0].made for _, column in made]
    assert {column.role for column in columns if column.pp > 1} == staged
    assert {column.role for column in columns} == {"whole", "prefill", "decode"}
    wide = any(column.tp > 1 and column.dp > 1 for column in columns)
    assert wide is (CATALOG.engine(engine).copies == "wide")
