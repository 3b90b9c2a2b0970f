"""How Hugging Face configs spell dense transformers with gated feed-forwards; defaults are the config class's."""

from __future__ import annotations

from planner.catalog.importers.hf_parts import (
    Config,
    Entry,
    attention,
    gated,
    in_turn,
    latent,
    uniform,
    usual,
    windowed,
)


def llama(c: Config) -> Entry:
    """Llama 1 to 3 and all that is shaped alike: Code Llama, Yi, DeepSeek LLM, Granite, SmolLM3 with its default."""
    c = usual(c)
    return uniform(c, attention(c, bias="qkvo" if c.get("attention_bias") else "none"), gated(c))


def tied_llama(c: Config) -> Entry:
    """The same with one table for both ends unless the config says otherwise: SmolLM3, MiniCPM, Ernie 4.5."""
    bias = bool(c.get("use_bias"))
    return llama({"tie_word_embeddings": True, "attention_bias": bias, "mlp_bias": bias, **c})


def mistral(c: Config) -> Entry:
    """Mistral, with the eight key-value heads of its config class."""
    return uniform(c, attention({"num_key_value_heads": 8, **c}, window=c.get("sliding_window")), gated(c))


def phi3(c: Config) -> Entry:
    """Phi-3 and Phi-4, whose products are fused but as large."""
    return uniform(c, attention(c, window=c.get("sliding_window")), gated(c))


def qwen2(c: Config) -> Entry:
    """Qwen 2 and 2.5."""
    window = c.get("sliding_window") if c.get("use_sliding_window") else None
    return uniform(c, attention(c, bias="qkv", window=window), gated(c))


def qwen3(c: Config) -> Entry:
    """Qwen 3, dense."""
    return uniform(c, attention(c, qk_norm=True, bias="qkvo" if c.get("attention_bias") else "none"), gated(c))


def olmo(c: Config) -> Entry:
    """OLMo 1, whose norms have no parameters."""
    return llama(c) | {"norm": "unscaled"}


def olmo2(c: Config) -> Entry:
    """OLMo 2."""
    return uniform(c, attention(c, qk_norm="full"), gated(c))


def olmo3(c: Config) -> Entry:
    """OLMo 3: as OLMo 2, three layers of four windowed."""
    return windowed(olmo2(c), in_turn(c, 4), c.get("sliding_window", 4096))


def seed_oss(c: Config) -> Entry:
    """Seed-OSS: biases on queries, keys and values, and with attention_out_bias on the output."""
    bias = "none" if not c.get("attention_bias", True) else "qkvo" if c.get("attention_out_bias") else "qkv"
    return uniform(c, attention(c, bias=bias), gated(c))


def internlm2(c: Config) -> Entry:
    """InternLM 2, whose query, key and value matrices are fused."""
    return uniform(c, attention(c, bias="qkvo" if c.get("bias") else "none"), gated(c))


def glm(c: Config) -> Entry:
    """GLM-4 as Transformers spells it."""
    return uniform(c, attention(c, bias="qkv" if c.get("attention_bias") else "none"), gated(c))


def glm4(c: Config) -> Entry:
    """GLM-4-0414, with norms behind attention and feed-forward too."""
    return uniform(c, attention(c, bias="qkv" if c.get("attention_bias") else "none"), gated(c), norms=4)


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
    return uniform({"tie_word_embeddings": True, **c}, attention(c), gated(c), vectors=inner)


def apertus(c: Config) -> Entry:
    """Apertus: norms on queries and keys, and an activation with two parameters of its own."""
    return uniform(c, attention(c, qk_norm=True), gated(c, kind="plain"), vectors=2)


def gemma(c: Config) -> Entry:
    """Gemma 1."""
    return uniform({"tie_word_embeddings": True, **c}, attention(c), gated(c))


def gemma2(c: Config) -> Entry:
    """Gemma 2: windowed and full layers in turn."""
    entry = uniform({"tie_word_embeddings": True, **c}, attention(c), gated(c), norms=4)
    return windowed(entry, in_turn(c, 2), c.get("sliding_window", 4096))


