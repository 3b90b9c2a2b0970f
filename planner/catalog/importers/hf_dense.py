"""How Hugging Face configs spell dense transformers. Defaults are those of the family's config class."""

from __future__ import annotations

from planner.catalog.importers.hf_parts import Config, Entry, attention, gated, in_turn, one, usual, windowed


def llama(c: Config) -> Entry:
    """Llama 1 to 3 and all that is shaped alike: Code Llama, Yi, DeepSeek LLM, Granite, SmolLM3 with its default."""
    c = usual(c)
    return one(c, attention(c, bias="qkvo" if c.get("attention_bias") else "none"), gated(c))


def tied_llama(c: Config) -> Entry:
    """The same with one table for both ends unless the config says otherwise: SmolLM3, MiniCPM, Ernie 4.5."""
    bias = bool(c.get("use_bias"))
    return llama({"tie_word_embeddings": True, "attention_bias": bias, "mlp_bias": bias, **c})


def mistral(c: Config) -> Entry:
    """Mistral, with the eight key-value heads of its config class."""
    return one(c, attention({"num_key_value_heads": 8, **c}, window=c.get("sliding_window")), gated(c))


def phi3(c: Config) -> Entry:
    """Phi-3 and Phi-4, whose products are fused but as large."""
    return one(c, attention(c, window=c.get("sliding_window")), gated(c))


def qwen2(c: Config) -> Entry:
    """Qwen 2 and 2.5."""
    window = c.get("sliding_window") if c.get("use_sliding_window") else None
    return one(c, attention(c, bias="qkv", window=window), gated(c))


def qwen3(c: Config) -> Entry:
    """Qwen 3, dense."""
    return one(c, attention(c, qk_norm=True, bias="qkvo" if c.get("attention_bias") else "none"), gated(c))


def olmo(c: Config) -> Entry:
    """OLMo 1, whose norms have no parameters."""
    return llama(c) | {"norm": "unscaled"}


def olmo2(c: Config) -> Entry:
    """OLMo 2."""
    return one(c, attention(c, qk_norm="full"), gated(c))


def olmo3(c: Config) -> Entry:
    """OLMo 3: as OLMo 2, three layers of four windowed."""
    return windowed(olmo2(c), in_turn(c, 4), c.get("sliding_window", 4096))


def seed_oss(c: Config) -> Entry:
    """Seed-OSS: biases on queries, keys and values, and with attention_out_bias on the output."""
    bias = "none" if not c.get("attention_bias", True) else "qkvo" if c.get("attention_out_bias") else "qkv"
    return one(c, attention(c, bias=bias), gated(c))


def internlm2(c: Config) -> Entry:
    """InternLM 2, whose query, key and value matrices are fused."""
    return one(c, attention(c, bias="qkvo" if c.get("bias") else "none"), gated(c))


def glm(c: Config) -> Entry:
    """GLM-4 as Transformers spells it."""
    return one(c, attention(c, bias="qkv" if c.get("attention_bias") else "none"), gated(c))


def glm4(c: Config) -> Entry:
    """GLM-4-0414, with norms behind attention and feed-forward too."""
    return one(c, attention(c, bias="qkv" if c.get("attention_bias") else "none"), gated(c), norms=4)


def exaone4(c: Config) -> Entry:
    """EXAONE 4: norms behind the layers' parts, and windowed layers in the larger model."""
    entry, pattern, window = qwen3(c), c.get("sliding_window_pattern"), c.get("sliding_window")
    every = len(pattern) if isinstance(pattern, str) else pattern or 4
    return windowed(entry, in_turn(c, every), window) if window else entry


def hunyuan(c: Config) -> Entry:
    """Hunyuan, dense."""
    return qwen3(c)


def bitnet(c: Config) -> Entry:
    """BitNet: norms inside attention and feed-forward, ahead of the last product of each."""
    inner = c["hidden_size"] + c["intermediate_size"]
    return one({"tie_word_embeddings": True, **c}, attention(c), gated(c), vectors=inner)


