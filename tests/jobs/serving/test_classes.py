"""Requests split by prompt length: what each class is, what it costs, and what a replay of all of them finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.ask.simulate import simulate_plan
from planner.errors import InputError
from planner.jobs.serving.service import Service, services_of
from planner.simulate.trace import Lengths, synthetic
from tests.jobs.serving.cases import CATALOG, plan, resolved, value

pytestmark = pytest.mark.usefixtures("fewer_requests")

TAIL: dict[str, Any] = {"rate": 40, "input": {"p50": 800, "p95": 8000}, "output": 200, "ttft": "500 ms",
                        "tpot": "30 ms", "quantization": ["fp8"],
                        "hardware": {"candidates": ["rtx-4090-1x", "h100-sxm-1x"]}}


def parts(count: int, **changes: Any) -> list[Service]:
    return services_of(resolved(**{**TAIL, **changes}, length_classes=count).services[0], CATALOG)


def test_classes_make_up_the_whole() -> None:
    whole, *ranges = parts(4)
    assert whole.prompts is None
    assert len(ranges) == 4 + 3 + 2
    classes = [one for one in ranges if one.classes[0] == one.classes[1]]
    assert [one.prompts[0] if one.prompts else 0 for one in classes[1:]] == [
        one.prompts[1] + 1 for one in classes[:-1] if one.prompts and one.prompts[1]]
    assert classes[0].prompts is not None
    assert classes[-1].prompts is not None
    assert (classes[0].prompts[0], classes[-1].prompts[1]) == (1, None)
    rates = np.array([one.rate for one in classes], np.float64)
    means = np.array([one.stream.input for one in classes])
    squares = means**2 * (1 + np.array([one.stream.input_cv for one in classes])**2)
    assert rates.sum() == pytest.approx(whole.rate)
    assert (rates * means).sum() / rates.sum() == pytest.approx(whole.stream.input)
    assert (rates * squares).sum() / rates.sum() == pytest.approx(
        whole.stream.input**2 * (1 + whole.stream.input_cv**2))
    # equally many tokens each, and equally many requests that may miss the level
    assert rates * means == pytest.approx(np.full(4, (rates * means).mean()), rel=0.03)
    missing = [1 - one.level.ttft[1] for one in classes if one.level.ttft and one.level.ttft[1]]
    assert rates * missing == pytest.approx(np.full(4, 0.05 * rates.sum() / 4))


def write(path: Path, arrivals: list[float], prompts: list[int]) -> Path:
    path.write_text("".join(json.dumps({"timestamp": 1000 * at, "input_length": tokens, "output_length": 20}) + "\n"
                            for at, tokens in zip(arrivals, prompts, strict=True)))
    return path


def of_trace(path: Path, count: int) -> list[Service]:
    asked = {**TAIL, "rate": None, "input": None, "output": None}
    return services_of(resolved(**asked, trace=str(path), length_classes=count).services[0], CATALOG)


def test_the_rate_of_a_class_is_its_part_of_the_trace(tmp_path: Path) -> None:
    """A class of one request, or of a few in a moment, had an infinite rate."""
    short = write(tmp_path / "t.jsonl", list(range(11)), [*[100] * 10, 900])
    whole, *ranges = of_trace(short, 2)
    assert [one.rate for one in ranges] == pytest.approx([10 / 11, 1 / 11])
    assert whole.rate == 1
    early = write(tmp_path / "u.jsonl", [0, *range(900)], [9000, *[100] * 900])
    assert of_trace(early, 2)[1].rate == pytest.approx(1)
    assert of_trace(early, 2)[2].rate == pytest.approx(1 / 300)


def test_a_trace_may_last_as_long_as_it_likes(tmp_path: Path) -> None:
    """30,000 years took an array of 25 GiB, and centuries a minute: windows without requests were looked at too."""
    found = of_trace(write(tmp_path / "t.jsonl", [0, 1, 2, 9e11], [100] * 4), 1)[0]
    assert found.rate == 3 / 300


def test_the_number_of_classes_may_come_as_text() -> None:
    assert resolved(**TAIL, length_classes="2").services[0].length_classes == 2
    with pytest.raises(InputError, match="length_classes: expected 1, 2 or 4"):
        parts(3)


def test_requests_all_alike_are_not_split() -> None:
    assert len(parts(4, input=1000)) == 1


def test_classes_of_a_trace_are_its_requests(tmp_path: Path) -> None:
    drawn = synthetic(5.0, (Lengths(1000, 1.5), Lengths(100)), count=2000)
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps({"timestamp": round(at * 1000), "input_length": int(i), "output_length": int(o)})
                            + "\n" for at, i, o in zip(drawn.arrival, drawn.input, drawn.output, strict=True)))
    whole, *ranges = parts(2, rate=None, input=None, output=None, trace=str(path))
    assert len(ranges) == 2
    assert sum(len(one.trace or ()) for one in ranges) == len(whole.trace or ()) == 2000
    tokens = [int(one.trace.input.sum()) for one in ranges if one.trace]
    assert tokens[0] == pytest.approx(tokens[1], rel=0.05)


def test_more_classes_never_cost_more_and_here_they_save() -> None:
    costs = [value(**TAIL | {"rate": 60}, length_classes=count) for count in (1, 2, 4)]
    assert costs[0] > costs[1] >= costs[2]


def test_a_split_fleet_holds_the_level_of_all_requests() -> None:
    found = plan(**TAIL | {"rate": 100}, length_classes=2)
    ranges = {a.serving.prompts for a in found.assignments if a.serving}
    assert len(ranges) == 2
    assert None not in ranges
    assert sum(a.serving.requests_per_second for a in found.assignments if a.serving) == pytest.approx(100, rel=0.01)
    requests = synthetic(100.0, (Lengths(*lengths()), Lengths(200)), count=6000, seed=3)
    seen = simulate_plan(found, CATALOG, requests)
    assert seen.requests == 6000
    assert seen.replicas == sum(a.serving.replicas for a in found.assignments if a.serving)
    assert seen.share_within_level > 0.93


def lengths() -> tuple[float, float]:
    asked = resolved(**TAIL).services[0].input
    assert asked is not None
    return asked.mean, asked.cv


def test_a_trace_without_long_prompts_leaves_their_replicas_idle() -> None:
    short = synthetic(10.0, (Lengths(300), Lengths(50)), count=200)
    seen = simulate_plan(plan(**TAIL, length_classes=2), CATALOG, short)
    assert (seen.requests, seen.rejected) == (200, 0)
