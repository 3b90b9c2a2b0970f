"""How Hugging Face configs spell mixtures of experts with attention in every layer."""

from __future__ import annotations

from planner.catalog.importers.hf_parts import (
    Config,
    Entry,
    attention,
    gated,
    in_turn,
    latent,
    mixture,
    of,
    several,
    uniform,
    usual,
    windowed,
)


def routed(c: Config, **changes: object) -> Entry:
    """Return a mixture as DeepSeek spells it, its numbers by any of their names.

    shared_width: of a shared expert, where a family has it.
    """
    c = usual(c)
    wide = {"shared_ffn": c["shared_width"]} if c.get("shared_width") else {}
    return mixture(c, "n_routed_experts", "moe_intermediate_size", shared_experts=c.get("n_shared_experts") or 0,
                   correction_bias=c.get("topk_method", "noaux_tc") == "noaux_tc", **wide, **changes)


def sparse_layers(c: Config) -> list[bool]:
    """Return which layers are mixtures: as the config lists them or the dense ones, or by a lead and a period."""
    c = usual(c)
    layers, kinds, listed = c["num_hidden_layers"], c.get("mlp_layer_types"), c.get("moe_layer_freq")
    if kinds:
        return [kind != "dense" for kind in kinds[:layers]]
    if isinstance(listed, list):
        return [bool(routed) for routed in listed[:layers]]
    lead, step, dense = c.get("first_k_dense_replace") or 0, c.get("decoder_sparse_step") or 1, c.get("mlp_only_layers")
    return [i >= lead and i % (listed or 1) == 0 and (i + 1) % step == 0 and i not in (dense or ())
            for i in range(layers)]


def _mixed(c: Config, attention: Entry, routed: Entry, **changes: object) -> Entry:
    """Return a mixture whose dense layers lead it, or stand between."""
    sparse = sparse_layers(c)
    lead = sparse.index(True) if True in sparse else len(sparse)
    dense: Entry = {"attention": attention, "mlp": gated(c), **changes}
    rest: Entry = {"attention": attention, "mlp": routed, **changes}
    if not all(sparse[lead:]):
        return several(c, [rest if is_sparse else dense for is_sparse in sparse])
    blocks = [{"count": lead, **dense}, {"count": len(sparse) - lead, **rest}]
    return of(c, [block for block in blocks if block["count"]])


def mixtral(c: Config) -> Entry:
    """Mixtral."""
    heads = attention({"num_key_value_heads": 8, **c}, window=c.get("sliding_window"))
    return uniform(c, heads, mixture(c, "num_local_experts"))


def qwen2_moe(c: Config) -> Entry:
    """Qwen 1.5 and 2, mixtures: a shared expert behind a gate, dense layers where the config names them."""
    routed = mixture(c, "num_experts", "moe_intermediate_size", shared_experts=1, shared_gate=True,
                     shared_ffn=c["shared_expert_intermediate_size"])
    return _mixed(c, attention(c, bias="qkv" if c.get("qkv_bias", True) else "none"), routed)


def qwen3_moe(c: Config) -> Entry:
    """Qwen 3, mixtures."""
    return _mixed(c, attention(c, qk_norm=True), mixture(c, "num_experts", "moe_intermediate_size"))


def olmoe(c: Config) -> Entry:
    """OLMoE."""
    return uniform(c, attention(c, qk_norm="full"), mixture(c, "num_experts"))


def granitemoe(c: Config) -> Entry:
    """Granite 3, mixtures; a shared feed-forward in some."""
    shared = c.get("shared_intermediate_size")
    more = {"shared_experts": 1, "shared_ffn": shared} if shared else {}
    heads = attention(c, bias="qkvo" if c.get("attention_bias") else "none")
    return uniform(c, heads, mixture(c, "num_local_experts", **more))


