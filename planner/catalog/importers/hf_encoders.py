"""How Hugging Face configs spell encoders: every token attends to every other, and nothing is generated."""

from __future__ import annotations

from planner.catalog.importers.hf_parts import Config, Entry, attention, gated, uniform, usual, windowed


def bert(c: Config) -> Entry:
    """BERT, MPNet, ELECTRA of one width, and those of RoBERTa's kind, whose positions begin behind the padding's."""
    c = usual(c)
    if c.get("embedding_size", c["hidden_size"]) != c["hidden_size"]:
        raise ValueError("tables narrower than the layers (embedding_size) are not modeled")
    heads = attention(c, bias="qkvo", bidirectional=True)
    mlp = {"kind": "plain", "ffn": c["intermediate_size"], "bias": True}
    hidden = c["hidden_size"]
    # the norm behind the embedding is the one that other models have at the end
    return uniform(c, heads, mlp) | {
        "norm": "layernorm", "tied": True, "positions": "learned",
        "position_rows": c.get("max_position_embeddings", 512),
        "input_parameters": c.get("type_vocab_size", 2) * hidden, "output_parameters": _top(c, hidden)}


def distilbert(c: Config) -> Entry:
    """DistilBERT."""
    c = {"hidden_size": c["dim"], "intermediate_size": c["hidden_dim"], **c}
    # without types of tokens, and without a pooler
    return {"hidden": c["dim"]} | bert(c) | {"input_parameters": 0, "output_parameters": 0}


def jina(c: Config) -> Entry:
    """Jina embeddings 3: RoBERTa with rotary positions."""
    return bert(c) | {"positions": "rope", "position_rows": 0}


def nomic_bert(c: Config) -> Entry:
    """Nomic embeddings: gated, rotary, without biases."""
    c = usual({"intermediate_size": c.get("n_inner"), **c})
    return uniform(c, attention(c, bidirectional=True), gated(c)) | {
        "norm": "layernorm", "tied": True, "input_parameters": c.get("type_vocab_size", 2) * c["hidden_size"]}


def modernbert(c: Config) -> Entry:
    """ModernBERT: every third layer full, the others windowed on both sides."""
    heads = attention(c, bidirectional=True, bias="qkvo" if c.get("attention_bias") else "none")
    kinds = c.get("layer_types") or [
        "sliding" if place % c.get("global_attn_every_n_layers", 3) else "full"
        for place in range(c["num_hidden_layers"])]
    entry = windowed(uniform(c, heads, gated(c)), kinds, c.get("local_attention", 128))
    top = c["hidden_size"] * (c["hidden_size"] + 1) + c["vocab_size"] if _predicts(c) else 0
    return entry | {"norm": "layernorm-nobias", "tied": True, "embedding_norm": True, "output_parameters": top}


def eurobert(c: Config) -> Entry:
    """EuroBERT: Llama's layers, read in both directions."""
    heads = attention(c, bidirectional=True, bias="qkvo" if c.get("attention_bias") else "none")
    return uniform(c, heads, gated(c)) | {"tied": not _predicts(c)}


def xlm_roberta(c: Config) -> Entry:
    """RoBERTa, XLM-RoBERTa and CamemBERT: one type of token."""
    return bert({"type_vocab_size": 1, **c})


def bert_generation(c: Config) -> Entry:
    """BERT that begins a generator: no types of tokens, and no pooler."""
    return bert(c) | {"input_parameters": 0, "output_parameters": 0}


def roformer(c: Config) -> Entry:
    """RoFormer: BERT with rotary positions, and without a pooler."""
    return bert(c) | {"positions": "rope", "position_rows": 0, "output_parameters": 0}


def _predicts(c: Config) -> bool:
    return any("ForMaskedLM" in str(name) for name in c.get("architectures") or [])


def _top(c: Config, hidden: int) -> int:
    """Return what stands on the layers: a product, with norm and bias before the tokens, or the pooler alone."""
    product = hidden * (hidden + 1)
    return product + 2 * hidden + c["vocab_size"] if _predicts(c) else product
