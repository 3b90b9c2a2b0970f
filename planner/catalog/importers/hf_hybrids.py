"""How Hugging Face configs spell models with recurrent layers, and what a search left of a transformer's layers."""

from __future__ import annotations

from planner.catalog.importers.hf_mixtures import routed, sparse_layers
from planner.catalog.importers.hf_parts import (
    Config,
    Entry,
    attention,
    gated,
    in_turn,
    latent,
    mixture,
    several,
    uniform,
)


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
    recurrence = _delta(c)
    mlp = gated(c) if not c.get("num_experts") else mixture(
        c, "num_experts", "moe_intermediate_size", shared_experts=1, shared_gate=True,
        shared_ffn=c["shared_expert_intermediate_size"])
    every, layers = c.get("full_attention_interval", 4), range(1, c["num_hidden_layers"] + 1)
    kinds = c.get("layer_types") or ["full_attention" if i % every == 0 else "linear_attention" for i in layers]
    full = attention(c, qk_norm=True, gate=True)
    return several(c, [{"mlp": mlp} | ({"recurrence": recurrence} if kind == "linear_attention" else
                                       {"attention": full}) for kind in kinds])


def _delta(c: Config) -> Entry:
    return {"kind": "deltanet", "key_heads": c["linear_num_key_heads"], "value_heads": c["linear_num_value_heads"],
            "key_dim": c["linear_key_head_dim"], "value_dim": c["linear_value_head_dim"],
            "conv": c.get("linear_conv_kernel_dim", 4)}


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
    recurrence = _mamba2(c)
    shared = c["shared_intermediate_size"]
    mlp = mixture(c, "num_local_experts", shared_experts=1, shared_ffn=shared) if c.get("num_local_experts") else (
        gated(c, ffn=shared))
    kinds = c.get("layer_types") or c["layers_block_type"]
    return several(c, [
        {"mlp": mlp} | ({"attention": attention(c)} if "full_attention".endswith(kind) else {"recurrence": recurrence})
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
    renamed = {new: c.get(old, c.get(new)) for new, old in names.items()}
    routed = mixture({**c, **renamed, "n_routed_experts": renamed["n_routed_experts"] or c["num_local_experts"]},
                     "n_routed_experts", "moe_intermediate_size", shared_experts=renamed["n_shared_experts"] or 1,
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


def _mamba2(c: Config) -> Entry:
    """Return a layer of the second Mamba as Bamba, Granite 4 and Falcon-H1 spell it."""
    inner = c.get("mamba_d_ssm") or c.get("mamba_expand", 2) * c["hidden_size"]
    return {"kind": "mamba2", "heads": c["mamba_n_heads"], "state": c["mamba_d_state"],
            "conv": c.get("mamba_d_conv", 4), "head_dim": inner // c["mamba_n_heads"],
            "groups": c.get("mamba_n_groups", 1)}


def bamba(c: Config) -> Entry:
    """Bamba: Mamba-2, with attention in the layers listed."""
    attends, recurrence = c.get("attn_layer_indices") or [], _mamba2(c)
    return several(c, [{"mlp": gated(c)} | ({"attention": attention(c)} if place in attends else
                                            {"recurrence": recurrence}) for place in range(c["num_hidden_layers"])])


def falcon_h1(c: Config) -> Entry:
    """Falcon-H1, whose layers run attention and Mamba-2 side by side: here one behind the other, as two layers."""
    first: Entry = {"attention": attention(c), "norms": 0}
    second: Entry = {"recurrence": _mamba2(c) | {"normed": bool(c.get("mamba_rms_norm", False))}, "mlp": gated(c),
                     "norms": 2}
    return several(c, [first, second] * c["num_hidden_layers"]) | {
        "note": "attention and state-space part of a layer are two layers here, one behind the other"}


def lfm2(c: Config) -> Entry:
    """LFM2 and LFM2-MoE: gated short convolutions, with attention in the layers listed."""
    c = {"tie_word_embeddings": c.get("tie_embedding", True), **c}
    layers = c["num_hidden_layers"]
    listed = c.get("full_attn_idxs")
    kinds = c.get("layer_types") or [
        "full_attention" if listed is None or place in listed else "conv" for place in range(layers)]
    experts, lead = c.get("num_experts") or 0, c.get("num_dense_layers") or 0
    dense = gated(c, ffn=c["intermediate_size"] if experts else _lfm2_width(c))
    mixed = mixture(c, "num_experts", "moe_intermediate_size",
                    correction_bias=bool(c.get("use_expert_bias"))) if experts else {}
    convolution = {"kind": "channels", "inner": c["hidden_size"], "inputs": 3, "state": 0,
                   "conv": c.get("conv_L_cache", 3)}
    return several(c, [({"recurrence": convolution} if kind == "conv" else {"attention": attention(c, qk_norm=True)})
                       | {"mlp": mixed if experts and place >= lead else dense} for place, kind in enumerate(kinds)])


def _lfm2_width(c: Config) -> int:
    """Return the width of the feed-forward: two thirds of what is stated, in whole multiples."""
    stated = int(c.get("block_ff_dim") or c["intermediate_size"])
    if not c.get("block_auto_adjust_ff_dim", True):
        return stated
    multiple = int(c.get("block_multiple_of", 256))
    return -(-int(c.get("block_ffn_dim_multiplier", 1.0) * int(2 * stated / 3)) // multiple) * multiple


def lfm3(c: Config) -> Entry:
    """LFM3: as LFM2, with windowed layers, a gate on each head and norms behind the parts of a layer."""
    convolution = {"kind": "channels", "inner": c["hidden_size"], "inputs": 3, "state": 0,
                   "conv": c.get("conv_L_cache", 7)}
    norms = 4 if c.get("use_sandwich_norm", True) else 2
    gates = [(c["hidden_size"], c["num_attention_heads"])] if c.get("use_attention_gate", True) else []
    layers: list[Entry] = []
    for kind in c["layer_types"]:
        window = c.get("sliding_window") if "sliding" in kind else None
        mixer = {"recurrence": convolution} if kind == "conv" else {
            "attention": attention(c, qk_norm=True, window=window), "products": gates}
        layers.append({"mlp": gated(c), "norms": norms} | mixer)
    return several({"tie_word_embeddings": True, **c}, layers)


def olmo_hybrid(c: Config) -> Entry:
    """OLMo Hybrid: gated delta rule layers, and OLMo 2's attention in every fourth."""
    full = attention(c, qk_norm="full")
    return several(c, [{"mlp": gated(c)} | ({"recurrence": _delta(c)} if "linear" in kind else {"attention": full})
                       for kind in c["layer_types"]])


def bailing_hybrid(c: Config) -> Entry:
    """Ling 2.6 Hybrid: Kimi delta attention with whole gates, latent attention in every sixth layer."""
    hidden, heads = c["hidden_size"], c.get("linear_num_heads") or c["num_attention_heads"]
    width = c.get("linear_head_dim") or 128
    # the forget gate of every channel, beside what a gated delta rule has
    linear: Entry = {"recurrence": {"kind": "deltanet", "key_heads": heads, "value_heads": heads, "key_dim": width,
                                    "value_dim": width, "conv": c.get("linear_conv_kernel_dim", 4)},
                     "products": [(hidden, heads * width)]}
    full: Entry = {"attention": latent(c), "products": [(hidden, c["num_attention_heads"])]}
    every = c.get("layer_group_size", 6)
    kinds = c.get("layer_types") or ["full" if (place + 1) % every == 0 else "linear"
                                     for place in range(c["num_hidden_layers"])]
    return several(c, [(linear if "linear" in kind else full) | {"mlp": routed(c) if is_sparse else gated(c)}
                       for kind, is_sparse in zip(kinds, sparse_layers(c), strict=True)])


def recurrent_gemma(c: Config) -> Entry:
    """RecurrentGemma: two RG-LRU layers to one of windowed attention; intermediate_size counts both products."""
    hidden, inner = c["hidden_size"], c.get("lru_width") or c["hidden_size"]
    mlp = gated(c, ffn=c["intermediate_size"] // 2, bias=True)
    recurrence = {"kind": "channels", "inner": inner, "inputs": 2, "state": 1, "conv": c.get("conv1d_width", 4),
                  "gate_heads": c["num_attention_heads"]}
    turn: dict[str, Entry] = {
        # biases of the products, the convolution and the gates, and one decay a channel
        "recurrent": {"recurrence": recurrence, "mlp": mlp, "vectors": 6 * inner + hidden},
        "attention": {"attention": attention(c, window=c.get("attention_window_size", 2048)), "mlp": mlp,
                      "vectors": hidden}}
    types = c.get("block_types") or c.get("_block_types") or ["recurrent", "recurrent", "attention"]
    return several({"tie_word_embeddings": True, **c}, [
        turn[types[place % len(types)]] for place in range(c["num_hidden_layers"])])


def rwkv(c: Config) -> Entry:
    """RWKV-4: a weighted mean of values along each channel, and a feed-forward behind a gate."""
    hidden = c["hidden_size"]
    inner, ffn = c.get("attention_hidden_size") or hidden, c.get("intermediate_size") or 4 * hidden
    # two tokens before the present one, and three numbers of the mean
    recurrence = {"kind": "channels", "inner": inner, "inputs": 3, "state": 5}
    return uniform(c, {}, {"kind": "plain", "ffn": ffn}, recurrence=recurrence, products=[(hidden, hidden)],
               vectors=5 * hidden + 2 * inner) | {
        "norm": "layernorm", "positions": "none", "embedding_norm": True}


def xlstm(c: Config) -> Entry:
    """xLSTM 7B: matrix memories with scalar gates a head."""
    hidden, heads, step = c["hidden_size"], c["num_heads"], c.get("ffn_round_up_to_multiple_of", 64)
    recurrence = {"kind": "deltanet", "key_heads": heads, "value_heads": heads, "conv": 1,
                  "key_dim": int(hidden * c.get("qk_dim_factor", 0.5)) // heads,
                  "value_dim": int(hidden * c.get("v_dim_factor", 1.0)) // heads}
    ffn = -(-int(c.get("ffn_proj_factor", 2.667) * hidden) // step) * step
    return uniform({"num_hidden_layers": c.get("num_blocks"), **c}, {}, {"kind": "gated", "ffn": ffn},
               recurrence=recurrence) | {"positions": "none"}


def gemma3n(c: Config) -> Entry:
    """Gemma 3n, text part: four residual streams of which one is computed, and tables of each layer.

    The products that join the streams stand before and behind the layers.
    """
    c = {"tie_word_embeddings": True, **c}
    layers, hidden, per_layer = c["num_hidden_layers"], c["hidden_size"], c.get("hidden_size_per_layer_input", 256)
    streams, rank = c.get("altup_num_inputs", 4), c.get("laurel_rank", 64)
    widths = c["intermediate_size"] if isinstance(c["intermediate_size"], list) else [c["intermediate_size"]] * layers
    owned = layers - c.get("num_kv_shared_layers", 15)
    blocks: list[Entry] = []
    for place, kind in enumerate(in_turn(c, 5)):
        window = c.get("sliding_window", 512) if "sliding" in kind else None
        heads = attention(c, qk_norm=True, window=window) | ({"borrowed": True} if place >= owned else {})
        blocks.append({"attention": heads, "mlp": gated(c, ffn=widths[place]), "norms": 7, "products": [
            (hidden, streams), (hidden, rank), (rank, hidden), (hidden, per_layer), (per_layer, hidden)],
            "vectors": hidden + streams**2 * (streams + 1)})
    rows, joined = (c.get("vocab_size_per_layer_input") or c["vocab_size"]) + hidden, (streams - 1) * hidden**2
    return several(c, blocks) | {"input_parameters": (rows * layers + 1) * per_layer + joined,
                                "output_parameters": joined}
