"""How Hugging Face configs spell models with recurrent layers: Nemotron-H, Jamba, Qwen3-Next and 3.5, Mamba-2."""

from __future__ import annotations

from planner.catalog.importers.hf_parts import Config, Entry, attention, gated


def nemotron_h(c: Config) -> Entry:
    """Nemotron-H and Nemotron 3: layers of a single part, in the order of a pattern or of a list of their types."""
    types = {"mamba": "M", "moe": "E", "attention": "*", "mlp": "-"}
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
    mixture = {"kind": "moe", "experts": c["num_experts"], "experts_per_token": c["num_experts_per_tok"],
               "ffn": c["intermediate_size"]}
    symbols = ""
    for layer in range(c["num_hidden_layers"]):
        attends = layer % c["attn_layer_period"] == c["attn_layer_offset"]
        routes = layer % c["expert_layer_period"] == c["expert_layer_offset"]
        symbols += ("B" if routes else "A") if attends else ("E" if routes else "M")
    blocks = [{"count": symbols.count(symbol), "symbol": symbol, "mlp": mixture if symbol in "EB" else gated(c)}
              | ({"attention": attention(c)} if symbol in "AB" else {"recurrence": recurrence})
              for symbol in dict.fromkeys(symbols)]
    return {"blocks": blocks, "order": symbols, "tied": bool(c.get("tie_word_embeddings", False)), "positions": "none"}


def qwen_hybrid(c: Config) -> Entry:
    """Qwen3-Next and Qwen3.5: gated delta rule layers, and gated attention in every fourth."""
    recurrence = {"kind": "deltanet", "key_heads": c["linear_num_key_heads"],
                  "value_heads": c["linear_num_value_heads"], "key_dim": c["linear_key_head_dim"],
                  "value_dim": c["linear_value_head_dim"],
                  "conv": c.get("linear_conv_kernel_dim", 4)}
    mlp = gated(c) if not c.get("num_experts") else {
        "kind": "moe", "experts": c["num_experts"], "experts_per_token": c["num_experts_per_tok"],
        "ffn": c["moe_intermediate_size"], "shared_experts": 1, "shared_ffn": c["shared_expert_intermediate_size"],
        "shared_gate": True}
    every, layers = c.get("full_attention_interval", 4), range(1, c["num_hidden_layers"] + 1)
    kinds = c.get("layer_types") or ["full_attention" if i % every == 0 else "linear_attention" for i in layers]
    symbols = "".join("D" if kind == "linear_attention" else "A" for kind in kinds)
    parts: dict[str, Entry] = {"D": {"recurrence": recurrence},
                               "A": {"attention": attention(c, qk_norm=True, gate=True)}}
    blocks = [{"count": symbols.count(symbol), "symbol": symbol, "mlp": mlp, **parts[symbol]}
              for symbol in dict.fromkeys(symbols)]
    return {"blocks": blocks, "order": symbols, "tied": bool(c.get("tie_word_embeddings", False))}


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
