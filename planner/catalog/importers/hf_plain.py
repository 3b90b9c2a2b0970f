"""How Hugging Face configs spell dense transformers whose feed-forward has no gate, or may have one."""

from __future__ import annotations

from planner.catalog.importers.hf_parts import Config, Entry, attention, gated, uniform, usual, windowed


def _plain(c: Config, **changes: object) -> Entry:
    ffn = c.get("n_inner") or c.get("intermediate_size") or 4 * c["hidden_size"]
    return {"kind": "plain", "ffn": ffn, "bias": True} | changes


def nemotron(c: Config) -> Entry:
    """Nemotron-4 and Minitron: squared ReLU, layer norms."""
    bias = "qkvo" if c.get("attention_bias") else "none"
    return uniform(c, attention(c, bias=bias), gated(c, kind="plain")) | {"norm": "layernorm"}


def starcoder2(c: Config) -> Entry:
    """StarCoder 2: layer norms, biases, a plain feed-forward."""
    bias = bool(c.get("use_bias", True))
    heads = attention(c, bias="qkvo" if bias else "none", window=c.get("sliding_window"))
    return uniform({"tie_word_embeddings": True, **c}, heads, gated(c, kind="plain", bias=bias)) | {"norm": "layernorm"}


def gpt_neox(c: Config) -> Entry:
    """GPT-NeoX and Pythia: two norms, attention and feed-forward in parallel."""
    bias = "qkvo" if c.get("attention_bias", True) else "none"
    return uniform(c, attention(c, bias=bias), gated(c, kind="plain", bias=True), norms=2,
               parallel=bool(c.get("use_parallel_residual", True))) | {"norm": "layernorm"}


def gpt2(c: Config) -> Entry:
    """GPT-2."""
    c = usual(c)
    return uniform({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), _plain(c)) | {
        "hidden": c["hidden_size"], "norm": "layernorm", "positions": "learned",
        "position_rows": c.get("max_position_embeddings", 1024)}


def gpt_bigcode(c: Config) -> Entry:
    """StarCoder and SantaCoder: GPT-2 with one key-value head."""
    c = usual(c)
    return gpt2({**c, "num_key_value_heads": 1 if c.get("multi_query", True) else c["num_attention_heads"]})


def gptj(c: Config) -> Entry:
    """GPT-J and CodeGen: one norm ahead of both parts, an output matrix with a bias."""
    c = usual(c)
    return uniform(c, attention(c), _plain(c), parallel=True, norms=1) | {
        "hidden": c["hidden_size"], "norm": "layernorm", "output_parameters": c["vocab_size"]}


def phi(c: Config) -> Entry:
    """Phi 1 to 2: as GPT-J, with biases on attention too."""
    norms = 2 * (c["hidden_size"] // c["num_attention_heads"]) * 2 if c.get("qk_layernorm") else 0
    return uniform(c, attention(c, bias="qkvo"), _plain(c), parallel=True, norms=1, vectors=norms) | {
        "norm": "layernorm", "output_parameters": c["vocab_size"]}


def opt(c: Config) -> Entry:
    """OPT, whose table of positions has two rows more than positions."""
    if c.get("word_embed_proj_dim", c["hidden_size"]) != c["hidden_size"]:
        raise KeyError("word_embed_proj_dim equal to hidden_size")
    return uniform({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), _plain(c, ffn=c["ffn_dim"])) | {
        "norm": "layernorm", "positions": "learned", "position_rows": c["max_position_embeddings"] + 2}


def bloom(c: Config) -> Entry:
    """BLOOM."""
    c = usual(c)
    return uniform({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), _plain(c)) | {
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
    return uniform({"tie_word_embeddings": True, **c}, heads, mlp, parallel=parallel, norms=norms) | {
        "norm": "layernorm", "positions": "alibi" if c.get("alibi") else "rope"}


def mpt(c: Config) -> Entry:
    """MPT."""
    c, inner = usual(c), c.get("attn_config") or {}
    heads = attention({**c, "num_key_value_heads": inner.get("kv_n_heads") or c["num_attention_heads"]})
    return uniform({"tie_word_embeddings": True, **c}, heads,
               _plain(c, ffn=c.get("expansion_ratio", 4) * c["hidden_size"], bias=not c.get("no_bias", True))) | {
        "hidden": c["hidden_size"], "norm": "layernorm-nobias", "positions": "alibi"}


def jais2(c: Config) -> Entry:
    """Jais 2: layer norms, squared ReLU, biases."""
    heads = attention(c, bias="qkvo" if c.get("attention_bias", True) else "none")
    return uniform(c, heads, gated(c, kind="plain", bias=bool(c.get("mlp_bias", True)))) | {"norm": "layernorm"}


def nanochat(c: Config) -> Entry:
    """Nanochat: squared ReLU, norms without parameters."""
    return uniform(c, attention(c), gated(c, kind="plain")) | {"norm": "unscaled"}


def persimmon(c: Config) -> Entry:
    """Persimmon: squared ReLU, layer norms on queries and keys too."""
    width = c["hidden_size"] // c["num_attention_heads"]
    normed = bool(c.get("qk_layernorm", True))
    return uniform(c, attention(c, bias="qkvo", qk_norm=normed), gated(c, kind="plain", bias=True),
               vectors=2 * width * normed) | {"norm": "layernorm"}


def gpt_neo(c: Config) -> Entry:
    """GPT-Neo: GPT-2 with every second layer windowed, and a bias on the output of attention alone."""
    c = usual(c)
    entry = uniform({"tie_word_embeddings": True, **c}, attention(c), _plain(c), vectors=c["hidden_size"])
    kinds = c.get("attention_layers") or [
        kind for turn, times in c.get("attention_types") or [[["global", "local"], c["num_hidden_layers"] // 2]]
        for kind in turn * times]
    near = ["sliding" if kind == "local" else "full" for kind in kinds]
    return windowed(entry, near, c.get("window_size", 256)) | {
        "norm": "layernorm", "positions": "learned", "position_rows": c.get("max_position_embeddings", 2048)}


def xglm(c: Config) -> Entry:
    """XGLM, whose positions are computed."""
    c = usual(c)
    return uniform({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), _plain(c, ffn=c["ffn_dim"])) | {
        "hidden": c["hidden_size"], "norm": "layernorm", "positions": "none"}


def biogpt(c: Config) -> Entry:
    """BioGPT, whose table of positions has two rows more than positions."""
    return uniform({"tie_word_embeddings": True, **c}, attention(c, bias="qkvo"), _plain(c)) | {
        "norm": "layernorm", "positions": "learned", "position_rows": c.get("max_position_embeddings", 1024) + 2}


def arcee(c: Config) -> Entry:
    """Arcee: squared ReLU without a gate."""
    return uniform(c, attention(c, bias="qkvo" if c.get("attention_bias") else "none"), gated(c, kind="plain"))