def arcee(c: Config) -> Entry:
    """Arcee: squared ReLU without a gate."""
    return one(c, attention(c, bias="qkvo" if c.get("attention_bias") else "none"), gated(c, kind="plain"))


def apertus(c: Config) -> Entry:
    """Apertus: norms on queries and keys, and an activation with two parameters of its own."""
    return one(c, attention(c, qk_norm=True), gated(c, kind="plain"), vectors=2)


def gemma(c: Config) -> Entry:
    """Gemma 1."""
    return one({"tie_word_embeddings": True, **c}, attention(c), gated(c))


def gemma2(c: Config) -> Entry:
    """Gemma 2: windowed and full layers in turn."""
    entry = one({"tie_word_embeddings": True, **c}, attention(c), gated(c), norms=4)
    return windowed(entry, in_turn(c, 2), c.get("sliding_window", 4096))


def gemma3(c: Config) -> Entry:
    """Gemma 3, text part: every sixth layer is full."""
    c = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
         "tie_word_embeddings": True, **c}
    entry = one(c, attention(c, qk_norm=True), gated(c), norms=4) | {"vocab": c["vocab_size"]}
    return windowed(entry, in_turn(c, c.get("sliding_window_pattern", 6)), c.get("sliding_window", 4096))


def nemotron(c: Config) -> Entry:
    """Nemotron-4 and Minitron: squared ReLU, layer norms."""
    bias = "qkvo" if c.get("attention_bias") else "none"
    return one(c, attention(c, bias=bias), gated(c, kind="plain")) | {"norm": "layernorm"}


def starcoder2(c: Config) -> Entry:
    """StarCoder 2: layer norms, biases, a plain feed-forward."""
    bias = bool(c.get("use_bias", True))
    heads = attention(c, bias="qkvo" if bias else "none", window=c.get("sliding_window"))
    return one({"tie_word_embeddings": True, **c}, heads, gated(c, kind="plain", bias=bias)) | {"norm": "layernorm"}


def stablelm(c: Config) -> Entry:
    """StableLM: layer norms, one for both parts where they are parallel."""
    parallel = bool(c.get("use_parallel_residual"))
    norms = attention(c, bias="qkv" if c.get("use_qkv_bias") else "none",
                      qk_norm="full" if c.get("qk_layernorm") else False)
    return one(c, norms, gated(c), parallel=parallel, norms=1 if parallel else 2) | {"norm": "layernorm"}


def cohere(c: Config) -> Entry:
    """Command R: one norm ahead of attention and feed-forward in parallel."""
    heads = attention(c, bias="qkvo" if c.get("attention_bias") else "none",
                      qk_norm="full" if c.get("use_qk_norm") else False)
    return one({"tie_word_embeddings": True, **c}, heads, gated(c), parallel=True, norms=1) | {
        "norm": "layernorm-nobias"}


def cohere2(c: Config) -> Entry:
    """Command R7B and Command A: as Command R, three layers of four windowed."""
    return windowed(cohere(c), in_turn(c, c.get("sliding_window_pattern") or 4), c.get("sliding_window", 4096))


def gpt_neox(c: Config) -> Entry:
    """GPT-NeoX and Pythia: two norms, attention and feed-forward in parallel."""
    bias = "qkvo" if c.get("attention_bias", True) else "none"
    return one(c, attention(c, bias=bias), gated(c, kind="plain", bias=True), norms=2,
               parallel=bool(c.get("use_parallel_residual", True))) | {"norm": "layernorm"}


def _plain(c: Config, **changes: object) -> Entry:
    ffn = c.get("n_inner") or c.get("intermediate_size") or 4 * c["hidden_size"]
    return {"kind": "plain", "ffn": ffn, "bias": True} | changes


def gpt2(c: Config) -> Entry:
    """GPT-2."""
    c = usual(c)
    return one({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), _plain(c)) | {
        "hidden": c["hidden_size"], "norm": "layernorm", "positions": "learned",
        "position_rows": c.get("max_position_embeddings", 1024)}


