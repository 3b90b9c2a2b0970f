"""Why a fleet is what it is: what levels and limits cost, and other choices, each against a plan of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import planner
from planner.answer.explanation import Explanation, Worth
from planner.ask.explain.explain import explain
from planner.errors import InputError, UnknownName
from planner.jobs.settle import settle
from planner.scenario.load import load_any
from planner.scenario.scenario import ServingScenario
from tests.jobs.serving.cases import CATALOG, solved, write

BOTH: dict[str, Any] = {"quantization": ["bf16"], "hardware": {"candidates": ["l40s-1x", "h100-sxm-1x"]},
                        "ttft": "500 ms", "tpot": "30 ms", "rate": 20}


pytestmark = pytest.mark.usefixtures("fewer_requests")


def explained(*choices: str, **changes: Any) -> Explanation:
    with TemporaryDirectory() as folder:
        path = str(write(Path(folder), **{**BOTH, **changes}))

        @cache
        def asked(replaced: tuple[tuple[str, str], ...]) -> ServingScenario:
            found, _ = load_any(path, dict(replaced), CATALOG)
            assert isinstance(found, ServingScenario)
            return found

        def ask(replaced: Mapping[str, str]) -> ServingScenario:
            return asked(tuple(replaced.items()))

        return explain(ask, CATALOG, choices)


@cache
def _value(text: str) -> float:
    found = settle(solved(**json.loads(text))).solved.objective.value
    assert found is not None
    return found


def value(**changes: Any) -> float:
    """Return the objective of a changed question by replay, without the explanation around it."""
    return _value(json.dumps(changes))


def worth_of(found: Explanation, limit: str) -> Worth:
    return next(one for one in found.worth if one.limit == limit)


def test_what_a_level_costs_is_the_difference_to_a_plan_without_it() -> None:
    found = explained(headroom="30%", spare_replicas=1)
    whole = value(**BOTH, headroom="30%", spare_replicas=1)
    assert found.objective.value == whole
    for limit, without in (("ttft", {"ttft": None}), ("tpot", {"tpot": None}), ("headroom", {"headroom": 0}),
                           ("spare_replicas", {"spare_replicas": 0})):
        one = worth_of(found, limit)
        less = value(**{**BOTH, "headroom": "30%", "spare_replicas": 1, **without})
        assert one.without == pytest.approx(whole - less)
        assert one.binds == (whole > less)
        assert one.saves is not None
        assert one.without is not None
        assert 0 <= one.saves <= one.without + 1e-9
    assert any(one.binds for one in found.worth)


def test_limits_are_worth_what_a_plan_without_them_saves() -> None:
    some: dict[str, Any] = {"rate": 100, "hardware": {"candidates": ["h100-sxm-1x", "dgx-h100"]}}
    free = explained(**some)
    nodes = sum(a.nodes for a in free.assignments)
    assert nodes > 1
    held = explained(**some, limits={"max_nodes": nodes - 1, "max_gpus": 1000})
    assert held.status == "optimal"
    one, slack = worth_of(held, "max_nodes"), worth_of(held, "max_gpus")
    assert one.binds
    assert (held.objective.value or 0) - (one.without or 0) == pytest.approx(free.objective.value)
    assert (slack.binds, slack.saves, slack.without) == (False, 0.0, 0.0)


def test_other_choices_are_plans_of_their_own() -> None:
    found = explained("gpu=h100", "gpu=l40s", "tp=1", "quantization=fp8", "tp=3")
    values = [value(**{**BOTH, "hardware": {"candidates": [node]}}) for node in ("h100-sxm-1x", "l40s-1x")]
    best = found.objective.value
    assert best is not None
    for one, wanted in zip(found.why_not[:2], values, strict=True):
        if one.value is not None and one.verdict != "not offered":
            assert one.value <= wanted + 1e-6
            assert one.excess == pytest.approx(one.value / best - 1)
    assert found.why_not[2].verdict == "is the plan"
    eased = found.why_not[3]
    assert eased.verdict in ("better", "tied", "worse")
    assert eased.value == pytest.approx(value(**{**BOTH, "quantization": ["fp8"]}))
    assert found.why_not[4].verdict == "infeasible"


def test_a_layout_that_another_matches_is_still_answered_for() -> None:
    found = explained("tp=2", hardware={"candidates": ["dgx-h100"]})
    one, = found.why_not
    assert one.verdict in ("worse", "tied")
    assert one.assignment is not None
    assert one.assignment.layout.tp == 2


def test_bad_choices_are_told() -> None:
    with pytest.raises(UnknownName, match="tq"):
        explained("tq=1")
    with pytest.raises(InputError, match="whole number"):
        explained("tp=x")
    with pytest.raises(UnknownName, match="role"):
        explained("role=both")


def test_why_there_is_none() -> None:
    found = explained(ttft="1 ms")
    assert found.status == "infeasible"
    assert found.infeasible is not None
    assert "ttft" in found.infeasible.because[0]


def test_an_estimate_from_python_is_of_a_service_where_its_keys_are_given() -> None:
    found = planner.estimate("llama-3.1-8b", "h100-sxm-1x", input=1000, output=100, concurrency=16)
    assert found.kind == "serving"
    assert found.serving is not None
    assert found.serving.kv_tokens > 100_000
    with pytest.raises(InputError, match="frob"):
        planner.estimate("llama-3.1-8b", "h100-sxm-1x", input=1000, output=100, frob=1)
