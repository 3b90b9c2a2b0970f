"""Parts of a layer that most Hugging Face configs spell alike, and models of layers of one kind or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Config = Mapping[str, Any]
Entry = dict[str, Any]
MIXTURE = {"n_routed_experts": ("num_experts", "num_local_experts", "moe_num_experts"),
           "num_experts_per_tok": ("num_experts_per_token", "moe_topk", "moe_top_k", "moe_k"),
           "n_shared_experts": ("num_shared_experts", "moe_num_shared_experts"),
           "first_k_dense_replace": ("num_dense_layers",)}
OLD = {"hidden_size": ("n_embd", "d_model", "n_embed"), "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
       "num_attention_heads": ("n_head", "n_heads", "num_heads", "attention_heads"),
       "max_position_embeddings": ("n_positions", "seq_length")}
"""Names that older configs have for the usual ones."""


def usual(c: Config) -> Config:
    """Return a config with the usual names beside the old ones; what has either keeps its value."""
    return {**{name: next(c[old] for old in known if c.get(old)) for name, known in (OLD | MIXTURE).items()
               if not c.get(name) and any(c.get(old) for old in known)},
            **{key: value for key, value in c.items() if value is not None}}


def attention(c: Config, **changes: object) -> Entry:
    """Return grouped-query attention, with what a family changes."""
    heads = c["num_attention_heads"]
    return {"heads": heads, "kv_heads": c.get("num_key_value_heads") or heads,
            "head_dim": c.get("head_dim") or c["hidden_size"] // heads} | changes


def latent(c: Config) -> Entry:
    """Return multi-head latent attention, with the indexer of DeepSeek-V3.2 and GLM-5."""
    block: Entry = {"kind": "mla", "heads": c["num_attention_heads"], "q_lora_rank": c.get("q_lora_rank"),
                    "kv_lora_rank": c["kv_lora_rank"], "qk_nope": c["qk_nope_head_dim"],
                    "qk_rope": c["qk_rope_head_dim"], "v_head": c["v_head_dim"]}
    if c.get("index_n_heads"):
        block["indexer"] = {"heads": c["index_n_heads"], "head_dim": c["index_head_dim"], "top": c["index_topk"]}
    return block


def gated(c: Config, **changes: object) -> Entry:
    """Return a gated feed-forward."""
    return {"kind": "gated", "ffn": c["intermediate_size"], "bias": bool(c.get("mlp_bias", False))} | changes


def mixture(c: Config, experts: str, ffn: str = "intermediate_size", **changes: object) -> Entry:
    """Return a mixture of experts; their count and width are keys of the config, the count by any of its names."""
    count = c.get(experts) or c.get("num_local_experts") or c.get("num_experts") or c[experts]
    return {"kind": "moe", "experts": count, "experts_per_token": c["num_experts_per_tok"], "ffn": c[ffn]} | changes


def of(c: Config, blocks: list[Entry]) -> Entry:
    """Return a model of these blocks."""
    return {"blocks": blocks, "tied": bool(c.get("tie_word_embeddings", False))}


def uniform(c: Config, attention: Entry, mlp: Entry, **changes: object) -> Entry:
    """Return a model of equal layers, with attention or what stands in its place."""
    mixer = {"attention": attention} if attention else {}
    return of(c, [{"count": c["num_hidden_layers"], **mixer, "mlp": mlp, **changes}])


def several(c: Config, layers: Sequence[Entry]) -> Entry:
    """Return a model of layers in their order, equal ones as one block; those that hold nothing are left out."""
    kinds: list[Entry] = []
    order = ""
    for layer in layers:
        if not layer:
            continue
        if layer not in kinds:
            kinds.append(layer)
        order += chr(ord("A") + kinds.index(layer))
    blocks = [{"count": order.count(chr(ord("A") + i)), "symbol": chr(ord("A") + i), **kind}
              for i, kind in enumerate(kinds)]
    return of(c, blocks) | ({"order": order} if len(blocks) > 1 else {})


def windowed(entry: Entry, kinds: Sequence[str], window: int) -> Entry:
    """Split the only block into windowed layers and full ones, as `kinds` names every layer."""
    block = entry["blocks"][0]
    near = block | {"attention": block["attention"] | {"window": window}}
    layers = [near if "sliding" in kind or "chunk" in kind else block for kind in kinds]
    plain = [{k: v for k, v in layer.items() if k != "count"} for layer in layers]
    return entry | several({}, plain) | {"tied": entry["tied"]}


def mixed_layers(c: Config, heads: Entry, kinds: Sequence[str], window: int | None, mlps: Sequence[Entry],
                 **changes: object) -> Entry:
    """Return layers with attention windowed where their kind says so, each with its feed-forward."""
    return several(c, [{"attention": heads | ({"window": window} if "sliding" in kind else {}), "mlp": mlp, **changes}
                       for kind, mlp in zip(kinds, mlps, strict=True)])


def of_layers(c: Config) -> list[Config]:
    """Return the config of every layer: the model's own, or with what `per_layer_config` says of that layer."""
    listed = {int(place): own for place, own in (c.get("per_layer_config") or {}).items() if isinstance(own, dict)}
    return [{**c, **listed[place]} if place in listed else c for place in range(c["num_hidden_layers"])]


def in_turn(c: Config, full_every: int) -> list[str]:
    """Return the kinds of the layers: as the config lists them, or every so many-th full and the others windowed."""
    listed: list[str] | None = c.get("layer_types")
    return listed or ["full_attention" if (i + 1) % full_every == 0 else "sliding_attention"
                      for i in range(c["num_hidden_layers"])]
