"""How Hugging Face configs of 2026 spell layers with gates, several residual streams, or widths of their own."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalog.importers.hf_mixtures import routed, sparse_layers
from planner.catalog.importers.hf_parts import (
    Config,
    Entry,
    attention,
    gated,
    in_turn,
    latent,
    mixed_layers,
    of_layers,
    several,
)


def _conditioned(c: Config) -> int:
    """Return the numbers that hyper-connections mix the streams by: each to each, in and out."""
    streams = c.get("hc_mult", 4)
    return int((2 + streams) * streams)


def _joined(c: Config, mixed: int, scales: int) -> Entry:
    """Return the products and vectors of a layer whose two parts read and write several residual streams."""
    width = c.get("hc_mult", 4) * c["hidden_size"]
    return {"products": [(width, mixed)] * 2, "vectors": 2 * (mixed + scales)}


def _added(*parts: Mapping[str, object]) -> Entry:
    """Return a layer of several parts, whose products and vectors add up."""
    products = [one for part in parts for one in part.get("products", ())]  # type: ignore[attr-defined]
    vectors = sum(part.get("vectors", 0) for part in parts)  # type: ignore[misc]
    return {key: value for part in parts for key, value in part.items()} | {"products": products, "vectors": vectors}


def axk2(c: Config) -> Entry:
    """A.X K2: sparse latent attention, an output gate beside the queries, and norms behind a narrow gate."""
    heads, rank, narrow = latent(c), c["q_lora_rank"], (c["hidden_size"], c["gated_norm_rank"])
    # queries and gate come from both halves of a vector of twice the rank
    gate = (rank, heads["heads"] * (heads["qk_nope"] + heads["qk_rope"] + 2 * heads["v_head"]))
    return several(c, [{"attention": heads, "mlp": routed(c) if is_sparse else gated(c),
                        "products": [gate] + [narrow, narrow[::-1]] * (2 if is_sparse else 1)}
                       for is_sparse in sparse_layers(c)])


def beam(c: Config) -> Entry:
    """Beam: gated attention, five layers of six windowed, four norms, no shared expert."""
    return mixed_layers(c, attention(c, qk_norm=True, gate=True), in_turn(c, 6), c.get("sliding_window"), [
        routed(c) if is_sparse else gated(c) for is_sparse in sparse_layers(c)], norms=4,
        vectors=c["num_attention_heads"])


def hy_v4(c: Config) -> Entry:
    """Hunyuan 4: gated latent attention with sinks, an indexer that later layers share, several residual streams."""
    streams, hidden = c.get("hc_mult", 4), c["hidden_size"]
    heads = latent(c)
    gate: Entry = {"products": [(hidden, heads["heads"] * heads["v_head"])], "vectors": heads["heads"]}
    shared = heads | {"indexer": heads["indexer"] | {"shared": True}}
    kinds = c.get("indexer_types") or ["full"] * c["num_hidden_layers"]
    layers = [_added({"attention": shared if kind == "shared" else heads, "mlp": routed(c) if is_sparse else gated(c)},
                     gate, _joined(c, 2 * streams, 2))
              for kind, is_sparse in zip(kinds, sparse_layers(c), strict=True)]
    return several(c, layers) | {"output_parameters": streams * (streams * hidden + 1) + 1}


def dots3_note(c: Config) -> Entry:
    """dots 3 note: latent attention with a gate a head, of other widths and windowed in three layers of four."""
    names = ("num_attention_heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim")
    near = {name: c[f"swa_{name}"] for name in names if c.get(f"swa_{name}")}
    kinds = c.get("layer_types") or ["full" if i < 2 or i % 4 == 1 else "sliding_attention"
                                     for i in range(c["num_hidden_layers"])]
    layers: list[Entry] = []
    c = {"n_shared_experts": 1, **c, "shared_width": c.get("shared_experts_intermediate_size")
         or c.get("moe_shared_expert_intermediate_size")}
    for own, kind, is_sparse in zip(of_layers(c), kinds, sparse_layers(c), strict=True):
        heads = latent({**own, **near} if "sliding" in kind else own)
        if "sliding" in kind:
            heads.pop("indexer", None)
        layers.append({"attention": heads, "mlp": routed(c) if is_sparse else gated(c),
                       "products": [(c["hidden_size"], heads["heads"])], "vectors": heads["qk_rope"]})
    return several(c, layers) | {"note": "windowed latent layers are costed as full ones: an upper bound"}


def inkling(c: Config) -> Entry:
    """Inkling: relative positions from a product of their own, short convolutions on keys, values and both parts."""
    hidden, taps = c["hidden_size"], c.get("conv_kernel_size") or c.get("sconv_kernel_size") or 4
    count, local = c["num_hidden_layers"], c.get("local_layer_ids")
    kinds = c.get("layer_types") or [
        "hybrid_sliding" if (i in local if local is not None else (i + 1) % 6) else "hybrid" for i in range(count)]
    if c.get("dense_intermediate_size"):
        # then the other width is that of an expert
        c = {**c, "moe_intermediate_size": c["intermediate_size"], "intermediate_size": c["dense_intermediate_size"]}
    c = {"first_k_dense_replace": c.get("dense_mlp_idx") or 0, "n_shared_experts": 2, **c}
    # one row of the router for each shared expert, and a scale
    chosen: Entry = {"mlp": routed(c), "products": [(hidden, c["n_shared_experts"])], "vectors": 1}
    near = {**c, **{name: c.get(f"swa_{name}") or c[name]
                    for name in ("num_attention_heads", "num_key_value_heads", "head_dim")}}
    layers: list[Entry] = []
    for kind, is_sparse in zip(kinds, sparse_layers(c), strict=True):
        slides = "sliding" in kind
        window = c.get("sliding_window_size") or c.get("sliding_window") if slides else None
        heads = attention(near if slides else c, qk_norm=True, window=window)
        reach = window or c.get("rel_extent", 1024)
        rank = c.get("d_rel", 16)
        taken = taps * 2 * (heads["kv_heads"] * heads["head_dim"] + hidden) + rank * reach
        layers.append(_added({"attention": heads, "products": [(hidden, heads["heads"] * rank)], "vectors": taken},
                             chosen if is_sparse else {"mlp": gated(c)}))
    return several(c, layers) | {"positions": "none", "embedding_norm": True}


def qwen4_exp(c: Config) -> Entry:
    """Qwen 3.8 Flash Next: gated delta rule layers and indexed attention over several streams, tables of n-grams."""
    streams, hidden, rank = c.get("hc_count", 4), c["hidden_size"], c["hc_lowrank"]
    wide = streams * hidden
    # each part of a layer: a norm of all streams, their mix into one, and what it gives back to each
    mix: Entry = {"products": [(wide, rank), (rank, wide), (wide, streams)] * 2, "vectors": 2 * wide, "norms": 0}
    linear = {"recurrence": {
        "kind": "deltanet", "key_heads": c["linear_num_key_heads"], "value_heads": c["linear_num_value_heads"],
        "key_dim": c["linear_key_head_dim"], "value_dim": c["linear_value_head_dim"],
        "conv": c.get("linear_conv_kernel_dim", 4)}}
    full: Entry = {"attention": attention(c, qk_norm=True, gate=True) | {"indexer": {
        "heads": c["indexer_n_heads"], "head_dim": c["indexer_head_dim"], "top": c["indexer_budget"]}}}
    mlp = routed({**c, "n_shared_experts": 1, "topk_method": "greedy",
                  "shared_width": c["shared_expert_intermediate_size"]}, shared_gate=True)
    every = c.get("full_attention_interval", 4)
    kinds = c.get("layer_types") or ["linear_attention" if (i + 1) % every else "indexed_attention"
                                     for i in range(c["num_hidden_layers"])]
    tables, width = c.get("ple_layer_ids") or [], c.get("ple_embed_dim") or 0
    looked_up: Entry = {"products": [(width, wide), (width, hidden)],
                        "vectors": (3 + c.get("ple_conv_kernel_size", 4)) * wide}
    layers = [_added(mix, linear if "linear" in kind else full, looked_up if place in tables else {}, {"mlp": mlp})
              for place, kind in enumerate(kinds, 1)]
    # the final norm is of all streams, with their last mix
    return several(c, layers) | {
        "output_parameters": 2 * wide * rank + wide - hidden, "input_parameters": _ngrams(c, len(tables), width)}


def _ngrams(c: Config, tables: int, width: int) -> int:
    """Return the parameters of tables of hashed n-grams: each head has the next prime number of rows."""
    heads = (c.get("ngram_size", 3) - 1) * c.get("heads_per_ngram", 8)
    whole = c.get("make_ngram_vocab_size_divisible_by", 128)
    size, total = (c.get("ngram_vocab_size_base") or 0) - 1, 0
    for _ in range(tables):
        rows = 0
        for _ in range(heads):
            size += 1
            while any(size % factor == 0 for factor in range(2, int(size**0.5) + 1)):
                size += 1
            rows += size
        total += -(-rows // whole) * whole * (width // heads)
    return total


def gemma4_unified(c: Config) -> Entry:
    """Gemma 4 12B: as Gemma 4's text part, without tables of each layer or experts."""
    equal = bool(c.get("attention_k_eq_v"))
    wide = {"head_dim": c.get("global_head_dim") or 512, "num_key_value_heads": (
        equal and c.get("num_global_key_value_heads")) or c["num_key_value_heads"]}
    layers: list[Entry] = []
    for own, kind in zip(of_layers(c), in_turn(c, 6), strict=True):
        near = "sliding" in kind
        full = {**c, **wide} if own is c else own
        heads = (attention(own, qk_norm=True, window=c.get("sliding_window")) if near else
                 attention(full, qk_norm=True, value_projection=not equal))
        layers.append({"attention": heads, "mlp": gated(c), "norms": 4})
    return several({"tie_word_embeddings": True, **c}, layers)


