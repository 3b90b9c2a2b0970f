"""Exact parameter counts and FLOPs from a model's blocks.

h hidden, A heads x head_dim, KV kv_heads x head_dim, f feed-forward width, V vocabulary, s sequence length.
Source of the counts: the tensors of the published checkpoints; tests hold them equal to the published totals.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.architecture import Attention, Block, Mlp, Model
from planner.errors import Unsupported


def attention_matrices(attention: Attention, hidden: int) -> int:
    """Return the weights of the query, key, value and output projections of one layer."""
    q, kv = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    return hidden * (2 * q + 2 * kv)


def mlp_matrices(mlp: Mlp, hidden: int) -> int:
    """Return the weights of the feed-forward matrices of one layer."""
    return (3 if mlp.kind == "gated" else 2) * hidden * mlp.ffn


def norm_width(model: Model) -> int:
    """Return the parameters of one normalization: scale, and shift for layer norm."""
    return model.hidden * (2 if model.norm == "layernorm" else 1)


def vector_parameters(block: Block, model: Model) -> int:
    """Return what tensor parallelism does not split evenly in one layer: norms and biases."""
    attention, mlp = block.attention, block.mlp
    q, kv = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    biases = {"none": 0, "qkv": q + 2 * kv, "qkvo": q + 2 * kv + model.hidden}[attention.bias]
    if mlp.bias:
        biases += model.hidden + mlp.ffn * (2 if mlp.kind == "gated" else 1)
    qk_norm = 2 * attention.head_dim if attention.qk_norm else 0
    return 2 * norm_width(model) + biases + qk_norm


def layer_parameters(block: Block, model: Model) -> int:
    """Return all parameters of one layer of `block`."""
    return (attention_matrices(block.attention, model.hidden) + mlp_matrices(block.mlp, model.hidden)
            + vector_parameters(block, model))


def embedding_parameters(model: Model) -> int:
    """Return the token and position tables and the norm behind them."""
    norm = 2 * model.hidden if model.embedding_norm else 0
    return (model.vocab + model.position_rows) * model.hidden + norm


def head_parameters(model: Model) -> int:
    """Return the final norm, and the output matrix where it is not the token table."""
    return norm_width(model) + (0 if model.tied else model.vocab * model.hidden)


def parameters(model: Model) -> int:
    """Return the exact number of parameters."""
    layers = sum(block.count * layer_parameters(block, model) for block in model.blocks)
    return embedding_parameters(model) + layers + head_parameters(model)


@dataclass(frozen=True, slots=True)
class Shape:
    """The figures of one model that the physics reads; parameter counts are of the whole model or of one layer."""

    layers: int
    hidden: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    gated: bool
    window: int | None
    tied: bool
    dropout: bool
    matrices: int
    vectors: int
    embedding: int
    head: int
    total: int

    @property
    def query_width(self) -> int:
        """Width of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of the key (or value) projection."""
        return self.kv_heads * self.head_dim

    def span(self, sequence: int) -> float:
        """Return how many positions a token attends to on average under the causal mask and the window."""
        if self.window is None or self.window >= sequence:
            return sequence / 2
        return self.window - self.window**2 / (2 * sequence)

    def model_flops_per_token(self, sequence: int) -> float:
        """Return forward and backward FLOPs per token: no recompute, causal attention, embedding look-up free."""
        matrices = self.layers * self.matrices + self.vocab * self.hidden
        attention = 4 * self.layers * self.query_width * self.span(sequence)
        return 3 * (2 * matrices + attention)


def shape_of(model: Model) -> Shape:
    """Return the shape of a model of equal layers. Raises Unsupported for a mix of blocks."""
    if len(model.blocks) != 1:
        raise Unsupported(f"model {model.name}: layers of {len(model.blocks)} different kinds")
    block = model.blocks[0]
    attention, mlp = block.attention, block.mlp
    return Shape(
        layers=block.count, hidden=model.hidden, vocab=model.vocab, heads=attention.heads, kv_heads=attention.kv_heads,
        head_dim=attention.head_dim, ffn=mlp.ffn, gated=mlp.kind == "gated", window=attention.window, tied=model.tied,
        dropout=model.positions == "learned", vectors=vector_parameters(block, model),
        matrices=attention_matrices(attention, model.hidden) + mlp_matrices(mlp, model.hidden),
        embedding=embedding_parameters(model), head=head_parameters(model), total=parameters(model))
