"""A config.json as data: every key that the families read is a value of the kind expected, or refused by its name."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.text_io import read_text

MOST, MOST_LAYERS, MOST_DIGITS = 10**9, 10_000, 40
LAYERS = frozenset({"num_hidden_layers", "n_layer", "n_layers"})
DIVISORS = frozenset({
    "num_attention_heads", "n_head", "n_heads", "swa_num_attention_heads", "no_rope_layer_interval",
    "interleave_moe_layer_step", "sliding_window_pattern", "full_attention_interval", "attn_layer_period",
    "expert_layer_period", "pad_vocab_size_multiple", "mamba_num_heads"})
"""Numbers that cannot be zero."""
NUMBERS = LAYERS | DIVISORS | frozenset({
    "attention_chunk_size", "attn_layer_offset", "conv_kernel", "d_conv", "d_model", "d_state", "expand",
    "expansion_ratio", "expert_layer_offset", "experts_per_token", "ffn_dim", "ffn_hidden_size",
    "first_k_dense_replace", "head_dim", "headdim", "hidden_size", "index_head_dim", "index_n_heads", "index_topk",
    "intermediate_size", "intermediate_size_mlp", "kv_lora_rank", "linear_conv_kernel_dim", "linear_key_head_dim",
    "linear_num_key_heads", "linear_num_value_heads", "linear_value_head_dim", "mamba_d_conv", "mamba_d_state",
    "mamba_dt_rank", "mamba_expand", "mamba_head_dim", "max_position_embeddings", "moe_intermediate_size",
    "moe_latent_size", "moe_shared_expert_intermediate_size", "n_embd", "n_embed", "n_groups", "n_head_kv", "n_inner",
    "n_positions", "n_routed_experts", "n_shared_experts", "ngroups", "num_experts", "num_experts_per_tok",
    "num_key_value_heads", "num_kv_heads", "num_local_experts", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
    "shared_expert_intermediate_size", "sliding_window", "ssm_state_size", "state_size", "swa_head_dim",
    "swa_num_key_value_heads", "swa_v_head_dim", "v_head_dim", "vocab_size", "word_embed_proj_dim"})
SWITCHES = frozenset({
    "add_full_attention_sink_bias", "add_swa_attention_sink_bias", "attention_bias", "bias", "mlp_bias", "multi_query",
    "new_decoder_architecture", "tie_embeddings", "tie_word_embeddings", "use_qk_norm", "use_sliding_window"})
TEXTS = frozenset({"_name_or_path", "dtype", "hybrid_override_pattern", "layer", "model_type", "topk_method",
                   "torch_dtype"})
LISTS = frozenset({"hybrid_layer_pattern", "layer_types", "layers_block_type", "moe_layer_freq"})
PARTS = frozenset({"ssm_cfg", "text_config"})


def read_object(path: Path) -> dict[str, Any]:
    """Return a JSON file's object as it stands; a number of more digits than any has is text. Raises InputError."""
    try:
        data = json.loads(read_text(path), parse_int=lambda text: int(text) if len(text) <= MOST_DIGITS else text)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", file=str(path), line=error.lineno) from None
    except RecursionError:
        raise InputError("nested too deeply", file=str(path)) from None
    if not isinstance(data, dict):
        raise InputError("expected an object with keys and values", file=str(path))
    return data


def read_config(path: Path) -> dict[str, Any]:
    """Return a config, its text part on top, every value of a kind that fits its key. Raises InputError with key."""
    outer = _checked(read_object(path), "", path)
    inner = outer.get("text_config")
    return {**outer, **inner} if isinstance(inner, dict) else outer


def _checked(data: Mapping[str, Any], above: str, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in data.items():
        found[key] = _checked(value, f"{above}{key}.", path) if key in PARTS and isinstance(value, dict) else value
        if value is not None and (expected := _expected(key, value)) is not None:
            shown = repr(value)
            shown = shown if len(shown) <= MOST_DIGITS + 2 else shown[:MOST_DIGITS] + "..."
            raise InputError(f"{above}{key}: expected {expected}, got {shown}", file=str(path))
        if key in NUMBERS and isinstance(value, float):
            found[key] = int(value)
    return found


def _expected(key: str, value: object) -> str | None:
    """Return what was expected of a key; none where the value is that, or the key is not read."""
    if key in NUMBERS:
        least, most = int(key in DIVISORS), MOST_LAYERS if key in LAYERS else MOST
        whole = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        fits = whole and value == int(value) and least <= value <= most  # type: ignore[call-overload, operator]
        return None if fits else f"a whole number from {least} to {most:,}"
    if key in SWITCHES:
        return None if value in (True, False) else "true or false"
    if key in TEXTS:
        return None if isinstance(value, str) else "text"
    if key in LISTS:
        plain = isinstance(value, list) and len(value) <= MOST_LAYERS and all(
            isinstance(one, str | int) for one in value)
        return None if plain else f"a list of at most {MOST_LAYERS:,} layers"
    return None if key not in PARTS or isinstance(value, dict) else "an object"
