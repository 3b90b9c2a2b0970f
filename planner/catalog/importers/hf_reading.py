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
LAYERS = frozenset({
    "n_layer", "n_layers", "num_blocks", "num_hidden_layers", "num_layers"})
DIVISORS = frozenset({
    "attention_heads", "attn_layer_period", "block_multiple_of", "decoder_sparse_step", "expert_layer_period",
    "ffn_round_up_to_multiple_of", "full_attention_interval", "global_attn_every_n_layers", "interleave_moe_layer_step",
    "layer_group_size", "make_ngram_vocab_size_divisible_by", "mamba_n_heads", "mamba_num_heads", "moe_layer_interval",
    "ffn_dim_divisor", "moe_layer_frequency",
    "n_head", "n_heads", "n_heads_in_group", "num_query_groups",
    "no_rope_layer_interval", "num_attention_heads", "num_heads", "o_groups",
    "pad_vocab_size_multiple", "sliding_window_pattern", "swa_num_attention_heads"})
"""Numbers that cannot be zero."""
NUMBERS = LAYERS | DIVISORS | frozenset({
    "altup_num_inputs", "attention_chunk_size", "attention_hidden_size", "attention_window_size", "attn_layer_offset",
    "block_ff_dim", "conv1d_width", "conv_L_cache", "conv_kernel", "conv_kernel_size", "d_conv", "d_model", "d_rel",
    "d_state", "dense_intermediate_size", "dense_mlp_idx", "dim", "expand", "expansion_ratio", "expert_ffn_hidden_size",
    "expert_layer_offset", "experts_per_token", "ffn_dim", "ffn_hidden_size", "first_k_dense_replace",
    "gated_norm_rank", "global_head_dim", "hc_count", "hc_lowrank", "hc_mult", "head_dim", "headdim", "heads_per_ngram",
    "hidden_dim", "hidden_size", "hidden_size_per_layer_input", "index_block_size", "index_head_dim", "index_kpool",
    "index_n_heads", "index_topk", "index_topk_blocks", "indexer_budget", "indexer_head_dim", "indexer_n_heads",
    "intermediate_size", "intermediate_size_mlp", "kv_channels", "kv_lora_rank", "kv_n_heads", "laurel_rank",
    "linear_conv_kernel_dim", "linear_head_dim", "linear_key_head_dim", "linear_num_heads", "linear_num_key_heads",
    "linear_num_value_heads", "linear_value_head_dim", "local_attention", "lru_width", "mamba_d_conv", "mamba_d_ssm",
    "mamba_d_state", "mamba_dt_rank", "mamba_expand", "mamba_head_dim", "mamba_n_groups", "max_position_embeddings",
    "moe_hidden_size", "moe_intermediate_size", "moe_k", "moe_latent_size", "moe_layer_freq", "moe_layer_start_index",
    "moe_num_experts", "moe_num_shared_experts", "moe_shared_expert_intermediate_size", "moe_top_k", "moe_topk",
    "multi_query_group_num", "n_embd", "n_embed", "n_groups", "n_head_kv", "n_inner", "n_positions", "n_routed_experts",
    "n_shared_experts", "ngram_size", "ngram_vocab_size_base", "ngroups", "num_attention_groups", "num_dense_layers",
    "num_experts", "num_experts_per_tok", "num_experts_per_token", "num_global_key_value_heads", "num_hash_layers",
    "num_heads", "num_key_value_heads", "num_kv_heads", "num_kv_shared_layers", "num_ln_in_parallel_attn",
    "num_local_experts", "num_shared_expert", "num_shared_experts", "o_lora_rank", "padded_vocab_size",
    "ple_conv_kernel_size", "ple_embed_dim", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "rel_extent",
    "sconv_kernel_size", "seq_length", "share_expert_dim", "shared_expert_intermediate_size",
    "shared_experts_intermediate_size", "shared_intermediate_size", "shared_width", "short_conv_kernel_size",
    "sliding_window", "sliding_window_size", "sparse_block_size", "sparse_index_dim", "sparse_num_index_heads",
    "sparse_topk_blocks", "ssm_state_size", "state_size", "swa_head_dim", "swa_kv_lora_rank", "swa_num_key_value_heads",
    "swa_q_lora_rank", "swa_qk_nope_head_dim", "swa_v_head_dim", "time_step_rank", "top_k_experts", "type_vocab_size",
    "dff", "embedding_size", "global_attn_every_n_layers", "intermediate_multiple_size", "model_dim",
    "num_transformer_layers", "share_q_dim",
    "depth", "embed_dim", "image_size", "mlp_ratio", "num_global_layers",
    "num_position_embeddings", "patch_size", "projector_input_dim",
    "spatial_merge_size", "temporal_patch_size", "vision_output_dim",
    "decoder_attention_heads", "decoder_ffn_dim", "decoder_layers", "encoder_attention_heads",
    "encoder_ffn_dim", "encoder_layers", "max_num_tiles", "max_source_positions", "max_target_positions",
    "num_mel_bins", "v_head_dim", "vocab_size", "vocab_size_per_layer_input", "window_size", "word_embed_proj_dim",
    "zero_expert_num"})
