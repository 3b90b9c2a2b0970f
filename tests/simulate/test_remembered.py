"""A replay is run once for the same values, and again for any other."""

from dataclasses import fields, replace
from functools import partial
from operator import mul

import numpy as np
import pytest

import planner.simulate.remembered as module
from planner.layouts.memo import ByValue
from planner.simulate.fleet import ReplicaGroup, Shift, simulate
from planner.simulate.outcome import Outcome
from planner.simulate.remembered import replayed_once
from planner.simulate.steps import ReplicaKind
from planner.simulate.trace import Lengths, synthetic, thinking
from tests.simulate.naive import Affine

KIND = ReplicaKind(Affine(), 600, 8, chunk=64, block=8)
GROUPS = (ReplicaGroup(KIND, 2),)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what is simulated, of which nothing is remembered at first."""
    seen: list[object] = []

    def counted(*asked: object) -> Outcome:
        seen.append(asked)
        return simulate(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "simulate", counted)
    monkeypatch.setattr(module, "OUTCOMES", ByValue(most=64))
    return seen


def asked(**changes: object) -> Outcome:
    # drawn anew each time: what counts is the values
    trace = synthetic(12, (Lengths(60, 0.7), Lengths(40, 0.7)), cv=2, count=100, seed=6)
    return replayed_once(**{"trace": trace, "groups": GROUPS, "policy": "least-outstanding", "transfer": None,  # type: ignore[arg-type]
                            "progress": None} | changes)


def test_the_same_replay_is_run_once_and_is_that_of_the_simulator(runs: list[object]) -> None:
    told: list[float] = []
    first, second = asked(), asked(progress=told.append)
    trace = synthetic(12, (Lengths(60, 0.7), Lengths(40, 0.7)), cv=2, count=100, seed=6)
    plain = simulate(trace, GROUPS)
    assert (len(runs), second is first, told) == (1, True, [1.0])
    for field in fields(Outcome):
        np.testing.assert_array_equal(getattr(first, field.name), getattr(plain, field.name))


@pytest.mark.parametrize("changes", [
    {"groups": (ReplicaGroup(KIND, 3),)}, {"groups": (ReplicaGroup(replace(KIND, max_batch=7), 2),)},
    {"groups": (ReplicaGroup(KIND, 2, weight=2.0),)}, {"policy": "round-robin"}, {"phases": (Shift(1.0, (1,)),)},
    {"users": thinking(5, 0.1, 100)},
    {"trace": synthetic(12, (Lengths(60, 0.7), Lengths(40, 0.7)), cv=2, count=100, seed=7)}],
    ids=("replicas", "kind", "weight", "policy", "phases", "users", "trace"))
def test_another_replay_is_run_again(runs: list[object], changes: dict[str, object]) -> None:
    asked()
    asked(**changes)
    assert len(runs) == 2


def test_what_a_function_decides_or_is_long_is_not_kept(runs: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    apart = (ReplicaGroup(KIND, role="prefill"), ReplicaGroup(KIND, role="decode"))
    for _ in range(2):
        asked(groups=apart, transfer=lambda tokens: 0.0)
    assert len(runs) == 2
    for each in (1e-6, 2e-6, 1e-6):
        asked(groups=apart, transfer=partial(mul, each))
    assert len(runs) == 4
    monkeypatch.setattr(module, "LONGEST", 99)
    for _ in range(2):
        asked()
    assert len(runs) == 6


def test_the_oldest_is_forgotten(runs: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.OUTCOMES, "most", 1)
    for policy in ("round-robin", "least-kv", "round-robin"):
        asked(policy=policy)
    assert len(runs) == 3


def test_as_many_are_kept_as_weigh_no_more_than_is_admitted() -> None:
    known, made = ByValue[str](10, len), list[str]()

    def asked(text: str) -> str:
        return known.recall(text, lambda: made.append(text) or text)  # type: ignore[func-returns-value]

    for text in ("a" * 6, "b" * 2, "c" * 2, "a" * 6, "d", "b" * 2, "c" * 2, "d"):
        assert asked(text) == text
    # the fourth is remembered, d puts out what was used longest ago, and the second b then c
    assert made == ["a" * 6, "b" * 2, "c" * 2, "d", "b" * 2, "c" * 2]