def glm5_next(c: Config) -> Entry:
    """GLM-5 Next: Kimi delta attention, latent attention behind an indexer in every fourth layer, residual streams."""
    heads = latent(c)
    linear: Entry = {"recurrence": {"kind": "kda", "heads": c["linear_num_heads"], "head_dim": c["linear_head_dim"],
                                    "conv": c.get("linear_conv_kernel_dim", 4)}}
    # the indexer pools runs of keys by a learned gate
    width, pooled = c["index_head_dim"], c.get("index_kpool") or 0
    full: Entry = {"attention": heads} | (
        {"products": [(c["hidden_size"], width)], "vectors": pooled * width} if pooled else {})
    lead = {} if c.get("mlp_layer_types") else {"first_k_dense_replace": c.get("first_k_dense_replace", 3)}
    return several(c, [_added(linear if "linear" in kind else full, {"mlp": routed(c) if is_sparse else gated(c)},
                              _joined(c, _conditioned(c), 3))
                       for kind, is_sparse in zip(c["layer_types"], sparse_layers({**c, **lead}), strict=True)])


def mistral_large4(c: Config) -> Entry:
    """Mistral Large 4: latent attention behind an indexer that reads the layer's input, every fourth without positions.

    Learned scales of scores in attention and indexer, and a norm with a shift ahead of the indexer.
    """
    turns = c.get("no_rope_layers") or [1] * c["num_hidden_layers"]
    layers: list[Entry] = []
    for rotates, is_sparse in zip(turns, sparse_layers(c), strict=True):
        heads = latent({"q_lora_rank": None, **c})
        if not rotates:
            heads |= {"qk_nope": heads["qk_nope"] + heads["qk_rope"], "qk_rope": 0}
        layers.append({"attention": heads, "mlp": routed({**c, "topk_method": "greedy"}) if is_sparse else gated(c),
                       "vectors": 2 * (c["num_attention_heads"] + c["index_n_heads"] + c["hidden_size"])})
    return several(c, layers)