def gemma3(c: Config) -> Entry:
    """Gemma 3, text part: every sixth layer is full."""
    c = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
         "tie_word_embeddings": True, **c}
    entry = uniform(c, attention(c, qk_norm=True), gated(c), norms=4) | {"vocab": c["vocab_size"]}
    return windowed(entry, in_turn(c, c.get("sliding_window_pattern", 6)), c.get("sliding_window", 4096))


def stablelm(c: Config) -> Entry:
    """StableLM: layer norms, one for both parts where they are parallel."""
    parallel = bool(c.get("use_parallel_residual"))
    norms = attention(c, bias="qkv" if c.get("use_qkv_bias") else "none",
                      qk_norm="full" if c.get("qk_layernorm") else False)
    return uniform(c, norms, gated(c), parallel=parallel, norms=1 if parallel else 2) | {"norm": "layernorm"}


def cohere(c: Config) -> Entry:
    """Command R: one norm ahead of attention and feed-forward in parallel."""
    heads = attention(c, bias="qkvo" if c.get("attention_bias") else "none",
                      qk_norm="full" if c.get("use_qk_norm") else False)
    return uniform({"tie_word_embeddings": True, **c}, heads, gated(c), parallel=True, norms=1) | {
        "norm": "layernorm-nobias"}


def cohere2(c: Config) -> Entry:
    """Command R7B and Command A: as Command R, three layers of four windowed."""
    return windowed(cohere(c), in_turn(c, c.get("sliding_window_pattern") or 4), c.get("sliding_window", 4096))


def qwen(c: Config) -> Entry:
    """Qwen 1, whose intermediate_size counts both products into the feed-forward."""
    return uniform(c, attention(c, bias="qkv"), gated(c, ffn=c["intermediate_size"] // 2))


def chatglm(c: Config) -> Entry:
    """ChatGLM 2 and 3, GLM-4-9B as its authors spell it."""
    c = usual(c)
    groups = c["multi_query_group_num"] if c.get("multi_query_attention") else c["num_attention_heads"]
    bias = "qkvo" if c.get("add_bias_linear") else "qkv" if c.get("add_qkv_bias") else "none"
    heads = attention({**c, "num_key_value_heads": groups, "head_dim": c.get("kv_channels")}, bias=bias)
    return uniform(c, heads, gated({"intermediate_size": c["ffn_hidden_size"]})) | {"vocab": c["padded_vocab_size"]}


def latent_llama(c: Config) -> Entry:
    """MiniCPM 3 and Youtu: Llama's layers with latent attention."""
    return uniform({"tie_word_embeddings": True, **c}, latent(c), gated(c))


def vaultgemma(c: Config) -> Entry:
    """VaultGemma: as Gemma 2, without norms behind the parts of a layer."""
    entry = uniform({"tie_word_embeddings": True, **c}, attention(c), gated(c))
    return windowed(entry, in_turn(c, 2), c.get("sliding_window", 4096))


def hyperclovax(c: Config) -> Entry:
    """HyperCLOVA X: as Granite, with norms behind the parts of a layer too where the config says so."""
    return uniform(c, attention(c), gated(c), norms=4 if c.get("use_post_norm") else 2)


def internlm3(c: Config) -> Entry:
    """InternLM 3: biases on queries, keys and values, or everywhere."""
    bias = "qkvo" if c.get("bias") else "qkv" if c.get("qkv_bias") else "none"
    return uniform(c, attention(c, bias=bias), gated(c))


def granite_swa(c: Config) -> Entry:
    """Granite with windowed layers and sinks."""
    return windowed(uniform(c, attention(c, sinks=True), gated(c)), in_turn(c, 4), c.get("sliding_window", 128))


def doge(c: Config) -> Entry:
    """Doge: scaled residuals, and a mask that values compute."""
    if c.get("is_moe"):
        raise ValueError("experts of one neuron each (is_moe) are not modeled")
    heads = attention(c, qk_norm=True)
    return uniform(c, heads, gated(c), vectors=2 * c["hidden_size"] + heads["kv_heads"],
               products=[(heads["kv_heads"] * heads["head_dim"], heads["kv_heads"])])
