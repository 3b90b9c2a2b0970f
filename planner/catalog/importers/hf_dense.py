"""How Hugging Face configs spell dense transformers. Defaults are those of the family's config class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.catalog.importers.hf_parts import Config, Entry, attention, gated, in_turn, one, usual, windowed


@dataclass(frozen=True, slots=True)
class If:
    """What a switch of the config decides: `then` where it is on, else `otherwise`."""

    key: str
    then: object
    otherwise: object = False
    default: bool = False

    def of(self, c: Config) -> object:
        """Return what this config says."""
        return self.then if c.get(self.key, self.default) else self.otherwise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dense:
    """A family of equal layers: what it has that Llama has not. An `If` stands for what a key of the config decides."""

    defaults: Config = field(default_factory=dict)
    old_names: bool = False
    """Whether older names of the usual keys are read too."""
    bias: str | If = "none"
    qk_norm: str | bool | If = False
    window: bool | str = False
    """Whether every layer keeps to `sliding_window`; or the switch that says so."""
    full_every: int | None = None
    """Where the other layers are windowed: so many-th layers see everything."""
    mlp: Mapping[str, object] = field(default_factory=dict)
    layer: Mapping[str, object] = field(default_factory=dict)
    model: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, c: Config) -> Entry:
        """Return the entry of a config. Raises KeyError with a key that it lacks."""
        c = {**self.defaults, **(usual(c) if self.old_names else c)}
        heads = attention(c, **_decided({"bias": self.bias, "qk_norm": self.qk_norm}, c))
        if self.window is True or (self.window and c.get(self.window)):
            heads["window"] = c.get("sliding_window")
        entry = one(c, heads, gated(c, **_decided(self.mlp, c)), **_decided(self.layer, c)) | {
            "vocab": c.get("vocab_size"), **self.model}
        if self.full_every is None:
            return entry
        return windowed(entry, in_turn(c, c.get("sliding_window_pattern") or self.full_every),
                        c.get("sliding_window", 4096))


def _decided(given: Mapping[str, object], c: Config) -> dict[str, object]:
    return {key: value.of(c) if isinstance(value, If) else value for key, value in given.items()}


ALL, QKV = If("attention_bias", "qkvo", "none"), If("attention_bias", "qkv", "none")
TIED, PLAIN, LAYERNORM = {"tie_word_embeddings": True}, {"kind": "plain"}, {"norm": "layernorm"}
llama = Dense(old_names=True, bias=ALL)
"""Llama 1 to 3 and all that is shaped alike: Code Llama, Yi, DeepSeek LLM, Granite, SmolLM3 with its default."""
mistral = Dense(defaults={"num_key_value_heads": 8}, window=True)
"""With the eight key-value heads of its config class."""
phi3 = Dense(window=True)
"""Phi-3 and Phi-4, whose products are fused but as large."""
qwen2 = Dense(bias="qkv", window="use_sliding_window")
qwen3 = Dense(qk_norm=True, bias=ALL)
olmo = replace(llama, model={"norm": "unscaled"})
olmo2 = Dense(qk_norm="full")
olmo3 = replace(olmo2, full_every=4)
internlm2 = Dense(bias=If("bias", "qkvo", "none"))
glm = Dense(bias=QKV)
"""GLM-4 as Transformers spells it."""
glm4 = replace(glm, layer={"norms": 4})
"""GLM-4-0414, with norms behind attention and feed-forward too."""
arcee = Dense(bias=ALL, mlp=PLAIN)
"""Squared ReLU without a gate."""
apertus = Dense(qk_norm=True, mlp=PLAIN, layer={"vectors": 2})
"""Its activation has two parameters of its own."""
gemma = Dense(defaults=TIED)
gemma2 = Dense(defaults=TIED, layer={"norms": 4}, full_every=2)
gemma3 = replace(gemma2, qk_norm=True, full_every=6, defaults={
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, **TIED})
nemotron = replace(arcee, model=LAYERNORM)
"""Nemotron-4 and Minitron."""
starcoder2 = Dense(defaults=TIED, bias=If("use_bias", "qkvo", "none", default=True), window=True,
                   mlp={**PLAIN, "bias": If("use_bias", True, default=True)}, model=LAYERNORM)
stablelm = Dense(bias=If("use_qkv_bias", "qkv", "none"), qk_norm=If("qk_layernorm", "full"), model=LAYERNORM,
                 layer={"parallel": If("use_parallel_residual", True), "norms": If("use_parallel_residual", 1, 2)})
cohere = Dense(defaults=TIED, bias=ALL, qk_norm=If("use_qk_norm", "full"), layer={"parallel": True, "norms": 1},
               model={"norm": "layernorm-nobias"})
"""Command R."""
cohere2 = replace(cohere, full_every=4)
"""Command R7B and Command A."""
gpt_neox = Dense(bias=If("attention_bias", "qkvo", "none", default=True), mlp={**PLAIN, "bias": True}, model=LAYERNORM,
                 layer={"parallel": If("use_parallel_residual", True, default=True), "norms": 2})
"""GPT-NeoX and Pythia."""


def tied_llama(c: Config) -> Entry:
    """The same with one table for both ends unless the config says otherwise: SmolLM3, MiniCPM, Ernie 4.5."""
    bias = bool(c.get("use_bias"))
    return llama({"tie_word_embeddings": True, "attention_bias": bias, "mlp_bias": bias, **c})


def seed_oss(c: Config) -> Entry:
    """Seed-OSS: biases on queries, keys and values, and with attention_out_bias on the output."""
    bias = "none" if not c.get("attention_bias", True) else "qkvo" if c.get("attention_out_bias") else "qkv"
    return one(c, attention(c, bias=bias), gated(c))


def exaone4(c: Config) -> Entry:
    """EXAONE 4: norms behind the layers' parts, and windowed layers in the larger model."""
    entry, pattern, window = qwen3(c), c.get("sliding_window_pattern"), c.get("sliding_window")
    every = len(pattern) if isinstance(pattern, str) else pattern or 4
    return windowed(entry, in_turn(c, every), window) if window else entry


def bitnet(c: Config) -> Entry:
    """BitNet: norms inside attention and feed-forward, ahead of the last product of each."""
    inner = c["hidden_size"] + c["intermediate_size"]
    return one({"tie_word_embeddings": True, **c}, attention(c), gated(c), vectors=inner)


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
