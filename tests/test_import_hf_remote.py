"""Configs of models that bring code of their own, as published, against the parameters that their cards state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.importers.hf import import_config
from planner.errors import InputError
from planner.physics.shapes import parameters

STEP3 = {"model_type": "step3_text", "hidden_size": 7168, "intermediate_size": 18432, "num_attention_heads": 64,
         "num_attention_groups": 1, "num_hidden_layers": 61, "vocab_size": 128815, "moe_intermediate_size": 5120,
         "moe_num_experts": 48, "moe_top_k": 3, "share_expert_dim": 5120, "share_q_dim": 2048, "head_dim": 256,
         "moe_layers_enum": ",".join(map(str, range(4, 60))), "tie_word_embeddings": False}
PUBLISHED: dict[str, tuple[dict[str, Any], float]] = {
    "step3, the language model": (STEP3, 316e9),
    "arctic": ({"model_type": "arctic", "hidden_size": 7168, "intermediate_size": 4864, "num_hidden_layers": 35,
                "num_attention_heads": 56, "num_key_value_heads": 8, "num_local_experts": 128, "vocab_size": 32000,
                "num_experts_per_tok": 2, "moe_layer_frequency": 1, "parallel_attn_mlp_res": True}, 480e9),
    "grok-1": ({"model_type": "grok-1", "hidden_size": 6144, "intermediate_size": 32768, "num_hidden_layers": 64,
                "num_attention_heads": 48, "num_key_value_heads": 8, "num_experts": 8, "num_experts_per_tok": 2,
                "vocab_size": 131072}, 314e9),
    "DeciLM-7B": ({"model_type": "deci", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                   "num_attention_heads": 32, "vocab_size": 32000,
                   "num_key_value_heads_per_layer": [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
                                                     2, 2, 1, 2, 1, 1, 1, 1, 1, 1]}, 7.04e9),
    "OpenELM-270M": ({"model_type": "openelm", "model_dim": 1280, "head_dim": 64, "num_transformer_layers": 16,
                      "num_query_heads": [12, 12, 12, 12, 12, 16, 16, 16, 16, 16, 16, 16, 20, 20, 20, 20],
                      "num_kv_heads": [3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5], "ffn_dim_divisor": 256,
                      "ffn_multipliers": [0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13, 2.37, 2.6, 2.83, 3.07, 3.3, 3.53,
                                          3.77, 4.0], "ffn_with_glu": True, "normalize_qk_projections": True,
                      "share_input_output_layers": True, "vocab_size": 32000}, 271e6),
    "jais-13b": ({"model_type": "jais", "n_embd": 5120, "n_layer": 40, "n_head": 40, "n_inner": 13653,
                  "vocab_size": 84992, "activation_function": "swiglu", "position_embedding_type": "alibi",
                  "n_positions": 2048}, 13.0e9),
    "Orion-14B": ({"model_type": "orion", "hidden_size": 5120, "intermediate_size": 15360, "num_hidden_layers": 40,
                   "num_attention_heads": 40, "num_key_value_heads": 40, "vocab_size": 84608, "hidden_act": "silu",
                   "tie_word_embeddings": False}, 14.5e9),
    "falcon-7b, first name": ({"model_type": "RefinedWebModel", "hidden_size": 4544, "n_layer": 32, "n_head": 71,
                               "vocab_size": 65024, "multi_query": True, "parallel_attn": True, "bias": False,
                               "alibi": False}, 6.92e9),
    "falcon-40b, first name": ({"model_type": "RefinedWeb", "hidden_size": 8192, "n_layer": 60, "n_head": 128,
                                "n_head_kv": 8, "vocab_size": 65024, "parallel_attn": True, "bias": False,
                                "alibi": False}, 41.3e9),
    "stablelm-3b-4e1t, first name": ({"model_type": "stablelm_epoch", "hidden_size": 2560, "intermediate_size": 6912,
                                      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
                                      "vocab_size": 50304, "hidden_act": "silu"}, 2.795e9),
    # by hand: queries and output, 8 of 32 heads as keys and values, feed-forward, biases and norms; one table
    "CodeShell-7B": ({"model_type": "codeshell", "n_embd": 4096, "n_layer": 42, "n_head": 32, "n_inner": 16384,
                      "vocab_size": 70144, "group_query_attention": True, "num_query_groups": 8},
                     42 * (2 * 4096**2 + 2 * 4096 * 1024 + 2 * 4096 * 16384 + 2 * 1024 + 16384 + 7 * 4096)
                     + 70144 * 4096 + 2 * 4096),
    "phi-2, first name": ({"model_type": "phi-msft", "n_embd": 2560, "n_layer": 32, "n_head": 32, "vocab_size": 51200,
                           "n_positions": 2048}, 2.78e9)}


def imported(config: dict[str, Any], folder: Path) -> int:
    (folder / "config.json").write_text(json.dumps(config))
    return parameters(import_config(folder / "config.json", "2026-11-23"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_published(name: str, tmp_path: Path):
    config, published = PUBLISHED[name]
    assert imported(config, tmp_path) == pytest.approx(published, rel=0.01)


COUNTED: dict[str, tuple[dict[str, Any], int]] = {
    "modernbert-decoder": ({"hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22, "vocab_size": 50368,
                            "num_attention_heads": 12, "sliding_window": 64}, 149_655_232),
    "gpt_neox_japanese": ({"hidden_size": 2560, "intermediate_multiple_size": 4, "num_hidden_layers": 32,
                           "num_attention_heads": 32, "vocab_size": 32000}, 2_598_837_760),
    "bert-generation": ({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "vocab_size": 50358,
                         "num_attention_heads": 16, "max_position_embeddings": 512}, 354_452_662),
    "roformer": ({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "vocab_size": 50000,
                  "num_attention_heads": 12, "max_position_embeddings": 1536}, 124_197_968),
    "ctrl": ({"n_embd": 1280, "dff": 8192, "n_layer": 48, "n_head": 16, "n_positions": 256, "vocab_size": 246534},
             1_637_964_550)}
"""The parameters of Transformers' own class at its default config."""


@pytest.mark.parametrize("kind", COUNTED)
def test_parameters_are_those_of_transformers(kind: str, tmp_path: Path):
    config, counted = COUNTED[kind]
    assert imported({"model_type": kind, **config}, tmp_path) == pytest.approx(counted, rel=0.01)


def test_queries_of_a_rank_are_two_products(tmp_path: Path):
    narrow = imported(STEP3, tmp_path)
    whole = imported({**STEP3, "share_q_dim": 7168}, tmp_path)
    # a rank as wide as the layers costs a square more, and its norm
    assert whole - narrow == 61 * ((7168 - 2048) * (7168 + 64 * 256) + 7168 - 2048)


@pytest.mark.parametrize(("kind", "why"), [
    ("big_bird", "blocks that are drawn"), ("rwkv7", "time decay"), ("yuan", "convolutions ahead of attention"),
    ("rembert", "tables narrower"), ("moshi", "streams of tokens")])
def test_what_is_not_modeled_is_refused_by_name(kind: str, why: str, tmp_path: Path):
    llama = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
             "vocab_size": 100, "hidden_act": "silu"}
    with pytest.raises(InputError, match=why):
        imported({"model_type": kind, **llama}, tmp_path)
