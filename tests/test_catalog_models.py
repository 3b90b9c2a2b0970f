"""Every shipped model's blocks add up to its published parameter count, to the last parameter."""

from __future__ import annotations

import pytest

from planner.catalog.architecture import Model
from planner.catalog.hardware import Node
from planner.catalog.load import KINDS, Catalog, canonical
from planner.physics.shapes import parameters

CATALOG = Catalog()


@pytest.mark.parametrize("name", CATALOG.names("models"))
def test_blocks_add_up_to_the_published_count(name: str) -> None:
    model = CATALOG.model(name)
    assert model.parameters is not None
    assert parameters(model) == model.parameters


@pytest.mark.parametrize(("spelling", "name"), [
    ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
    ("Llama2-70B", "llama-2-70b"),
    ("GPT3-175B", "gpt-3-175b"),
    ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
    ("openai-community/gpt2-xl", "gpt2-xl"),
    ("Meta-Llama-3-8B", "llama-3-8b"),
])
def test_models_are_found_by_the_names_people_use(spelling: str, name: str) -> None:
    assert CATALOG.model(spelling).name == name


def test_a_sequence_fits_its_position_table() -> None:
    for model in CATALOG.all("models", Model):
        assert model.position_rows == 0 or model.sequence_length <= model.position_rows, model.name


@pytest.mark.parametrize("kind", ["gpus", "nodes", "fabrics", "models", "prices"])
def test_files_of_a_kind_share_no_spelling(kind: str) -> None:
    owner: dict[str, str] = {}
    for entry in CATALOG.all(kind, KINDS[kind]):
        for spelling in (entry.name, *entry.aliases, getattr(entry, "hf_id", None) or entry.name):
            assert owner.setdefault(canonical(spelling), entry.name) == entry.name, spelling


def test_nodes_and_offers_name_entries_that_exist() -> None:
    for node in CATALOG.all("nodes", Node):
        assert CATALOG.gpu(node.gpu)
        assert CATALOG.fabric(node.fabric).level == "scale-out"
        assert node.scaleup is None or CATALOG.fabric(node.scaleup).level == "scale-up"
    for prices in CATALOG.price_lists:
        for offer in prices.offers:
            assert CATALOG.node(offer.node)
            assert offer.fabric is None or CATALOG.fabric(offer.fabric).level == "scale-out"