SWITCHES = frozenset({
    "add_bias_linear", "add_full_attention_sink_bias", "add_qkv_bias", "add_swa_attention_sink_bias", "alibi",
    "attention_bias", "attention_k_eq_v", "attention_out_bias", "bias", "block_auto_adjust_ff_dim", "decoder_bias",
    "ffn_with_glu", "group_query_attention", "normalize_qk_projections", "parallel_attn_mlp_res",
    "share_input_output_layers",
    "enable_moe_block", "is_encoder_decoder", "is_moe", "lm_head_bias", "mamba_rms_norm", "mla_use_output_gate",
    "mlp_bias",
    "moe_router_enable_expert_bias", "multi_query", "multi_query_attention", "new_decoder_architecture", "no_bias",
    "norm_topk_prob",
    "parallel_attn", "qk_layernorm", "qk_norm", "qkv_bias", "tie_embedding", "tie_embeddings", "tie_word_embeddings",
    "use_attention_gate", "use_bias", "use_double_wide_mlp", "use_expert_bias", "use_head_wise_attn_gate",
    "use_moe_router_bias", "use_parallel_residual", "use_post_norm", "use_qk_norm", "use_qkv_bias",
    "use_sandwich_norm", "use_sliding_window"})
FACTORS = frozenset({"block_ffn_dim_multiplier", "ffn_proj_factor", "pixel_shuffle_ratio", "qk_dim_factor",
                     "v_dim_factor"})
TEXTS = frozenset({
    "_name_or_path", "activation_function", "dtype", "expert_dtype", "format", "hidden_act", "hidden_activation",
    "hybrid_override_pattern", "layer",
    "model_type", "moe_layers_enum", "position_embedding_type", "quant_algo", "quant_method",
    "sliding_window_pattern", "time_step_rank", "topk_method", "torch_dtype", "type"})
LISTS = frozenset({
    "_block_types", "attention_layers", "attn_layer_indices", "attn_type_list", "block_types", "compress_ratios",
    "cross_attention_layers", "deepstack_visual_indexes", "fullatt_block_indexes",
    "full_attn_idxs", "full_attn_layers", "hybrid_layer_pattern", "indexer_types", "intermediate_size", "layer_types",
    "layers_block_type", "local_layer_ids", "mlp_layer_types", "mlp_only_layers", "moe_intermediate_size",
    "moe_layer_freq", "moe_topk", "no_rope_layers", "num_attention_heads_per_layer", "num_experts",
    "num_key_value_heads_per_layer", "num_kv_heads", "num_query_heads", "num_shared_expert",
    "ple_layer_ids", "sparse_attention_freq"})
PARTS = frozenset({
    "attention_other_setting", "attn_config", "ffn_config", "language_config", "linear_attn_config", "llm_config",
    "sparse_attention_config", "ssm_cfg", "text_config"})
NESTED = frozenset({
    "architectures", "attention_types", "block_configs", "ffn_multipliers", "gating", "per_layer_config",
    "intermediate_layers_indices", "quantization_config", "supported_aspect_ratios",
    "rope_parameters", "rope_scaling"})
"""Whose inner keys only their one reader knows."""
TEXT = ("text_config", "llm_config", "language_config")
"""Where a model that reads more than text has its language model."""


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
    inner: dict[str, Any] = next((outer[key] for key in TEXT if isinstance(outer.get(key), dict)), {})
    return {**outer, **inner}


def read_part(outer: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    """Return an inner object of a config, every value of a kind that fits its key. Raises InputError with key."""
    return _checked(outer[key], f"{key}.", path)


def _checked(data: Mapping[str, Any], above: str, path: Path) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for key, value in data.items():
        checked[key] = _checked(value, f"{above}{key}.", path) if key in PARTS and isinstance(value, dict) else value
        if value is not None and (expected := _expected(key, value)) is not None:
            shown = repr(value)
            shown = shown if len(shown) <= MOST_DIGITS + 2 else shown[:MOST_DIGITS] + "..."
            raise InputError(f"{above}{key}: expected {expected}, got {shown}", file=str(path))
        if key in NUMBERS and isinstance(value, float):
            checked[key] = int(value)
    return checked


def _expected(key: str, value: object) -> str | None:
    """Return what was expected of a key; none where the value is that, or the key is not read."""
    if key in LISTS and isinstance(value, list):
        plain = len(value) <= MOST_LAYERS and all(isinstance(choice, str | int) for choice in value)
        return None if plain else f"a list of at most {MOST_LAYERS:,} layers"
    if key in TEXTS and isinstance(value, str):
        return None
    if key in NUMBERS:
        least, most = int(key in DIVISORS), MOST_LAYERS if key in LAYERS else MOST
        whole = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        fits = whole and value == int(value) and least <= value <= most  # type: ignore[call-overload, operator]
        return None if fits else f"a whole number from {least} to {most:,}"
    if key in FACTORS:
        fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST
        return None if fits else f"a number above 0 and up to {MOST:,}"
    return _expected_words(key, value)


def _expected_words(key: str, value: object) -> str | None:
    if key in SWITCHES:
        return None if value in (True, False) else "true or false"
    if key in TEXTS | LISTS:
        return "text" if key in TEXTS else f"a list of at most {MOST_LAYERS:,} layers"
    return None if key not in PARTS or isinstance(value, dict) else "an object"
