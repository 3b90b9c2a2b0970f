"""Models that are a size alone, batches in tokens, and the largest that hardware holds, asked in other words."""

from __future__ import annotations

import pytest

import planner
from planner.catalog.load import Catalog
from planner.catalog.sized import size_of
from planner.errors import UnknownName
from planner.physics.shapes import parameters
from planner.scenario.batch import Batch
from planner.scenario.load import load_question

CATALOG = Catalog()


@pytest.mark.parametrize("size", ["100m", "350M", "1b", "3B", "13b", "34b", "123b", "175 billion", "300B", "1T"])
def test_a_size_is_a_dense_model_of_about_so_many_parameters(size: str) -> None:
    model, wanted = CATALOG.model(size), size_of(size)
    assert wanted is not None
    assert parameters(model) == pytest.approx(wanted, rel=0.03)
    assert CATALOG.model(model.name) == model


@pytest.mark.parametrize(("size", "like"), [("8b", "llama-3-8b"), ("70b", "llama-3-70b")])
def test_a_size_of_the_family_is_the_family_s_own_shape(size: str, like: str) -> None:
    found, wanted = CATALOG.model(size), CATALOG.model(like)
    assert (found.layers, found.hidden) == (wanted.layers, wanted.hidden)
    assert parameters(found) == parameters(wanted)


@pytest.mark.parametrize("name", ["my-13b", "13", "b", "0.001b", "99999t"])
def test_what_is_more_or_less_than_a_size_is_unknown(name: str) -> None:
    with pytest.raises(UnknownName):
        CATALOG.model(name)


def test_the_answer_says_that_a_size_was_taken() -> None:
    plan = planner.plan(model="13b", method="lora", on="rtx-4090-1x")
    assert any("names a size and no model" in note for note in plan.notes)


@pytest.mark.parametrize(("tokens", "length", "sequences"), [
    (4_000_000, 8192, 512), (4_194_304, 8192, 512), (3_200_000, 2048, 1536), (500_000, 2048, 256), (100, 8192, 1)])
def test_a_batch_in_tokens_is_what_papers_make_of_it(tokens: int, length: int, sequences: int) -> None:
    assert Batch(0, 0.0, tokens).of(length) == Batch(sequences)
    assert Batch(sequences).of(length) == Batch(sequences)


def test_a_batch_in_tokens_follows_the_length() -> None:
    asked = {"model": "llama-3.2-1b", "tokens": "10 G", "on": "dgx-h100", "max_nodes": 1, "global_batch": "1 M tokens"}
    for more, batch in (({}, 128), ({"seq_len": 2048}, 512)):
        layout = planner.plan(**asked, **more).assignments[0].layout
        assert layout.dp * layout.micro_batch * layout.micro_batches == batch


def test_the_largest_that_hardware_holds_may_be_called_so() -> None:
    asked = {"hardware.candidates": "rtx-4090-1x", "workload.method": "qlora"}
    plain, said = (load_question(None, {**asked, **more}, CATALOG) for more in ({}, {"objective": "largest"}))
    assert said == plain
