"""How Hugging Face configs spell models with recurrent layers, and what a search left of a transformer's layers."""

from __future__ import annotations

from planner.catalog.importers.hf_mixtures import latent
from planner.catalog.importers.hf_parts import Config, Entry, attention, gated, mixture, several


def nemotron_h(c: Config) -> Entry:
    """Nemotron-H and Nemotron 3: layers of a single part, in the order of a pattern or of a list of their types."""
    types = {"mamba": "M", "linear_attention": "M", "moe": "E", "attention": "*", "full_attention": "*", "mlp": "-"}
    listed = c.get("layers_block_type")
    pattern = "".join(types[kind] for kind in listed) if listed else c["hybrid_override_pattern"]
    parts: dict[str, Entry] = {
        "M": {"recurrence": {"kind": "mamba2", "heads": c["mamba_num_heads"], "head_dim": c["mamba_head_dim"],
                             "state": c["ssm_state_size"], "groups": c["n_groups"], "conv": c["conv_kernel"]}},
        "*": {"attention": attention(c)}, "-": {"mlp": {"kind": "plain", "ffn": c["intermediate_size"]}}}
    if "E" in pattern:
        parts["E"] = {"mlp": {
            "kind": "moe", "experts": c["n_routed_experts"], "experts_per_token": c["num_experts_per_tok"],
            "ffn": c["moe_intermediate_size"], "gated": False, "correction_bias": True,
            "shared_experts": c.get("n_shared_experts", 0), "shared_ffn": c.get("moe_shared_expert_intermediate_size"),
            "latent": c.get("moe_latent_size")}}
    blocks = [{"count": pattern.count(symbol), "symbol": symbol, **part} for symbol, part in parts.items()
              if symbol in pattern]
    return {"blocks": blocks, "order": pattern, "tied": bool(c.get("tie_word_embeddings", False)), "positions": "none"}


def jamba(c: Config) -> Entry:
    """Jamba: Mamba with an attention layer in each period, experts in every second layer."""
    recurrence = {"kind": "mamba", "inner": c.get("mamba_expand", 2) * c["hidden_size"], "inner_norms": True,
                  "state": c.get("mamba_d_state", 16), "conv": c.get("mamba_d_conv", 4), "dt_rank": c["mamba_dt_rank"]}
    mixed = mixture(c, "num_experts")
    layers: list[Entry] = []
    for layer in range(c["num_hidden_layers"]):
        attends = layer % c["attn_layer_period"] == c["attn_layer_offset"]
        routes = layer % c["expert_layer_period"] == c["expert_layer_offset"]
        layers.append(({"attention": attention(c)} if attends else {"recurrence": recurrence})
                      | {"mlp": mixed if routes else gated(c)})
    return several(c, layers) | {"positions": "none"}


def qwen_hybrid(c: Config) -> Entry:
    """Qwen3-Next and Qwen3.5: gated delta rule layers, and gated attention in every fourth."""
    recurrence = {"kind": "deltanet", "key_heads": c["linear_num_key_heads"],
                  "value_heads": c["linear_num_value_heads"], "key_dim": c["linear_key_head_dim"],
                  "value_dim": c["linear_value_head_dim"],
                  "conv": c.get("linear_conv_kernel_dim", 4)}
    mlp = gated(c) if not c.get("num_experts") else mixture(
        c, "num_experts", "moe_intermediate_size", shared_experts=1, shared_gate=True,
        shared_ffn=c["shared_expert_intermediate_size"])
    every, layers = c.get("full_attention_interval", 4), range(1, c["num_hidden_layers"] + 1)
    kinds = c.get("layer_types") or ["full_attention" if i % every == 0 else "linear_attention" for i in layers]
    full = attention(c, qk_norm=True, gate=True)
    return several(c, [{"mlp": mlp} | ({"recurrence": recurrence} if kind == "linear_attention" else
                                       {"attention": full}) for kind in kinds])


