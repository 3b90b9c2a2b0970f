"""How Hugging Face configs spell mixtures of experts that differ in few parts: gates, norms, windows, shared ones."""

from __future__ import annotations

from planner.catalog.importers.hf_mixtures import routed, sparse_layers
from planner.catalog.importers.hf_parts import (
    Config,
    Entry,
    attention,
    gated,
    in_turn,
    latent,
    mixed_layers,
    mixture,
    several,
    uniform,
    usual,
)


def afmoe(c: Config) -> Entry:
    """Trinity: gated attention, three layers of four windowed, four norms."""
    return _windowed(c, attention(c, qk_norm=True, gate=True), c.get("global_attn_every_n_layers", 4), norms=4)


def exaone_moe(c: Config) -> Entry:
    """K-EXAONE: windowed layers by a number or a pattern of letters."""
    pattern = c.get("sliding_window_pattern") or 4
    return _windowed(c, attention(c, qk_norm=True), len(pattern) if isinstance(pattern, str) else pattern)


def hy_v3(c: Config) -> Entry:
    """Hunyuan 3: a dense layer first, norms on queries and keys."""
    listed = {} if c.get("mlp_layer_types") else {"first_k_dense_replace": c.get("first_k_dense_replace", 1)}
    return _windowed({**c, **listed}, attention(c, qk_norm=True))


def solar_open(c: Config) -> Entry:
    """Solar Open: as GLM-4.5 without norms on queries and keys."""
    return _windowed(c, attention(c, qk_norm=bool(c.get("use_qk_norm"))))


def mellum(c: Config) -> Entry:
    """Mellum 2: as Qwen 3's mixtures, with windowed layers where the config lists them."""
    return _windowed({"n_shared_experts": 0, **c, "topk_method": "greedy"}, attention(c, qk_norm=True))


def cohere2_moe(c: Config) -> Entry:
    """Command A+: attention and mixture in parallel behind one norm, three layers of four windowed."""
    c = {"tie_word_embeddings": True, "moe_intermediate_size": c["intermediate_size"], **c, "topk_method": "greedy"}
    heads = attention(c, bias="qkvo" if c.get("attention_bias") else "none")
    return _windowed(c, heads, c.get("sliding_window_pattern", 4), parallel=True, norms=1) | {
        "norm": "layernorm-nobias"}


def flex_olmo(c: Config) -> Entry:
    """FlexOlmo: experts as wide as OLMo 2's feed-forward."""
    c = {**c, "moe_intermediate_size": c["intermediate_size"], "topk_method": "greedy"}
    return _windowed(c, attention(c, qk_norm="full"))


def aria(c: Config) -> Entry:
    """Aria, text part."""
    return _windowed({**c, "moe_intermediate_size": c["intermediate_size"], "topk_method": "greedy"}, attention(c))


def axk1(c: Config) -> Entry:
    """A.X K1: latent attention, and a norm behind each mixture."""
    listed = {} if c.get("mlp_layer_types") else {"first_k_dense_replace": c.get("first_k_dense_replace", 1)}
    return several(c, [{"attention": latent(c)} | ({"mlp": routed(c), "norms": 3} if is_sparse else {"mlp": gated(c)})
                       for is_sparse in sparse_layers({**c, **listed})])


def bailing_moe(c: Config) -> Entry:
    """Ling 1, 1.5 and 2: biases and norms of attention as the config says, shared experts as wide as routed ones."""
    c = {**c, "topk_method": "noaux_tc" if c.get("moe_router_enable_expert_bias") else "greedy"}
    bias = "qkvo" if c.get("use_bias") else "qkv" if c.get("use_qkv_bias") else "none"
    return _windowed(c, attention(c, bias=bias, qk_norm=bool(c.get("use_qk_norm"))))


def granitemoe_swa(c: Config) -> Entry:
    """Granite mixtures with windowed layers and sinks."""
    c = {**c, "moe_intermediate_size": c["intermediate_size"], "topk_method": "greedy"}
    return _windowed(c, attention(c, sinks=True, bias="qkvo" if c.get("attention_bias") else "none"), 4)


def laguna(c: Config) -> Entry:
    """Laguna: heads of each layer as listed, with a gate on each, dense layers where the config lists them."""
    c = {"n_shared_experts": 1, "shared_width": c["shared_expert_intermediate_size"], **c}
    heads = c.get("num_attention_heads_per_layer") or [c["num_attention_heads"]] * c["num_hidden_layers"]
    return several(c, [
        {"attention": attention({**c, "num_attention_heads": count, "head_dim": c["head_dim"]}, qk_norm=True,
                                window=c.get("sliding_window") if "sliding" in kind else None),
         "mlp": routed(c) if is_sparse else gated(c), "products": [(c["hidden_size"], count)] * bool(c.get("gating"))}
        for count, kind, is_sparse in zip(heads, in_turn(c, 1), sparse_layers(c), strict=True)])


