"""What people call values means the planner's own, in flags, keywords and files alike."""

from __future__ import annotations

import pytest

from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.scenario.keywords import by_path
from planner.scenario.load import load_question
from planner.scenario.said import in_their_places, rate_of

CATALOG = Catalog()


def paths(**values: object) -> dict[str, object]:
    return by_path(values, "argument of planner.plan", CATALOG)[0]


@pytest.mark.parametrize(("said", "path", "value"), [
    ({"gpu": "h100"}, "hardware.candidates", "h100"), ({"gpu_type": "h100"}, "hardware.candidates", "h100"),
    ({"total_tokens": "1T"}, "workload.tokens", "1T"), ({"num_documents": 5}, "workload.documents", 5),
    ({"target_ttft": "1s"}, "workload.ttft", "1s"), ({"prompt_tokens": 500}, "workload.input", 500),
    ({"response_length": 9}, "workload.output", 9), ({"gen_len": 9}, "workload.output", 9),
    ({"doc_length": 9}, "workload.input", 9), ({"docs": 9}, "workload.documents", 9), ({"bits": "4"},
                                                                                       "workload.quantization", "4"),
    ({"epoch": 3}, "workload.epochs", 3), ({"requests_per_day": 50}, "workload.rate", "50/day"),
    ({"images_per_second": 2}, "workload.rate", "2 images/second"), ({"params": "7B"}, "workload.model", "7B"),
    ({"spot": True}, "sourcing.rent.terms", "spot"), ({"gpus": "64xh100"}, "hardware.candidates", ["64xh100"]),
    ({"gpus": ["h100", "b200"]}, "hardware.candidates", ["h100", "b200"]), ({"gpus": "64"}, "limits.gpus", "64"),
    ({"gpu": "8"}, "limits.gpus", "8"), ({"dataset": "50k"}, "workload.samples", "50k"),
    ({"gpus": ["a100", "4090"]}, "hardware.candidates", ["a100", "4090"]),
    ({"ttft_ms": 500}, "workload.ttft", "500 ms"),
    ({"p99_latency": "4s"}, "workload.e2e", "4s at p99"), ({"dau": "50k"}, "workload.rate", "500000/day"),
    ({"ttft_p95_ms": 500}, "workload.ttft", "500 ms at p95"), ({"beta": 0}, "workload.reference", "none"),
    ({"daily_users": 100, "requests_per_user": 3}, "workload.rate", "300/day"),
    ({"budget_usd": 5000}, "limits.budget", "5000 usd"), ({"peak_factor": 3}, "workload.headroom", "200%"),
    ({"requests": "100 req/min"}, "workload.rate", "100 req/min"), ({"requests": "3 rps"}, "workload.rate", "3 rps"),
    ({"dataset": "260B"}, "workload.tokens", "260B"), ({"requests": "500k"}, "workload.documents", "500k"),
    ({"data": "mine.jsonl"}, "workload.dataset", "mine.jsonl"), ({"gpu": "4090"}, "hardware.candidates", "4090")])
def test_a_keyword_by_another_name(said: dict[str, object], path: str, value: object) -> None:
    assert paths(**said) == {path: value}


@pytest.mark.parametrize("gpus", ["many", "-8", "8 nodes", 8, "64 GPUs"])
def test_what_is_no_hardware_stays_a_count(gpus: object) -> None:
    assert in_their_places({"limits.gpus": gpus}) == {"limits.gpus": gpus}


def test_what_is_embedded_is_not_answered() -> None:
    assert paths(method="embed")["workload.output"] == 0
    assert paths(method="embed", output=9)["workload.output"] == 9
    assert "workload.output" not in paths(method="inference")


def test_two_names_of_one_value_and_none_of_any() -> None:
    with pytest.raises(InputError, match="gpu and on mean the same"):
        paths(gpu="h100", on="b200")
    with pytest.raises(UnknownName, match="'frobnication'"):
        paths(frobnication=3)
    with pytest.raises(InputError, match="changes neither time, memory nor money"):
        paths(learning_rate=1e-4)
    with pytest.raises(InputError, match="with --rate 12/day beside it"):
        paths(daily_users=5000, rate="12/day")


@pytest.mark.parametrize(("name", "counted"), [
    ("requests-per-minute", ("requests", "minute")), ("daily_tokens", ("tokens", "day")), ("rpm", ("requests", "min")),
    ("clips-per-day", ("clips", "day")), ("users-per-day", None), ("tokens-per-second", None), ("rate", None)])
def test_a_rate_is_read_off_a_name(name: str, counted: tuple[str, str] | None) -> None:
    assert rate_of(name) == counted


def test_a_file_has_the_same_names() -> None:
    asked, _ = load_question({"llm": "llama-3.1-8b", "task": "serve", "users": 10, "gpu_type": "l4",
                              "budget": "5 USD/h"}, {}, Catalog())
    same, _ = load_question({"model": "llama-3.1-8b", "method": "inference", "users": 10, "on": "l4",
                             "budget": "5 USD/h"}, {}, Catalog())
    assert asked == same


@pytest.mark.parametrize(("said", "model"), [
    ("llama 70b", "llama-3.3-70b"), ("gemma-27b", "gemma-3-27b"), ("qwen-7b", "qwen-7b"), ("llama-13.5b", None),
    ("granite-4-h-small", "granite-4.0-h-small"), ("qwen3.0-8b", "qwen3-8b"), ("llama-3.0-8b", "llama-3-8b")])
def test_a_family_and_a_size_are_its_newest(said: str, model: str | None) -> None:
    known = Catalog().known_model(said)
    assert (known and known.name) == model