def phimoe(c: Config) -> Entry:
    """Phi-3.5-MoE: layer norms, and an output matrix with a bias."""
    heads = attention(c, bias="qkvo" if c.get("attention_bias") else "none", window=c.get("sliding_window"))
    return uniform(c, heads, mixture(c, "num_local_experts")) | {
        "norm": "layernorm", "output_parameters": c["vocab_size"] if c.get("lm_head_bias") else 0}


def dbrx(c: Config) -> Entry:
    """DBRX, whose attention and experts are configs of their own."""
    c = usual(c)
    heads, experts = c["attn_config"], c["ffn_config"]
    routed = {"kind": "moe", "experts": experts["moe_num_experts"], "experts_per_token": experts["moe_top_k"],
              "ffn": experts["ffn_hidden_size"]}
    return uniform(c, attention({**c, "num_key_value_heads": heads["kv_n_heads"]}), routed) | {
        "hidden": c["hidden_size"], "norm": "layernorm-nobias"}


def gpt_oss(c: Config) -> Entry:
    """gpt-oss: windowed and full layers in turn, sinks, biases everywhere."""
    c = {"num_experts_per_tok": c.get("experts_per_token"), **c}
    entry = uniform(c, attention(c, bias="qkvo", sinks=True),
                    mixture(c, "num_local_experts", bias=True, router_bias=True))
    return windowed(entry, in_turn(c, 2), c["sliding_window"])


def glm4_moe(c: Config) -> Entry:
    """GLM-4.5 to 4.7."""
    heads = attention(c, bias="qkv" if c.get("attention_bias") else "none", qk_norm=bool(c.get("use_qk_norm")))
    return _mixed(c, heads, routed(c) | {"correction_bias": True})


def dots1(c: Config) -> Entry:
    """dots.llm1: as DeepSeek's mixtures, with attention in groups and norms on queries and keys."""
    return _mixed(c, attention(c, qk_norm=True), routed(c) | {"correction_bias": True})


def deepseek_v1(c: Config) -> Entry:
    """DeepSeekMoE 16B: attention in groups."""
    return _mixed(c, attention(c), routed(c) | {"correction_bias": False})


def minimax_m2(c: Config) -> Entry:
    """MiniMax M2."""
    heads = attention(c, qk_norm="full" if c.get("use_qk_norm", True) else False)
    return uniform(c, heads, mixture(c, "num_local_experts", correction_bias=True))


def minimax_m3(c: Config) -> Entry:
    """MiniMax M3: dense layers that attend to everything, then a mixture whose indexer picks blocks of tokens."""
    sparse = c.get("sparse_attention_config") or {}
    indexer = {"heads": sparse.get("sparse_num_index_heads") or c.get("index_n_heads", 4),
               "head_dim": sparse.get("sparse_index_dim") or c.get("index_head_dim", 128),
               "top": (sparse.get("sparse_topk_blocks") or c.get("index_topk_blocks", 16))
               * (sparse.get("sparse_block_size") or c.get("index_block_size", 128))}
    picks = sparse.get("sparse_attention_freq") or [
        int(kind != "full_attention") for kind in c.get("layer_types") or [""] * c["num_hidden_layers"]]
    full = attention(c, qk_norm=True)
    routed = mixture(c, "num_local_experts", shared_experts=c.get("n_shared_experts") or 1, correction_bias=True,
                     shared_ffn=c.get("shared_intermediate_size", c["intermediate_size"]))
    dense = gated(c, ffn=c.get("dense_intermediate_size", 12288))
    return several(c, [{"attention": full | ({"indexer": indexer} if picked else {}), "mlp": routed if is_sparse else
                        dense} for picked, is_sparse in zip(picks, sparse_layers(c), strict=True)])


def deepseek(c: Config) -> Entry:
    """DeepSeek V2, V3 and V3.2, Kimi K2, GLM-5: latent attention, leading dense layers, shared experts."""
    mixer, shares = latent(c), c.get("indexer_types")
    if not shares or "shared" not in shares:
        return _mixed(c, mixer, routed(c))
    shared = mixer | {"indexer": mixer["indexer"] | {"shared": True}}
    return several(c, [{"attention": shared if kind == "shared" else mixer,
                        "mlp": routed(c) if is_sparse else gated(c)}
                       for kind, is_sparse in zip(shares, sparse_layers(c), strict=True)])


