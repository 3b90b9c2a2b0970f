"""Every rule of a serving replica has layouts that break it and no other, and the same layouts mended by a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from planner.catalog.architecture import Model
from planner.jobs.serving.rates import DEGREES, RULES, STAGES, ReplicaLayout, layouts, violations
from planner.layouts.candidate import Candidate
from tests.search_cases import candidate, catalog

ONE = ReplicaLayout(catalog().model("llama-3.1-8b"), candidate("dgx-h100"), 1, 1, 1, False)
MIXTRAL = catalog().model("mixtral-8x7b")


def layers(count: int) -> Model:
    """Return the model with as many layers."""
    return ONE.model.model_copy(update={"blocks": (ONE.model.blocks[0].model_copy(update={"count": count}),)})


def nodes(gpus: int, *, clustered: bool = True) -> Candidate:
    """Return nodes of as many GPUs."""
    node = ONE.candidate.node.model_copy(update={"gpus": gpus})
    return replace(ONE.candidate, node=node, clustered=clustered)


def heads(count: int, keys: int) -> Model:
    """Return the model with as many heads, and key-value heads."""
    return ONE.model.model_copy(update={"blocks": tuple(
        block.model_copy(update={"attention": block.attention.model_copy(update={"kv_heads": keys, "heads": count})})
        for block in ONE.model.blocks if block.attention is not None)})


@dataclass(frozen=True)
class Example:
    """A layout that breaks a rule, and what makes it legal."""

    rule: str
    fails: Mapping[str, Any]
    mended: Mapping[str, Any]


EXAMPLES = (
    Example("tp_fills_nodes", {"candidate": nodes(6), "tp": 8, "pp": 3}, {"tp": 2}),
    Example("tp_fills_nodes", {"candidate": nodes(6), "tp": 8, "pp": 3}, {"candidate": nodes(4), "pp": 2}),
    Example("tp_divides_heads", {"model": catalog().model("qwen2.5-7b"), "tp": 8}, {"tp": 4}),
    Example("tp_divides_heads", {"model": heads(24, 3), "tp": 2}, {"tp": 1}),
    Example("tp_divides_heads", {"model": heads(24, 3), "tp": 8}, {"model": heads(24, 4)}),
    Example("pp_has_layers", {"model": layers(3), "pp": 4}, {"model": layers(4)}),
    Example("whole_nodes", {"candidate": nodes(1), "pp": 8}, {"pp": 4}),
    Example("whole_nodes", {"candidate": nodes(8, clustered=False), "tp": 8, "pp": 2}, {"pp": 1}),
    Example("whole_nodes", {"candidate": nodes(6), "tp": 4, "pp": 2}, {"candidate": nodes(8)}),
    Example("fills_nodes", {"candidate": nodes(6), "tp": 4}, {"tp": 2}),
    Example("ep_over_copies", {"model": MIXTRAL, "spread": True, "dp": 8, "tp": 2}, {"tp": 1}),
    Example("ep_over_copies", {"model": MIXTRAL, "spread": True}, {"dp": 2}),
    Example("ep_divides_experts", {"model": MIXTRAL, "spread": True, "dp": 16}, {"dp": 8}),
    Example("ep_divides_experts", {"model": MIXTRAL, "spread": True, "dp": 16}, {"spread": False}),
    Example("copies_on_one_gpu", {"model": MIXTRAL, "can_have": "narrow", "tp": 2, "dp": 2}, {"dp": 1}),
    Example("copies_on_one_gpu", {"model": MIXTRAL, "can_have": "narrow", "tp": 2, "dp": 2}, {"can_have": "wide"}),
    Example("has_copies", {"model": MIXTRAL, "can_have": "none", "dp": 2}, {"dp": 1}),
)


def test_every_rule_has_examples() -> None:
    assert {example.rule for example in EXAMPLES} == set(RULES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_an_example_breaks_its_rule_alone_and_is_legal_when_mended(example: Example) -> None:
    broken = replace(ONE, **example.fails)
    assert violations(broken) == [example.rule]
    assert violations(replace(broken, **example.mended)) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_switched_off_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, rule, lambda replica: True)
    for example in EXAMPLES:
        if example.rule == rule:
            with pytest.raises(AssertionError):
                test_an_example_breaks_its_rule_alone_and_is_legal_when_mended(example)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_the_table_has_what_is_legal_and_counts_the_rest_once(example: Example) -> None:
    broken = replace(ONE, **example.fails)
    removed: Counter[str] = Counter()
    found = layouts(broken.model, broken.candidate, removed, broken.can_have)
    assert removed[example.rule] > 0
    kinds = 2 * len(DEGREES) if broken.model.mixes_experts else 1
    assert len(found) + removed.total() == len(DEGREES) * len(STAGES) * kinds
