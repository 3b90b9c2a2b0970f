"""How each Hugging Face model_type spells its shape: config.json to blocks. Defaults are those of its config class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Config = Mapping[str, Any]
Entry = dict[str, Any]


def _attention(c: Config, **changes: object) -> Entry:
    heads = c["num_attention_heads"]
    return {"heads": heads, "kv_heads": c.get("num_key_value_heads") or heads,
            "head_dim": c.get("head_dim") or c["hidden_size"] // heads} | changes


def _gated(c: Config) -> Entry:
    return {"kind": "gated", "ffn": c["intermediate_size"], "bias": bool(c.get("mlp_bias", False))}


def _one(c: Config, attention: Entry, mlp: Entry, **changes: object) -> Entry:
    block: Entry = {"count": c["num_hidden_layers"], "attention": attention, "mlp": mlp}
    return {"blocks": [block | changes], "tied": bool(c.get("tie_word_embeddings", False))}


def _alternating(entry: Entry, kinds: list[str], window: int, key: str = "window") -> Entry:
    """Split the only block into windowed layers (L) and full ones (G), as `kinds` names every layer."""
    symbols = "".join("L" if "sliding" in kind or "chunk" in kind else "G" for kind in kinds)
    block, blocks = entry["blocks"][0], []
    for symbol in dict.fromkeys(symbols):
        attention = block["attention"] | ({key: window} if symbol == "L" else {})
        blocks.append(block | {"count": symbols.count(symbol), "symbol": symbol, "attention": attention})
    return entry | {"blocks": blocks, "order": symbols if len(blocks) > 1 else ""}


def _leading(c: Config, attention: Entry, mixture: Entry) -> Entry:
    """Return dense layers ahead of a mixture of experts."""
    lead = c.get("first_k_dense_replace", 0)
    dense: Entry = {"count": lead, "attention": attention, "mlp": _gated(c)}
    rest: Entry = {"count": c["num_hidden_layers"] - lead, "attention": attention, "mlp": mixture}
    return {"blocks": [dense, rest] if lead else [rest], "tied": bool(c.get("tie_word_embeddings", False))}


def llama(c: Config) -> Entry:
    """Llama 1 to 3, Code Llama, Yi, DeepSeek LLM."""
    return _one(c, _attention(c, bias="qkvo" if c.get("attention_bias") else "none"), _gated(c))


def mistral(c: Config) -> Entry:
    """Mistral; Phi-3 is alike."""
    return _one(c, _attention({"num_key_value_heads": 8, **c}, window=c.get("sliding_window")), _gated(c))


def phi3(c: Config) -> Entry:
    """Phi-3 and Phi-4, whose products are fused but as large."""
    return _one(c, _attention(c, window=c.get("sliding_window")), _gated(c))


def mixtral(c: Config) -> Entry:
    """Mixtral."""
    mixture = {"kind": "moe", "experts": c["num_local_experts"], "experts_per_token": c["num_experts_per_tok"],
               "ffn": c["intermediate_size"]}
    return _one(c, _attention({"num_key_value_heads": 8, **c}, window=c.get("sliding_window")), mixture)


def qwen2(c: Config) -> Entry:
    """Qwen 2 and 2.5."""
    window = c.get("sliding_window") if c.get("use_sliding_window") else None
    return _one(c, _attention(c, bias="qkv", window=window), _gated(c))


def qwen3(c: Config) -> Entry:
    """Qwen 3, dense."""
    return _one(c, _attention(c, qk_norm=True), _gated(c))


def qwen3_moe(c: Config) -> Entry:
    """Qwen 3, mixtures."""
    mixture = {"kind": "moe", "experts": c["num_experts"], "experts_per_token": c["num_experts_per_tok"],
               "ffn": c["moe_intermediate_size"]}
    return _one(c, _attention(c, qk_norm=True), mixture)


def olmo2(c: Config) -> Entry:
    """OLMo 2."""
    return _one(c, _attention(c, qk_norm="full"), _gated(c))


def gemma(c: Config) -> Entry:
    """Gemma 1."""
    return _one({"tie_word_embeddings": True, **c}, _attention(c), _gated(c))


def gemma2(c: Config) -> Entry:
    """Gemma 2: windowed and full layers in turn."""
    entry = _one({"tie_word_embeddings": True, **c}, _attention(c), _gated(c), norms=4)
    kinds = c.get("layer_types") or ["sliding_attention", "full_attention"] * (c["num_hidden_layers"] // 2)
    return _alternating(entry, kinds, c.get("sliding_window", 4096))


def gemma3(c: Config) -> Entry:
    """Gemma 3, text part: every sixth layer is full."""
    c = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
         "tie_word_embeddings": True, **c}
    every = c.get("sliding_window_pattern", 6)
    kinds = c.get("layer_types") or ["sliding_attention" if (i + 1) % every else "full_attention"
                                     for i in range(c["num_hidden_layers"])]
    entry = _one(c, _attention(c, qk_norm=True), _gated(c), norms=4) | {"vocab": c["vocab_size"]}
    return _alternating(entry, kinds, c.get("sliding_window", 4096))


def gpt_oss(c: Config) -> Entry:
    """gpt-oss: windowed and full layers in turn, sinks, biases everywhere."""
    mixture = {"kind": "moe", "experts": c["num_local_experts"], "ffn": c["intermediate_size"], "bias": True,
               "experts_per_token": c.get("num_experts_per_tok") or c["experts_per_token"], "router_bias": True}
    entry = _one(c, _attention(c, bias="qkvo", sinks=True), mixture)
    return _alternating(entry, c["layer_types"], c["sliding_window"])


def glm4_moe(c: Config) -> Entry:
    """GLM-4.5."""
    mixture = {"kind": "moe", "experts": c["n_routed_experts"], "experts_per_token": c["num_experts_per_tok"],
               "ffn": c["moe_intermediate_size"], "shared_experts": c.get("n_shared_experts", 0),
               "correction_bias": True}
    attention = _attention(c, bias="qkv" if c.get("attention_bias") else "none", qk_norm=bool(c.get("use_qk_norm")))
    return _leading(c, attention, mixture)


def minimax_m2(c: Config) -> Entry:
    """MiniMax M2."""
    mixture = {"kind": "moe", "experts": c["num_local_experts"], "experts_per_token": c["num_experts_per_tok"],
               "ffn": c["intermediate_size"], "correction_bias": True}
    return _one(c, _attention(c, qk_norm="full" if c.get("use_qk_norm") else False), mixture)


def deepseek(c: Config) -> Entry:
    """DeepSeek V2, V3 and V3.2, Kimi K2: latent attention, leading dense layers, shared experts."""
    attention = {"kind": "mla", "heads": c["num_attention_heads"], "q_lora_rank": c.get("q_lora_rank"),
                 "kv_lora_rank": c["kv_lora_rank"], "qk_nope": c["qk_nope_head_dim"], "qk_rope": c["qk_rope_head_dim"],
                 "v_head": c["v_head_dim"]}
    if c.get("index_n_heads"):
        attention["indexer"] = {"heads": c["index_n_heads"], "head_dim": c["index_head_dim"], "top": c["index_topk"]}
    mixture = {"kind": "moe", "experts": c["n_routed_experts"], "experts_per_token": c["num_experts_per_tok"],
               "ffn": c["moe_intermediate_size"], "shared_experts": c.get("n_shared_experts") or 0,
               "correction_bias": c.get("topk_method") == "noaux_tc"}
    return _leading(c, attention, mixture)


def gpt2(c: Config) -> Entry:
    """GPT-2."""
    hidden, rows = c["n_embd"], c.get("n_positions", 1024)
    heads = {"num_attention_heads": c["n_head"], "hidden_size": hidden, "num_hidden_layers": c["n_layer"]}
    mlp = {"kind": "plain", "ffn": c.get("n_inner") or 4 * hidden, "bias": True}
    return _one({**heads, "tie_word_embeddings": True}, _attention(heads, bias="qkvo"), mlp) | {
        "hidden": hidden, "norm": "layernorm", "positions": "learned", "position_rows": rows}


def opt(c: Config) -> Entry:
    """OPT, whose table of positions has two rows more than positions."""
    if c.get("word_embed_proj_dim", c["hidden_size"]) != c["hidden_size"]:
        raise KeyError("word_embed_proj_dim equal to hidden_size")
    mlp = {"kind": "plain", "ffn": c["ffn_dim"], "bias": True}
    return _one({"tie_word_embeddings": True, **c}, _attention(c, bias="qkvo"), mlp) | {
        "norm": "layernorm", "positions": "learned", "position_rows": c["max_position_embeddings"] + 2}


def bloom(c: Config) -> Entry:
    """BLOOM."""
    hidden = c.get("hidden_size") or c["n_embed"]
    heads = {"num_attention_heads": c.get("n_head") or c["num_attention_heads"], "hidden_size": hidden,
             "num_hidden_layers": c.get("n_layer") or c["num_hidden_layers"]}
    mlp = {"kind": "plain", "ffn": 4 * hidden, "bias": True}
    return _one({**heads, "tie_word_embeddings": True}, _attention(heads, bias="qkvo"), mlp) | {
        "hidden": hidden, "norm": "layernorm", "positions": "alibi", "embedding_norm": True}


def falcon(c: Config) -> Entry:
    """Falcon, 7B with one key-value head and one norm, 40B and 180B with groups and two."""
    heads = {"num_attention_heads": c.get("num_attention_heads") or c["n_head"], "hidden_size": c["hidden_size"],
             "num_hidden_layers": c.get("num_hidden_layers") or c["n_layer"]}
    new = bool(c.get("new_decoder_architecture"))
    groups = (c.get("num_kv_heads") or c["n_head_kv"]) if new else 1 if c.get("multi_query", True) else heads[
        "num_attention_heads"]
    mlp = {"kind": "plain", "ffn": c.get("ffn_hidden_size") or 4 * c["hidden_size"], "bias": bool(c.get("bias", False))}
    return _one({**heads, "tie_word_embeddings": c.get("tie_word_embeddings", True)},
                _attention({**heads, "num_key_value_heads": groups}), mlp, parallel=True, norms=2 if new else 1) | {
        "norm": "layernorm"}


def mpt(c: Config) -> Entry:
    """MPT."""
    heads = {"num_attention_heads": c["n_heads"], "hidden_size": c["d_model"], "num_hidden_layers": c["n_layers"]}
    mlp = {"kind": "plain", "ffn": c.get("expansion_ratio", 4) * c["d_model"]}
    return _one({**heads, "tie_word_embeddings": True}, _attention(heads), mlp) | {
        "hidden": c["d_model"], "norm": "layernorm-nobias", "positions": "alibi"}


def nemotron(c: Config) -> Entry:
    """Nemotron-4: squared ReLU, layer norms."""
    return _one(c, _attention(c), {"kind": "plain", "ffn": c["intermediate_size"]}) | {"norm": "layernorm"}


def nemotron_h(c: Config) -> Entry:
    """Nemotron-H and Nemotron 3: layers of a single part in the order of hybrid_override_pattern."""
    pattern = c["hybrid_override_pattern"]
    parts: dict[str, Entry] = {
        "M": {"recurrence": {"kind": "mamba2", "heads": c["mamba_num_heads"], "head_dim": c["mamba_head_dim"],
                             "state": c["ssm_state_size"], "groups": c["n_groups"], "conv": c["conv_kernel"]}},
        "*": {"attention": _attention(c)}, "-": {"mlp": {"kind": "plain", "ffn": c["intermediate_size"]}}}
    if "E" in pattern:
        parts["E"] = {"mlp": {
            "kind": "moe", "experts": c["n_routed_experts"], "experts_per_token": c["num_experts_per_tok"],
            "ffn": c["moe_intermediate_size"], "gated": False, "correction_bias": True,
            "shared_experts": c.get("n_shared_experts", 0), "shared_ffn": c.get("moe_shared_expert_intermediate_size")}}
    blocks = [{"count": pattern.count(symbol), "symbol": symbol, **part} for symbol, part in parts.items()
              if symbol in pattern]
    return {"blocks": blocks, "order": pattern, "tied": bool(c.get("tie_word_embeddings", False)), "positions": "none"}


def qwen(c: Config) -> Entry:
    """Qwen 1, whose intermediate_size counts both products into the feed-forward."""
    return _one(c, _attention(c, bias="qkv"), {"kind": "gated", "ffn": c["intermediate_size"] // 2})


def llama4(c: Config) -> Entry:
    """Llama 4, text part: chunked layers with a full one in every four, experts in all or every second layer."""
    step, every = c.get("interleave_moe_layer_step", 1), c.get("no_rope_layer_interval", 4)
    mixture = {"kind": "moe", "experts": c["num_local_experts"], "experts_per_token": c["num_experts_per_tok"],
               "ffn": c["intermediate_size"], "shared_experts": 1}
    dense = {"kind": "gated", "ffn": c.get("intermediate_size_mlp") or c["intermediate_size"]}
    chunk = {"chunk": c.get("attention_chunk_size", 8192)}
    symbols = ""
    for layer in range(1, c["num_hidden_layers"] + 1):
        symbols += ("G" if layer % every == 0 else "L") if layer % step == 0 else "g" if layer % every == 0 else "l"
    blocks = [{"count": symbols.count(symbol), "symbol": symbol,
               "attention": _attention(c, **(chunk if symbol in "Ll" else {})),
               "mlp": mixture if symbol in "LG" else dense} for symbol in dict.fromkeys(symbols)]
    return {"blocks": blocks, "order": symbols, "tied": bool(c.get("tie_word_embeddings", False))}


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
    blocks = [{"count": symbols.count(symbol), "symbol": symbol, "mlp": mixture if symbol in "EB" else _gated(c)}
              | ({"attention": _attention(c)} if symbol in "AB" else {"recurrence": recurrence})
              for symbol in dict.fromkeys(symbols)]
    return {"blocks": blocks, "order": symbols, "tied": bool(c.get("tie_word_embeddings", False)), "positions": "none"}


def qwen_hybrid(c: Config) -> Entry:
    """Qwen3-Next and Qwen3.5: gated delta rule layers, and gated attention in every fourth."""
    recurrence = {"kind": "deltanet", "key_heads": c["linear_num_key_heads"],
                  "value_heads": c["linear_num_value_heads"], "key_dim": c["linear_key_head_dim"],
                  "value_dim": c["linear_value_head_dim"],
                  "conv": c.get("linear_conv_kernel_dim", 4)}
    mlp = _gated(c) if not c.get("num_experts") else {
        "kind": "moe", "experts": c["num_experts"], "experts_per_token": c["num_experts_per_tok"],
        "ffn": c["moe_intermediate_size"], "shared_experts": 1, "shared_ffn": c["shared_expert_intermediate_size"],
        "shared_gate": True}
    every, layers = c.get("full_attention_interval", 4), range(1, c["num_hidden_layers"] + 1)
    kinds = c.get("layer_types") or ["full_attention" if i % every == 0 else "linear_attention" for i in layers]
    symbols = "".join("D" if kind == "linear_attention" else "A" for kind in kinds)
    parts: dict[str, Entry] = {"D": {"recurrence": recurrence},
                               "A": {"attention": _attention(c, qk_norm=True, gate=True)}}
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


def mimo_v2_flash(c: Config) -> Entry:
    """MiMo-V2-Flash: windowed layers with sinks beside full ones, dense layers ahead of a mixture."""
    full = _attention(c, v_head_dim=c["v_head_dim"], sinks=bool(c.get("add_full_attention_sink_bias")))
    near = {"heads": c["swa_num_attention_heads"], "kv_heads": c["swa_num_key_value_heads"],
            "head_dim": c["swa_head_dim"], "v_head_dim": c["swa_v_head_dim"], "window": c["sliding_window"],
            "sinks": bool(c.get("add_swa_attention_sink_bias"))}
    mixture = {"kind": "moe", "experts": c["n_routed_experts"], "experts_per_token": c["num_experts_per_tok"],
               "ffn": c["moe_intermediate_size"], "shared_experts": c.get("n_shared_experts") or 0,
               "correction_bias": c.get("topk_method") == "noaux_tc"}
    symbols = "".join(("L" if windowed else "G") if routed else "l" if windowed else "g" for windowed, routed in zip(
        c["hybrid_layer_pattern"], c["moe_layer_freq"], strict=True))
    blocks = [{"count": symbols.count(symbol), "symbol": symbol, "attention": near if symbol in "Ll" else full,
               "mlp": mixture if symbol in "LG" else _gated(c)} for symbol in dict.fromkeys(symbols)]
    return {"blocks": blocks, "order": symbols, "tied": bool(c.get("tie_word_embeddings", False))}


FAMILIES: dict[str, Callable[[Config], Entry]] = {
    "llama": llama, "mistral": mistral, "mixtral": mixtral, "phi3": phi3, "qwen2": qwen2, "qwen3": qwen3,
    "qwen3_moe": qwen3_moe, "olmo2": olmo2, "gemma": gemma, "gemma2": gemma2, "gemma3": gemma3, "gemma3_text": gemma3,
    "gpt_oss": gpt_oss, "glm4_moe": glm4_moe, "minimax_m2": minimax_m2, "deepseek_v2": deepseek,
    "deepseek_v3": deepseek, "deepseek_v32": deepseek, "kimi_k2": deepseek, "gpt2": gpt2, "opt": opt, "bloom": bloom,
    "falcon": falcon, "mpt": mpt, "nemotron": nemotron, "nemotron_h": nemotron_h,
    "qwen": qwen, "mamba2": mamba2, "mimo_v2_flash": mimo_v2_flash, "llama4": llama4, "llama4_text": llama4,
    "jamba": jamba,
    "qwen3_next": qwen_hybrid, "qwen3_5": qwen_hybrid, "qwen3_5_text": qwen_hybrid, "qwen3_5_moe": qwen_hybrid,
    "qwen3_5_moe_text": qwen_hybrid}
