"""Parts of a layer that most Hugging Face configs spell alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]
Entry = dict[str, Any]


def attention(c: Config, **changes: object) -> Entry:
    """Return grouped-query attention, with what a family changes."""
    heads = c["num_attention_heads"]
    return {"heads": heads, "kv_heads": c.get("num_key_value_heads") or heads,
            "head_dim": c.get("head_dim") or c["hidden_size"] // heads} | changes


def gated(c: Config) -> Entry:
    """Return a gated feed-forward."""
    return {"kind": "gated", "ffn": c["intermediate_size"], "bias": bool(c.get("mlp_bias", False))}