def muse_glimmer(c: Config) -> Entry:
    """Muse Glimmer: gated attention, three layers of four windowed, four norms."""
    layers = in_turn(c, 4)
    return mixed_layers(c, attention(c, gate=True), layers, c.get("sliding_window"), [gated(c)] * len(layers), norms=4)


def muse_spark(c: Config) -> Entry:
    """Muse Spark: gated attention, experts in a narrower space between two norms, gates on the residual stream."""
    mlp = routed({**c, "n_shared_experts": 0}, latent=c["moe_hidden_size"])
    return mixed_layers(c, attention(c, gate=True), in_turn(c, 4), c.get("sliding_window"), [
        mlp if is_sparse else gated(c) for is_sparse in sparse_layers(c)], norms=3,
        vectors=2 * (c["hidden_size"] + c["moe_hidden_size"]))


def ring_linear(c: Config) -> Entry:
    """Ling and Ring 2 Linear: lightning attention with a whole gate, grouped attention in the last layer of a group."""
    hidden, heads, every = c["hidden_size"], c["num_attention_heads"], c.get("layer_group_size", 4)
    width, count = c.get("head_dim") or hidden // heads, c["num_hidden_layers"]
    norms = bool(c.get("use_qk_norm", True))
    # queries, keys, values and gate as wide as attention; a decay that is not learned; norms on q, k and the output
    linear: Entry = {"recurrence": {"kind": "channels", "inner": heads * width, "inputs": 4, "state": width},
                     "vectors": 2 * width * norms + heads * width}
    full: Entry = {"attention": attention(c, qk_norm=norms, bias="qkv" if c.get("use_qkv_bias") else "none")}
    grouped = count // every * every
    c = {**c, "topk_method": "noaux_tc" if c.get("moe_router_enable_expert_bias") else "greedy"}
    attends = [(place + 1) % every == 0 or place >= grouped for place in range(count)]
    return several(c, [(full if is_full else linear) | {"mlp": routed(c) if is_sparse else gated(c)}
                       for is_full, is_sparse in zip(attends, sparse_layers(c), strict=True)])