def deepseek_v4(c: Config) -> Entry:
    """DeepSeek V4: compressed sparse attention, and residual streams that every part of a layer joins and mixes."""
    streams, hidden = c.get("hc_mult", 4), c["hidden_size"]
    mixed = (2 + streams) * streams
    ratios = c.get("compress_ratios") or [128 if i < 2 or i % 2 == 0 else 4 for i in range(c["num_hidden_layers"])]
    names = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
    ratios = [names[kind] for kind in c.get("layer_types") or []] or ratios
    base = {"kind": "csa", "heads": c["num_attention_heads"], "head_dim": c["head_dim"],
            "q_lora_rank": c["q_lora_rank"], "o_groups": c["o_groups"], "o_lora_rank": c["o_lora_rank"],
            "window": c["sliding_window"]}
    indexer = {"heads": c["index_n_heads"], "head_dim": c["index_head_dim"], "top": c["index_topk"]}
    hashed = c.get("num_hash_layers", 3)
    layers: list[Entry] = []
    for place, ratio in enumerate(ratios[:c["num_hidden_layers"]]):
        heads = base | ({"ratio": ratio} if ratio else {}) | ({"indexer": indexer} if ratio == 4 else {})
        layers.append({"attention": heads, "mlp": routed(c) | {"correction_bias": place >= hashed},
                       "products": [(streams * hidden, mixed)] * 2, "vectors": 2 * (mixed + 3)})
    joined = streams * streams * hidden + streams + 1
    return several(c, layers) | {"output_parameters": joined}


def llama4(c: Config) -> Entry:
    """Llama 4, text part: chunked layers with a full one in every four, experts in all or every second layer."""
    step, every = c.get("interleave_moe_layer_step", 1), c.get("no_rope_layer_interval", 4)
    near, full = attention(c, chunk=c.get("attention_chunk_size", 8192)), attention(c)
    dense = {"kind": "gated", "ffn": c.get("intermediate_size_mlp") or c["intermediate_size"]}
    routed = mixture(c, "num_local_experts", shared_experts=1)
    return several(c, [{"attention": near if layer % every else full, "mlp": dense if layer % step else routed}
                       for layer in range(1, c["num_hidden_layers"] + 1)])


def gemma4(c: Config) -> Entry:
    """Gemma 4, text part: wider heads in full layers, experts beside a dense feed-forward, tables of each layer."""
    c = {"tie_word_embeddings": True, **c}
    layers, hidden, per_layer = c["num_hidden_layers"], c["hidden_size"], c.get("hidden_size_per_layer_input", 256)
    equal = bool(c.get("attention_k_eq_v"))
    near = attention(c, qk_norm=True, window=c.get("sliding_window", 512))
    full = attention({**c, "head_dim": c.get("global_head_dim") or 512, "num_key_value_heads": (
        equal and c.get("num_global_key_value_heads")) or c["num_key_value_heads"]}, qk_norm=True,
        value_projection=not equal)
    owned = layers - (c.get("num_kv_shared_layers") or 0)
    block: Entry = {"norms": 4}
    if c.get("enable_moe_block"):
        # the dense feed-forward beside the experts; scales of the router and of every expert
        block = {"norms": 7, "vectors": hidden + c["num_experts"], "mlp": {
            "kind": "moe", "experts": c["num_experts"], "experts_per_token": c["top_k_experts"],
            "ffn": c["moe_intermediate_size"], "shared_experts": 1, "shared_ffn": c["intermediate_size"]}}
    if per_layer:
        block |= {"norms": block["norms"] + 1, "products": [(hidden, per_layer), (per_layer, hidden)]}
    blocks: list[Entry] = []
    for place, kind in enumerate(in_turn(c, 6)):
        borrows = place >= owned
        heads = (near if "sliding" in kind else full) | ({"borrowed": True} if borrows else {})
        wide = 2 if borrows and c.get("use_double_wide_mlp") else 1
        blocks.append({"attention": heads, "mlp": gated(c, ffn=wide * c["intermediate_size"])} | block)
    rows = (c.get("vocab_size_per_layer_input") or c["vocab_size"]) + hidden
    return several(c, blocks) | {"input_parameters": (rows * layers + 1) * per_layer if per_layer else 0}


