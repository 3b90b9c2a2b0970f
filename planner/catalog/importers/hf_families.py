"""How each Hugging Face model_type spells its shape: config.json to blocks. Defaults are those of its config class."""

from __future__ import annotations

from collections.abc import Callable

from planner.catalog.importers.hf_hybrids import jamba, mamba2, nemotron_h, qwen_hybrid
from planner.catalog.importers.hf_parts import Config, Entry, attention, gated


def _of(c: Config, blocks: list[Entry]) -> Entry:
    return {"blocks": blocks, "tied": bool(c.get("tie_word_embeddings", False))}


def _one(c: Config, attention: Entry, mlp: Entry, **changes: object) -> Entry:
    return _of(c, [{"count": c["num_hidden_layers"], "attention": attention, "mlp": mlp, **changes}])


def _mixture(c: Config, experts: str, ffn: str = "intermediate_size", **changes: object) -> Entry:
    """Return a mixture of experts; their count and their width are keys of the config."""
    return {"kind": "moe", "experts": c[experts], "experts_per_token": c["num_experts_per_tok"], "ffn": c[ffn],
            **changes}


def _routed(c: Config) -> Entry:
    """Return a mixture as DeepSeek spells it."""
    return _mixture(c, "n_routed_experts", "moe_intermediate_size", shared_experts=c.get("n_shared_experts") or 0,
                    correction_bias=c.get("topk_method") == "noaux_tc")


def _by_symbol(c: Config, symbols: str, near: Entry, full: Entry, mixture: Entry, dense: Entry) -> Entry:
    """Return layers in the order of `symbols`: L and l are of `near` attention, L and G of a mixture."""
    blocks: list[Entry] = [
        {"count": symbols.count(symbol), "symbol": symbol, "attention": near if symbol in "Ll" else full,
         "mlp": mixture if symbol in "LG" else dense} for symbol in dict.fromkeys(symbols)]
    return _of(c, blocks) | {"order": symbols}


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
    dense: Entry = {"count": lead, "attention": attention, "mlp": gated(c)}
    rest: Entry = {"count": c["num_hidden_layers"] - lead, "attention": attention, "mlp": mixture}
    return _of(c, [dense, rest] if lead else [rest])


def llama(c: Config) -> Entry:
    """Llama 1 to 3, Code Llama, Yi, DeepSeek LLM."""
    return _one(c, attention(c, bias="qkvo" if c.get("attention_bias") else "none"), gated(c))


def mistral(c: Config) -> Entry:
    """Mistral; Phi-3 is alike."""
    return _one(c, attention({"num_key_value_heads": 8, **c}, window=c.get("sliding_window")), gated(c))


def phi3(c: Config) -> Entry:
    """Phi-3 and Phi-4, whose products are fused but as large."""
    return _one(c, attention(c, window=c.get("sliding_window")), gated(c))


def mixtral(c: Config) -> Entry:
    """Mixtral."""
    heads = attention({"num_key_value_heads": 8, **c}, window=c.get("sliding_window"))
    return _one(c, heads, _mixture(c, "num_local_experts"))


def qwen2(c: Config) -> Entry:
    """Qwen 2 and 2.5."""
    window = c.get("sliding_window") if c.get("use_sliding_window") else None
    return _one(c, attention(c, bias="qkv", window=window), gated(c))


def qwen3(c: Config) -> Entry:
    """Qwen 3, dense."""
    return _one(c, attention(c, qk_norm=True), gated(c))


def qwen3_moe(c: Config) -> Entry:
    """Qwen 3, mixtures."""
    return _one(c, attention(c, qk_norm=True), _mixture(c, "num_experts", "moe_intermediate_size"))


def olmo2(c: Config) -> Entry:
    """OLMo 2."""
    return _one(c, attention(c, qk_norm="full"), gated(c))


def gemma(c: Config) -> Entry:
    """Gemma 1."""
    return _one({"tie_word_embeddings": True, **c}, attention(c), gated(c))


def gemma2(c: Config) -> Entry:
    """Gemma 2: windowed and full layers in turn."""
    entry = _one({"tie_word_embeddings": True, **c}, attention(c), gated(c), norms=4)
    kinds = c.get("layer_types") or ["sliding_attention", "full_attention"] * (c["num_hidden_layers"] // 2)
    return _alternating(entry, kinds, c.get("sliding_window", 4096))


def gemma3(c: Config) -> Entry:
    """Gemma 3, text part: every sixth layer is full."""
    c = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
         "tie_word_embeddings": True, **c}
    every = c.get("sliding_window_pattern", 6)
    kinds = c.get("layer_types") or ["sliding_attention" if (i + 1) % every else "full_attention"
                                     for i in range(c["num_hidden_layers"])]
    entry = _one(c, attention(c, qk_norm=True), gated(c), norms=4) | {"vocab": c["vocab_size"]}
    return _alternating(entry, kinds, c.get("sliding_window", 4096))


def gpt_oss(c: Config) -> Entry:
    """gpt-oss: windowed and full layers in turn, sinks, biases everywhere."""
    mixture = {"kind": "moe", "experts": c["num_local_experts"], "ffn": c["intermediate_size"], "bias": True,
               "experts_per_token": c.get("num_experts_per_tok") or c["experts_per_token"], "router_bias": True}
    entry = _one(c, attention(c, bias="qkvo", sinks=True), mixture)
    return _alternating(entry, c["layer_types"], c["sliding_window"])


