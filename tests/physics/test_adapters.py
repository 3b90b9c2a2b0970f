"""Adapters counted one by one, as PEFT prints them (print_trainable_parameters) and as Megatron fuses them."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.architecture import Model
from planner.catalog.importers.hf_families import FAMILIES, FUSED
from planner.catalog.load import Catalog
from planner.layouts.table import from_rows
from planner.physics.training.parameters import adapter_parameters, saved_parameters
from planner.physics.training.question import Question, question_of
from planner.physics.training.tuning import tuning_of
from planner.scenario.targets import MODULES, PLACES, places_of, said_shortly
from tests.search_cases import candidate, catalog


def asked(model: str, stack: str, *modules: str, rank: int = 16) -> Question:
    found: Catalog = catalog()
    return question_of(found, found.model(model), (candidate("dgx-h100"),), found.stack(stack), sequence_length=2048,
                       global_batch=8, precisions=("bf16",), method="lora", confidence=0.5, lora_rank=rank,
                       adapted=places_of(modules))


@pytest.mark.parametrize(("model", "stack", "modules", "parameters"), [
    ("llama-3.1-8b", "hf-peft", (), 41_943_040),  # as PEFT, unsloth and axolotl print
    ("llama-3.1-8b", "unsloth", ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
     41_943_040),
    ("llama-3.1-8b", "hf-peft", ("q_proj", "v_proj"), 6_815_744),
    ("llama-3.1-8b", "hf-peft", ("q_proj", "k_proj", "v_proj", "o_proj"), 13_631_488),
    ("llama-2-7b", "hf-peft", ("q_proj", "v_proj"), 8_388_608),
    ("llama-2-7b", "litgpt", ("query", "value"), 8_388_608),
    ("mistral-7b-v0.1", "axolotl", ("linear",), 41_943_040),
    # one matrix of the query, key and value heads, and one into the feed-forward
    ("llama-3.1-8b", "megatron-bridge", (), 16 * 32 * (4096 + 6144 + 2 * 4096 + 4096 + 2 * 14336 + 14336 + 4096)),
    # counted on models that PEFT 0.21 wrapped, on Transformers 5
    ("olmoe-1b-7b", "trl", (), 189_284_352), ("qwen3-30b-a3b", "trl", (), 996_507_648),
    ("phi-3-mini-4k", "hf-peft", (), 16 * 32 * (3072 + 3 * 3072 + 2 * 3072 + 3072 + 2 * 8192 + 8192 + 3072)),
    ("falcon-7b", "hf-peft", ("query_key_value",), 16 * 32 * (4544 + 4672))])
def test_as_many_train_as_the_framework_prints(model: str, stack: str, modules: tuple[str, ...],
                                               parameters: int) -> None:
    question = asked(model, stack, *modules)
    assert saved_parameters(question) == parameters


def test_a_fused_expert_has_one_adapter_into_its_feed_forward() -> None:
    rows = from_rows([{}], 1)
    each = {stack: adapter_parameters(asked("mixtral-8x7b", stack), rows, [(kind, 1.0)])[1][0]
            for stack in ("hf-peft", "megatron-bridge") for kind in [asked("mixtral-8x7b", stack).shape.kinds[0][0]]}
    apart = 16 * 8 * (3 * (4096 + 14336))
    assert each == {"hf-peft": apart, "megatron-bridge": apart - 16 * 8 * 4096}


@pytest.mark.parametrize(("stack", "method", "optimizer", "moments"), [
    ("hf-peft", "lora", None, 8), ("hf-peft", "lora", "adamw", 8), ("hf-peft", "lora", "adamw-8bit", 2.03125),
    ("unsloth", "qlora", "paged-adamw-8bit", 0), ("trl", "qlora", None, 4), ("trl", "qlora", "lion", 4),
    ("trl", "qlora", "adamw-8bit", 2.03125)])
def test_adapters_have_the_optimizer_that_is_asked_for(stack: str, method: str, optimizer: str | None, moments: float
                                                       ) -> None:
    """bitsandbytes keeps two moments in 8 bits of every tensor of 4,096 elements or more; TRL's adapters are 16-bit."""
    held = tuning_of(catalog().recipes, catalog().stack(stack), method, 16, optimizer=optimizer).adapter
    assert held is not None
    assert held.moments == moments


def test_words_of_places_are_read_back() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        places = tuple(place for place in PLACES if rng.random() < 0.7)
        assert places_of(said_shortly(places).split("+") if places else ()) == places
    assert said_shortly(places_of(["mlp", "self_attn"])) == "attention+mlp"
    assert {place for name in MODULES for place in MODULES[name]} == set(PLACES)


def test_a_model_says_what_its_family_fuses() -> None:
    """Shipped shapes fuse what Transformers fuses of their architecture."""
    assert set(FUSED) == set(FAMILIES)
    families = {"phi-4": "phi3", "gpt-neox-20b": "gpt_neox", "qwen-7b": "qwen", "gpt-oss-20b": "gpt_oss",
                "llama-4-scout": "llama4", "internlm2-7b": "internlm2", "starcoder": "gpt_bigcode",
                "qwen3-next-80b-a3b": "qwen3_next", "llama-3.1-8b": "llama", "dbrx": "dbrx"}
    for name, family in families.items():
        model: Model = catalog().model(name)
        assert set(model.fused) == set(FUSED[family]), name
