"""How configs of models spell that bring code of their own, and older names of what Transformers has today."""

from __future__ import annotations

from planner.catalog.importers import hf_dense as dense
from planner.catalog.importers import hf_plain as plain
from planner.catalog.importers.hf_parts import (
    Config,
    Entry,
    attention,
    gated,
    in_turn,
    several,
    uniform,
    usual,
    windowed,
)

DIVISOR = 256
"""Of the widths of OpenELM's feed-forwards."""


def refined_web(c: Config) -> Entry:
    """Falcon by its first name: groups of key-value heads where their number is stated, else one head."""
    return plain.falcon({**c, "new_decoder_architecture": bool(c.get("n_head_kv"))})


def phi_msft(c: Config) -> Entry:
    """Phi 1 to 2 by its first name."""
    c = usual(c)
    return plain.phi(c) | {"hidden": c["hidden_size"]}


def orion(c: Config) -> Entry:
    """Orion: Llama with layer norms."""
    return dense.llama(c) | {"norm": "layernorm"}


def deci(c: Config) -> Entry:
    """DeciLM: Llama whose layers have each its own number of key-value heads."""
    c = usual(c)
    listed = c["num_key_value_heads_per_layer"]
    return several(c, [{"attention": attention({**c, "num_key_value_heads": heads}), "mlp": gated(c)}
                       for heads in listed[:c["num_hidden_layers"]]])


def openelm(c: Config) -> Entry:
    """OpenELM: heads and widths that grow from layer to layer, norms on queries and keys."""
    width, head, divisor = c["model_dim"], c["head_dim"], c.get("ffn_dim_divisor", DIVISOR)
    normed = bool(c.get("normalize_qk_projections"))
    layers: list[Entry] = []
    for queries, keys, times in zip(c["num_query_heads"], c["num_kv_heads"], c["ffn_multipliers"], strict=True):
        ffn = int(times * width + divisor / 2) // divisor * divisor
        kind = "gated" if c.get("ffn_with_glu", True) else "plain"
        layers.append({"attention": {"heads": queries, "kv_heads": keys, "head_dim": head, "qk_norm": normed},
                       "mlp": {"kind": kind, "ffn": ffn if ffn >= 0.9 * times * width else ffn + divisor}})
    shared = bool(c.get("share_input_output_layers", True))
    return {"hidden": width} | several({**c, "tie_word_embeddings": shared}, layers)


def jais(c: Config) -> Entry:
    """Jais: GPT-2 with a gated feed-forward and slopes instead of positions."""
    c = usual(c)
    entry = plain.gpt2(c)
    mlp = {"kind": "gated" if "glu" in str(c.get("activation_function")) else "plain", "bias": True,
           "ffn": c.get("n_inner") or 4 * c["hidden_size"]}
    slopes = {"positions": "alibi", "position_rows": 0} if c.get("position_embedding_type") == "alibi" else {}
    return entry | {"blocks": [block | {"mlp": mlp} for block in entry["blocks"]]} | slopes


def codeshell(c: Config) -> Entry:
    """CodeShell: GPT-2 with groups of key-value heads and rotary positions."""
    c = usual(c)
    groups = c.get("num_query_groups") if c.get("group_query_attention") else None
    return plain.gpt2({**c, "num_key_value_heads": groups or c["num_attention_heads"]}) | {
        "positions": "rope", "position_rows": 0}


def gpt_neox_japanese(c: Config) -> Entry:
    """GPT-NeoX for Japanese: no biases but one on the last layer's attention."""
    ffn = c.get("intermediate_multiple_size", 4) * c["hidden_size"]
    return uniform({"tie_word_embeddings": True, **c}, attention(c), {"kind": "plain", "ffn": ffn, "bias": False}) | {
        "norm": "layernorm", "output_parameters": c["hidden_size"]}


def ctrl(c: Config) -> Entry:
    """CTRL: positions that are computed, and a bias on the output."""
    c = usual(c)
    mlp = {"kind": "plain", "ffn": c["dff"], "bias": True}
    return uniform({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), mlp) | {
        "hidden": c["hidden_size"], "norm": "layernorm", "positions": "none", "output_parameters": c["vocab_size"]}


def modernbert_decoder(c: Config) -> Entry:
    """ModernBERT that reads backward alone: every third layer full, a product and a norm ahead of the tokens."""
    heads = attention(c, bias="qkvo" if c.get("attention_bias") else "none")
    kinds = in_turn(c, c.get("global_attn_every_n_layers", 3))
    entry = windowed(uniform(c, heads, gated(c)), kinds, c.get("sliding_window", 64))
    hidden, bias = c["hidden_size"], c["vocab_size"] * bool(c.get("decoder_bias", True))
    return entry | {"norm": "layernorm-nobias", "tied": True, "embedding_norm": True,
                    "output_parameters": hidden * (hidden + 1) + bias}