def ernie4_5_moe(c: Config) -> Entry:
    """Ernie 4.5, mixtures."""
    c = {"tie_word_embeddings": True, **c}
    first, layers = c.get("moe_layer_start_index", 1), c["num_hidden_layers"]
    every, bias = c.get("moe_layer_interval", 1), "qkvo" if c.get("use_bias") else "none"
    routed = {"kind": "moe", "experts": c["moe_num_experts"], "experts_per_token": c["moe_k"],
              "ffn": c["moe_intermediate_size"], "shared_experts": c.get("moe_num_shared_experts") or 0,
              "correction_bias": True}
    return _mixed({**c, "mlp_layer_types": [
        "sparse" if first <= i and (i + 1) % every == 0 else "dense" for i in range(layers)]},
        attention(c, bias=bias), routed)


def hunyuan_moe(c: Config) -> Entry:
    """Hunyuan, mixtures, whose numbers of experts may be listed for every layer."""
    def first(key: str, usual: int) -> int:
        value = c.get(key) or usual
        if isinstance(value, list) and len(set(value)) > 1:
            raise ValueError(f"{key} differs between layers")
        return int(value[0] if isinstance(value, list) else value)

    routed = {"kind": "moe", "experts": first("num_experts", 1), "experts_per_token": first("moe_topk", 1),
              "ffn": first("moe_intermediate_size", c["intermediate_size"]), "shared_experts": 1,
              "shared_ffn": c["intermediate_size"] * first("num_shared_expert", 1)}
    return uniform(c, attention(c, qk_norm=True), routed)


def mimo_v2_flash(c: Config) -> Entry:
    """MiMo-V2-Flash: windowed layers with sinks beside full ones, dense layers ahead of a mixture.

    Transformers leaves the widths of windowed layers out: they have twice the key-value heads.
    """
    full = attention(c, v_head_dim=c["v_head_dim"], sinks=bool(c.get("add_full_attention_sink_bias")))
    near = {"heads": c.get("swa_num_attention_heads") or full["heads"],
            "kv_heads": c.get("swa_num_key_value_heads") or 2 * full["kv_heads"],
            "head_dim": c.get("swa_head_dim") or full["head_dim"],
            "v_head_dim": c.get("swa_v_head_dim") or c["v_head_dim"],
            "window": c.get("sliding_window") or c["sliding_window_size"],
            "sinks": bool(c.get("add_swa_attention_sink_bias", True))}
    windows = c.get("hybrid_layer_pattern") or ["sliding" in kind for kind in c["layer_types"]]
    return several(c, [{"attention": near if is_near else full, "mlp": routed(c) if is_sparse else gated(c)}
                       for is_near, is_sparse in zip(windows, sparse_layers(c), strict=True)])


def step3p7(c: Config) -> Entry:
    """Step 3.7 Flash, of which the config does not say whether windowed layers have more heads."""
    routed = mixture(c, "num_experts", "moe_intermediate_size", shared_experts=c.get("n_shared_experts", 1),
                     shared_ffn=c["share_expert_dim"], correction_bias=bool(c.get("use_moe_router_bias")))
    near = attention(c, window=c["sliding_window"])
    return several(c, [{"attention": near if "sliding" in kind else attention(c),
                        "mlp": routed if is_sparse else gated(c)}
                       for kind, is_sparse in zip(c["layer_types"], sparse_layers(c), strict=False)])
