"""Sequences that are longer than a model is published to take are said to be."""

from __future__ import annotations

import pytest

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.scenario.load import load_any
from planner.scenario.model_notes import text_notes

CATALOG = Catalog()
CARD = {"hardware.candidates": "a100-sxm-80gb-1x"}
SERVED = CARD | {"workload.kind": "serving", "workload.rate": "1", "workload.output": "500"}
TRAINED = CARD | {"workload.tokens": "10 M", "workload.method": "lora"}


@pytest.mark.parametrize(("asked", "said"), [
    (SERVED | {"workload.model": "llama-2-7b", "workload.input": "8000"}, "8,500 tokens are more than the 4,096 that"),
    (SERVED | {"workload.model": "llama-2-7b", "workload.input": "3000"}, None),
    (SERVED | {"workload.model": "llama-2-7b", "workload.input": "3000", "workload.max_model_len": "5000"},
     "5,000 tokens are more than the 4,096 that"),
    (SERVED | {"workload.model": "bloom-7b1", "workload.input": "8000"}, None),  # nothing is stated
    (TRAINED | {"workload.model": "llama-3.1-8b", "workload.sequence_length": "131073"}, "131,073 tokens"),
    (TRAINED | {"workload.model": "llama-3.1-8b", "workload.sequence_length": "131072"}, None)])
def test_a_sequence_beyond_the_context_is_said_to_be(asked: dict[str, str], said: str | None) -> None:
    _, defaults = load_any(None, asked, CATALOG)
    notes = [note for note in text_notes(defaults) if "published to take" in note]
    assert [note.startswith(said or "") for note in notes] == ([True] if said else [])


def test_no_model_trains_by_default_on_longer_sequences() -> None:
    long = [model.name for model in CATALOG.all("models", Model)
            if model.context is not None and model.sequence_length > model.context]
    assert not long