def glm4_moe(c: Config) -> Entry:
    """GLM-4.5."""
    heads = attention(c, bias="qkv" if c.get("attention_bias") else "none", qk_norm=bool(c.get("use_qk_norm")))
    return _leading(c, heads, _routed(c) | {"correction_bias": True})


def minimax_m2(c: Config) -> Entry:
    """MiniMax M2."""
    heads = attention(c, qk_norm="full" if c.get("use_qk_norm") else False)
    return _one(c, heads, _mixture(c, "num_local_experts", correction_bias=True))


def deepseek(c: Config) -> Entry:
    """DeepSeek V2, V3 and V3.2, Kimi K2: latent attention, leading dense layers, shared experts."""
    attention = {"kind": "mla", "heads": c["num_attention_heads"], "q_lora_rank": c.get("q_lora_rank"),
                 "kv_lora_rank": c["kv_lora_rank"], "qk_nope": c["qk_nope_head_dim"], "qk_rope": c["qk_rope_head_dim"],
                 "v_head": c["v_head_dim"]}
    if c.get("index_n_heads"):
        attention["indexer"] = {"heads": c["index_n_heads"], "head_dim": c["index_head_dim"], "top": c["index_topk"]}
    return _leading(c, attention, _routed(c))


def gpt2(c: Config) -> Entry:
    """GPT-2."""
    hidden, rows = c["n_embd"], c.get("n_positions", 1024)
    heads = {"num_attention_heads": c["n_head"], "hidden_size": hidden, "num_hidden_layers": c["n_layer"]}
    mlp = {"kind": "plain", "ffn": c.get("n_inner") or 4 * hidden, "bias": True}
    return _one({**heads, "tie_word_embeddings": True}, attention(heads, bias="qkvo"), mlp) | {
        "hidden": hidden, "norm": "layernorm", "positions": "learned", "position_rows": rows}


def opt(c: Config) -> Entry:
    """OPT, whose table of positions has two rows more than positions."""
    if c.get("word_embed_proj_dim", c["hidden_size"]) != c["hidden_size"]:
        raise KeyError("word_embed_proj_dim equal to hidden_size")
    mlp = {"kind": "plain", "ffn": c["ffn_dim"], "bias": True}
    return _one({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), mlp) | {
        "norm": "layernorm", "positions": "learned", "position_rows": c["max_position_embeddings"] + 2}


def bloom(c: Config) -> Entry:
    """BLOOM."""
    hidden = c.get("hidden_size") or c["n_embed"]
    heads = {"num_attention_heads": c.get("n_head") or c["num_attention_heads"], "hidden_size": hidden,
             "num_hidden_layers": c.get("n_layer") or c["num_hidden_layers"]}
    mlp = {"kind": "plain", "ffn": 4 * hidden, "bias": True}
    return _one({**heads, "tie_word_embeddings": True}, attention(heads, bias="qkvo"), mlp) | {
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
                attention({**heads, "num_key_value_heads": groups}), mlp, parallel=True, norms=2 if new else 1) | {
        "norm": "layernorm"}


def mpt(c: Config) -> Entry:
    """MPT."""
    heads = {"num_attention_heads": c["n_heads"], "hidden_size": c["d_model"], "num_hidden_layers": c["n_layers"]}
    mlp = {"kind": "plain", "ffn": c.get("expansion_ratio", 4) * c["d_model"]}
    return _one({**heads, "tie_word_embeddings": True}, attention(heads), mlp) | {
        "hidden": c["d_model"], "norm": "layernorm-nobias", "positions": "alibi"}


def nemotron(c: Config) -> Entry:
    """Nemotron-4: squared ReLU, layer norms."""
    return _one(c, attention(c), {"kind": "plain", "ffn": c["intermediate_size"]}) | {"norm": "layernorm"}


def qwen(c: Config) -> Entry:
    """Qwen 1, whose intermediate_size counts both products into the feed-forward."""
    return _one(c, attention(c, bias="qkv"), {"kind": "gated", "ffn": c["intermediate_size"] // 2})


def llama4(c: Config) -> Entry:
    """Llama 4, text part: chunked layers with a full one in every four, experts in all or every second layer."""
    step, every = c.get("interleave_moe_layer_step", 1), c.get("no_rope_layer_interval", 4)
    dense = {"kind": "gated", "ffn": c.get("intermediate_size_mlp") or c["intermediate_size"]}
    symbols = ""
    for layer in range(1, c["num_hidden_layers"] + 1):
        symbols += ("G" if layer % every == 0 else "L") if layer % step == 0 else "g" if layer % every == 0 else "l"
    return _by_symbol(c, symbols, attention(c, chunk=c.get("attention_chunk_size", 8192)), attention(c),
                      _mixture(c, "num_local_experts", shared_experts=1), dense)


def mimo_v2_flash(c: Config) -> Entry:
    """MiMo-V2-Flash: windowed layers with sinks beside full ones, dense layers ahead of a mixture."""
    full = attention(c, v_head_dim=c["v_head_dim"], sinks=bool(c.get("add_full_attention_sink_bias")))
    near = {"heads": c["swa_num_attention_heads"], "kv_heads": c["swa_num_key_value_heads"],
            "head_dim": c["swa_head_dim"], "v_head_dim": c["swa_v_head_dim"], "window": c["sliding_window"],
            "sinks": bool(c.get("add_swa_attention_sink_bias"))}
    symbols = "".join(("L" if windowed else "G") if routed else "l" if windowed else "g" for windowed, routed in zip(
        c["hybrid_layer_pattern"], c["moe_layer_freq"], strict=True))
    return _by_symbol(c, symbols, near, full, _routed(c), gated(c))


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