def gpt_bigcode(c: Config) -> Entry:
    """StarCoder and SantaCoder: GPT-2 with one key-value head."""
    c = usual(c)
    return gpt2({**c, "num_key_value_heads": 1 if c.get("multi_query", True) else c["num_attention_heads"]})


def gptj(c: Config) -> Entry:
    """GPT-J and CodeGen: one norm ahead of both parts, an output matrix with a bias."""
    c = usual(c)
    return one(c, attention(c), _plain(c), parallel=True, norms=1) | {
        "hidden": c["hidden_size"], "norm": "layernorm", "output_parameters": c["vocab_size"]}


def phi(c: Config) -> Entry:
    """Phi 1 to 2: as GPT-J, with biases on attention too."""
    norms = 2 * (c["hidden_size"] // c["num_attention_heads"]) * 2 if c.get("qk_layernorm") else 0
    return one(c, attention(c, bias="qkvo"), _plain(c), parallel=True, norms=1, vectors=norms) | {
        "norm": "layernorm", "output_parameters": c["vocab_size"]}


def opt(c: Config) -> Entry:
    """OPT, whose table of positions has two rows more than positions."""
    if c.get("word_embed_proj_dim", c["hidden_size"]) != c["hidden_size"]:
        raise KeyError("word_embed_proj_dim equal to hidden_size")
    return one({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), _plain(c, ffn=c["ffn_dim"])) | {
        "norm": "layernorm", "positions": "learned", "position_rows": c["max_position_embeddings"] + 2}


def bloom(c: Config) -> Entry:
    """BLOOM."""
    c = usual(c)
    return one({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), _plain(c)) | {
        "hidden": c["hidden_size"], "norm": "layernorm", "positions": "alibi", "embedding_norm": True}


def falcon(c: Config) -> Entry:
    """Falcon, 7B with one key-value head and one norm, 40B and 180B with groups and two."""
    c, new = usual(c), bool(c.get("new_decoder_architecture"))
    whole = 1 if c.get("multi_query", True) else c["num_attention_heads"]
    groups = (c.get("num_kv_heads") or c["n_head_kv"]) if new else whole
    bias, parallel = bool(c.get("bias", False)), bool(new or c.get("parallel_attn", True))
    norms = c.get("num_ln_in_parallel_attn") or (2 if new or not parallel else 1)
    mlp = _plain(c, ffn=c.get("ffn_hidden_size") or 4 * c["hidden_size"], bias=bias)
    heads = attention({**c, "num_key_value_heads": groups}, bias="qkvo" if bias else "none")
    return one({"tie_word_embeddings": True, **c}, heads, mlp, parallel=parallel, norms=norms) | {
        "norm": "layernorm", "positions": "alibi" if c.get("alibi") else "rope"}


def mpt(c: Config) -> Entry:
    """MPT."""
    c, inner = usual(c), c.get("attn_config") or {}
    heads = attention({**c, "num_key_value_heads": inner.get("kv_n_heads") or c["num_attention_heads"]})
    return one({"tie_word_embeddings": True, **c}, heads,
               _plain(c, ffn=c.get("expansion_ratio", 4) * c["hidden_size"], bias=not c.get("no_bias", True))) | {
        "hidden": c["hidden_size"], "norm": "layernorm-nobias", "positions": "alibi"}


def qwen(c: Config) -> Entry:
    """Qwen 1, whose intermediate_size counts both products into the feed-forward."""
    return one(c, attention(c, bias="qkv"), gated(c, ffn=c["intermediate_size"] // 2))


def chatglm(c: Config) -> Entry:
    """ChatGLM 2 and 3, GLM-4-9B as its authors spell it."""
    c = usual(c)
    groups = c["multi_query_group_num"] if c.get("multi_query_attention") else c["num_attention_heads"]
    bias = "qkvo" if c.get("add_bias_linear") else "qkv" if c.get("add_qkv_bias") else "none"
    heads = attention({**c, "num_key_value_heads": groups, "head_dim": c.get("kv_channels")}, bias=bias)
    return one(c, heads, gated({"intermediate_size": c["ffn_hidden_size"]})) | {"vocab": c["padded_vocab_size"]}