def longcat_flash(c: Config) -> Entry:
    """LongCat-Flash: each layer attends twice, and its mixture stands beside the second feed-forward.

    Experts that return what they are given take part in the choice and cost nothing: a token meets on average as many
    real ones as they are of all.
    """
    c = {"hidden_act": "silu", **c}
    real, idle, wide = c["n_routed_experts"], c.get("zero_expert_num") or 0, c["ffn_hidden_size"]
    chosen = max(1, round(c["moe_topk"] * real / (real + idle)))
    mix = {"kind": "moe", "experts": real, "experts_per_token": chosen, "ffn": c["expert_ffn_hidden_size"],
           "shared_experts": 1, "shared_ffn": wide, "correction_bias": True}
    first: Entry = {"attention": latent(c), "mlp": {"kind": "gated", "ffn": wide}}
    second: Entry = {"attention": latent(c), "mlp": mix, "products": [(c["hidden_size"], idle)] if idle else []}
    layers = c.get("num_layers") or c["num_hidden_layers"] // 2
    return several(c, [first, second] * layers) | {
        "note": "each layer is two here; of the experts chosen, those that do nothing are left out on average"}


def minimax(c: Config) -> Entry:
    """MiniMax-Text-01 and M1: linear attention, with softmax attention in every eighth layer, or as listed."""
    width = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    linear = {"kind": "deltanet", "key_heads": c["num_attention_heads"], "value_heads": c["num_attention_heads"],
              "key_dim": width, "value_dim": width, "conv": 1}
    listed = c.get("attn_type_list") or [int(kind != "linear_attention") for kind in c["layer_types"]]
    mix = routed({**c, "moe_intermediate_size": c["intermediate_size"], "topk_method": "greedy"})
    return several(c, [{"mlp": mix} | ({"attention": attention(c)} if attends else {"recurrence": linear})
                       for attends in listed])


def step3p5(c: Config) -> Entry:
    """Step 3.5 Flash: more heads in windowed layers, a gate on each head, dense layers ahead of a mixture."""
    c = usual({**c, "num_key_value_heads": c.get("num_attention_groups"), "shared_width": c["share_expert_dim"],
               "n_shared_experts": 1})
    other = c.get("attention_other_setting") or {}
    near = {**c, "num_attention_heads": other.get("num_attention_heads", c["num_attention_heads"]),
            "num_key_value_heads": other.get("num_attention_groups", c["num_key_value_heads"])}
    places = {int(place) for place in str(c["moe_layers_enum"]).split(",")}
    layers: list[Entry] = []
    for place, kind in enumerate(in_turn(c, 4)[:c["num_hidden_layers"]]):
        slides = "sliding" in kind
        heads = attention(near if slides else c, qk_norm=True, window=c["sliding_window"] if slides else None)
        gates = [(c["hidden_size"], heads["heads"])] if c.get("use_head_wise_attn_gate") else []
        layers.append({"attention": heads, "mlp": routed(c) if place in places else gated(c), "products": gates})
    return several(c, layers)


def step3(c: Config) -> Entry:
    """Step3: queries of a rank, one key-value head, dense layers ahead of and behind a mixture."""
    c = usual({"head_dim": 256, **c, "num_key_value_heads": c.get("num_attention_groups", 1),
               "shared_width": c["share_expert_dim"], "n_shared_experts": 1, "topk_method": "greedy"})
    places = {int(place) for place in str(c["moe_layers_enum"]).split(",")}
    heads = attention(c, query_rank=c["share_q_dim"])
    return several(c, [{"attention": heads, "mlp": routed(c) if place in places else gated(c)}
                       for place in range(c["num_hidden_layers"])])


def arctic(c: Config) -> Entry:
    """Snowflake Arctic: a dense feed-forward as wide as the layers beside every mixture."""
    each = c.get("moe_layer_frequency", 2)
    wide: Entry = {"shared_experts": 1, "shared_ffn": c["hidden_size"]} if c.get("parallel_attn_mlp_res") else {}
    sparse = mixture({"num_experts_per_tok": 2, **c}, "num_local_experts", **wide)
    # the dense part is read through a norm of its own
    mixed: Entry = {"attention": attention(c), "mlp": sparse, "norms": 3 if wide else 2}
    plain: Entry = {"attention": attention(c), "mlp": gated(c)}
    return several(c, [plain if (place + 1) % each else mixed for place in range(c["num_hidden_layers"])])


def grok(c: Config) -> Entry:
    """Grok-1: norms behind attention and mixture too."""
    return uniform({"tie_word_embeddings": True, **c}, attention(c), mixture(c, "num_experts"), norms=4)


def _windowed(c: Config, heads: Entry, full_every: int = 1, **changes: object) -> Entry:
    """Return grouped attention, windowed but in every so many-th layer, and a mixture behind dense layers."""
    return mixed_layers(c, heads, in_turn(c, full_every), c.get("sliding_window"), [
        routed(c) if is_sparse else gated(c) for is_sparse in sparse_layers(c)], **changes)


def flint(c: Config) -> Entry:
    """Flint: sinks, a shared expert of its own width, dense layers first."""
    c = {"n_shared_experts": 1, "shared_width": c["shared_expert_intermediate_size"], **c}
    return _windowed(c, attention(c, qk_norm=True, sinks=True))


def kolibri1(c: Config) -> Entry:
    """Kolibri 1: norms behind attention and mixture too, four layers of five windowed."""
    c = {"n_shared_experts": 1, "shared_width": c["shared_expert_intermediate_size"], **c, "topk_method": "greedy"}
    return _windowed(c, attention(c, qk_norm=True), 5, norms=4)