def mamba2(c: Config) -> Entry:
    """Mamba-2 as Transformers spells it, and as its authors do (d_model, ssm_cfg), with their defaults."""
    own = c.get("ssm_cfg") or {}
    hidden, layers = c.get("d_model") or c["hidden_size"], c.get("n_layer") or c["num_hidden_layers"]
    width = own.get("headdim") or c.get("head_dim", 64)
    inner = (own.get("expand") or c.get("expand", 2)) * hidden
    padding = c.get("pad_vocab_size_multiple", 1)
    recurrence = {"kind": "mamba2", "heads": inner // width, "head_dim": width,
                  "state": own.get("d_state") or c.get("state_size", 128),
                  "groups": own.get("ngroups") or c.get("n_groups", 1),
                  "conv": own.get("d_conv") or c.get("conv_kernel", 4)}
    return {"hidden": hidden, "vocab": -(-c["vocab_size"] // padding) * padding, "positions": "none",
            "blocks": [{"count": layers, "recurrence": recurrence}],
            "tied": bool(c.get("tie_embeddings", c.get("tie_word_embeddings", False)))}


def mamba(c: Config) -> Entry:
    """Mamba of the first kind, and Falcon Mamba."""
    hidden = c["hidden_size"]
    rank = c.get("time_step_rank", "auto")
    recurrence = {"kind": "mamba", "inner": c.get("intermediate_size") or c.get("expand", 2) * hidden,
                  "state": c.get("state_size", 16), "conv": c.get("conv_kernel", 4),
                  "dt_rank": -(-hidden // 16) if rank == "auto" else rank}
    return {"positions": "none", "blocks": [{"count": c["num_hidden_layers"], "recurrence": recurrence}],
            "tied": bool(c.get("tie_word_embeddings", True))}


def granite_hybrid(c: Config) -> Entry:
    """Granite 4: Mamba-2 with attention in a few layers, and experts beside a feed-forward that every token passes."""
    recurrence = {"kind": "mamba2", "heads": c["mamba_n_heads"], "state": c["mamba_d_state"], "conv": c["mamba_d_conv"],
                  "head_dim": c.get("mamba_expand", 2) * c["hidden_size"] // c["mamba_n_heads"],
                  "groups": c.get("mamba_n_groups", 1)}
    shared = c["shared_intermediate_size"]
    mlp = mixture(c, "num_local_experts", shared_experts=1, shared_ffn=shared) if c.get("num_local_experts") else (
        gated(c, ffn=shared))
    kinds = c.get("layer_types") or c["layers_block_type"]
    return several(c, [
        {"mlp": mlp} | ({"recurrence": recurrence} if kind == "mamba" else {"attention": attention(c)})
        for kind in kinds]) | {"positions": "rope" if c.get("position_embedding_type") == "rope" else "none"}


def kimi_linear(c: Config) -> Entry:
    """Kimi Linear: Kimi delta attention, and latent attention in every fourth layer."""
    for key in ("attn_res_block_size", "routed_expert_hidden_size", "mla_use_output_gate"):
        if c.get(key):
            raise ValueError(f"{key} (Kimi K3) is not supported")
    linear = c.get("linear_attn_config") or {}
    recurrence = {"kind": "kda", "heads": linear.get("num_heads") or c.get("linear_num_heads", 32),
                  "head_dim": linear.get("head_dim") or c.get("linear_head_dim", 128),
                  "conv": linear.get("short_conv_kernel_size") or c.get("linear_conv_kernel_dim", 4)}
    layers, full = c["num_hidden_layers"], linear.get("full_attn_layers")
    attends = ([i + 1 in full for i in range(layers)] if full else
               [kind == "full_attention" for kind in c["layer_types"]])
    names = {"n_routed_experts": "num_experts", "num_experts_per_tok": "num_experts_per_token",
             "n_shared_experts": "num_shared_experts"}
    found = {new: c.get(old, c.get(new)) for new, old in names.items()}
    routed = mixture({**c, **found, "n_routed_experts": found["n_routed_experts"] or c["num_local_experts"]},
                     "n_routed_experts", "moe_intermediate_size", shared_experts=found["n_shared_experts"] or 1,
                     correction_bias=True)
    lead = c.get("first_k_dense_replace", 1)
    return several(c, [({"attention": latent(c)} if attends[i] else {"recurrence": recurrence})
                       | {"mlp": gated(c) if i < lead else routed} for i in range(layers)])


def nemotron_nas(c: Config) -> Entry:
    """Llama Nemotron: each layer with attention and feed-forward of its own size, one product, or nothing."""
    hidden, heads = c["hidden_size"], c["num_attention_heads"]
    layers: list[Entry] = []
    for block in c["block_configs"]:
        mixer, ffn = block["attention"], block["ffn"]
        parts = [part for part in (mixer, ffn) if not part.get("no_op")]
        layer: Entry = {"norms": len(parts),
                        "products": [(hidden, hidden) for part in parts if part.get("replace_with_linear")]}
        if mixer in parts and not mixer.get("replace_with_linear"):
            layer["attention"] = attention({**c, "num_key_value_heads": heads // mixer["n_heads_in_group"]},
                                           window=mixer.get("window_length"))
        if ffn in parts and not ffn.get("replace_with_linear"):
            # two thirds of so many times four widths, in whole multiples of 256
            width = ffn.get("intermediate_size") or -(-int(2 * ffn["ffn_mult"] * hidden / 3) // 256) * 256
            layer["mlp"] = gated(c, ffn=width)
        layers.append({key: value for key, value in layer.items() if value})
    return several(c, layers)
