"""Amounts of work that are told by something else: tokens by parameters, steps by a usual run, a batch by what runs."""

from __future__ import annotations

import pytest

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.load import load_question

CATALOG = Catalog()


def work(**values: object) -> object:
    return load_question(None, {f"workload.{key}": value for key, value in values.items()}, CATALOG)[0].workload


@pytest.mark.parametrize(("model", "said", "tokens"), [
    ("1.3b", "chinchilla", 26_000_000_000), ("llama-3.1-8b", "compute-optimal", 20 * 8_030_261_248),
    ("llama-3.1-8b", "100 per parameter", 100 * 8_030_261_248), ("7b", "20.5 tokens/param", 143_500_000_000)])
def test_tokens_by_parameters(model: str, said: str, tokens: int) -> None:
    assert getattr(work(model=model, tokens=said), "tokens", None) == tokens


@pytest.mark.parametrize(("model", "message"), [
    ("mixtral-8x7b", "is a mixture of experts"), ("nobody-7b", "not known")])
def test_tokens_of_what_has_no_one_count(model: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        work(model=model, tokens="chinchilla")


@pytest.mark.parametrize(("given", "steps"), [
    ({"images": 30}, 2000), ({"images": 1000, "batch": 4}, 2000), ({"images": "1M", "batch": 512}, None),
    ({"samples": 30, "epochs": 10}, None), ({"samples": 5000}, None),
    ({"images": 30, "steps": 500}, 500)])
def test_a_few_images_are_a_data_set_and_not_one_pass(given: dict[str, object], steps: int | None) -> None:
    assert getattr(work(model="sdxl", method="lora", **given), "steps", 0) == steps


@pytest.mark.parametrize(("given", "key", "value"), [
    ({"method": "inference"}, "concurrency", 16), ({"users": 64}, "max_sequences", 16)])
def test_the_batch_of_a_service_is_what_it_has_in_flight(given: dict[str, object], key: str, value: int) -> None:
    assert getattr(work(model="llama-3.1-8b", batch=16, **given), key, None) == value
    trained = work(model="llama-3.1-8b", tokens="1G", batch=16)
    assert str(getattr(trained, "global_batch", None)) == "16 sequences"


def test_the_batch_of_reinforcement_learning_is_of_prompts() -> None:
    assert getattr(work(model="qwen2.5-7b", method="grpo", global_batch=256), "prompts", None) == 256


def test_serving_images_by_any_word_is_no_training() -> None:
    assert getattr(work(model="flux.1-dev", method="serve", rate="2 images/min"), "kind", None) == "generation"


@pytest.mark.parametrize("beside", [{}, {"samples": "10k", "epochs": 3}, {"tokens": "1T"}])
def test_steps_say_how_much_it_is_before_passes_and_tokens(beside: dict[str, object]) -> None:
    asked = work(model="llama-3.1-8b", method="lora", steps=500, global_batch=64, sequence_length=2048, **beside)
    assert getattr(asked, "tokens", None) == 500 * 64 * 2048
