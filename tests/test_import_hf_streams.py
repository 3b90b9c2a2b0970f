"""Configs of 2026: what transformers 5.23.0 builds of its own defaults, counted tensor by tensor.

Counted on the meta device, with the correction of the choice of experts that checkpoints store, and the output matrix.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.importers.hf import import_config
from planner.physics.shapes import parameters
from tests.test_import_hf import saved

BUILT: dict[str, Any] = {one["config"]["model_type"]: one for one in json.loads(
    (Path(__file__).parent / "hf_streams.json").read_text())}
HIDDEN, HEADS, WIDTH, KV, VOCAB, EXPERTS = 2048, 16, 128, 4, 157184, 256
RING = {"model_type": "bailing_moe_linear", "hidden_size": HIDDEN, "num_hidden_layers": 20, "use_qk_norm": True,
        "num_attention_heads": HEADS, "num_key_value_heads": KV, "head_dim": WIDTH, "intermediate_size": 5120,
        "moe_intermediate_size": 512, "num_experts": EXPERTS, "num_experts_per_tok": 8, "num_shared_experts": 1,
        "first_k_dense_replace": 1, "vocab_size": VOCAB, "layer_group_size": 5, "moe_router_enable_expert_bias": True}


@pytest.mark.parametrize("kind", BUILT)
def test_the_count_is_that_of_every_tensor(kind: str, tmp_path: Path) -> None:
    built = BUILT[kind]
    assert parameters(import_config(saved(tmp_path, built["config"]), "2026-11-23")) == built["parameters"]


def test_ring_linear_counts_as_its_code_builds_it(tmp_path: Path) -> None:
    inner = HEADS * WIDTH
    linear = 5 * HIDDEN * inner + inner + 2 * WIDTH
    full = 2 * HIDDEN * inner + 2 * HIDDEN * KV * WIDTH + 2 * WIDTH
    experts = 3 * HIDDEN * 512 * (EXPERTS + 1) + HIDDEN * EXPERTS + EXPERTS
    assert parameters(import_config(saved(tmp_path, RING), "2026-11-23")) == (
        2 * VOCAB * HIDDEN + HIDDEN + 20 * 2 * HIDDEN + 16 * linear + 4 * full + 19 * experts + 3 * HIDDEN * 5120)


def test_widths_of_windowed_layers_as_the_first_checkpoints_spell_them(tmp_path: Path) -> None:
    built = BUILT["dots3_note_text"]
    config = {key: value for key, value in built["config"].items() if key not in ("per_layer_config", "layer_types")}
    older = {"swa_num_attention_heads": 64, "swa_kv_lora_rank": 1024, "swa_qk_nope_head_dim": 192}
    assert parameters(import_config(saved(tmp_path, config | older), "2026-11-23")) == built["parameters"]


def test_tables_of_n_grams_have_a_prime_number_of_rows(tmp_path: Path) -> None:
    config = BUILT["qwen4_exp_text"]["config"] | {"ple_layer_ids": [1], "ple_embed_dim": 16, "ngram_size": 2,
                                                  "heads_per_ngram": 2, "ngram_vocab_size_base": 20}
    wide = 4 * HIDDEN
    # the two primes from 20 on are 23 and 29: 52 rows of half the width, in whole 128
    more = 128 * 8 + 16 * (wide + HIDDEN) + (3 + 4) * wide
    assert parameters(import_config(saved(tmp_path, config), "2026-11-23")) == (
        BUILT["qwen4_exp_text"]["parameters"] + more)
