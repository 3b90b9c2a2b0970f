"""What the physics reads of a model: the kinds of layers with their products, widths and saved tensors.

A model is a run of leading layers that differ (dense layers before a mixture of experts), which stay on the first
pipeline stage, and a uniform rest. Kinds that alternate throughout are averaged: every stage holds their mean layer.
h hidden, A query width, K and V key and value width, f feed-forward width, s sequence length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.catalog.architecture import AnyAttention, Attention, Block, LatentAttention, Model, MoeMlp
from planner.errors import Unsupported
from planner.physics.shapes import (
    embedding_parameters,
    expert_matrices,
    head_parameters,
    layer_matrices,
    parameters,
    vector_parameters,
)

Split = Literal["column", "row", "none"]


@dataclass(frozen=True, slots=True)
class Linear:
    """A product of tokens x k by k x n; tensor parallelism splits n (column), k (row) or nothing."""

    k: int
    n: int
    split: Split


@dataclass(frozen=True, slots=True)
class Experts:
    """Routed experts of one layer: each a gated or plain feed-forward of width `ffn` on `hidden`."""

    count: int
    per_token: int
    hidden: int
    ffn: int
    gated: bool

    @property
    def fan(self) -> int:
        """Products into the feed-forward: two where gated."""
        return 2 if self.gated else 1


@dataclass(frozen=True, slots=True)
class LayerKind:
    """One kind of layer: its products, attention widths and parameters; elements, before any split."""

    attention: tuple[Linear, ...]
    mlp: tuple[Linear, ...]
    experts: Experts | None
    heads: int
    query_dim: int
    value_dim: int
    key_value_width: int
    """Keys and values of a token together, as context parallelism exchanges them."""
    latent_width: int
    """Low-rank vectors of a token, kept whole by every tensor-parallel rank."""
    window: int | None
    norms: int
    exchanges: int
    """Tensor-parallel exchanges a direction: around attention and feed-forward, or one around both in parallel."""
    ffn: int
    """Width of the dense feed-forward or of the shared experts."""
    fan: int
    split_matrices: int
    whole_matrices: int
    """Matrices that every tensor-parallel rank holds (low-rank projections, router)."""
    expert_matrices: int
    vectors: int

    @property
    def query_width(self) -> int:
        """Width of all query heads."""
        return self.heads * self.query_dim

    @property
    def value_width(self) -> int:
        """Width of the context that attention returns."""
        return self.heads * self.value_dim

    @property
    def attention_width(self) -> int:
        """Queries, keys and values of a token as attention reads them."""
        return self.query_width + self.key_value_width

    @property
    def largest_matrix(self) -> int:
        """Parameters of the largest single matrix."""
        expert = [self.experts.hidden * self.experts.ffn] if self.experts else []
        return max([linear.k * linear.n for linear in (*self.attention, *self.mlp)] + expert)

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values."""
        return self.key_value_width // (self.query_dim + self.value_dim)

    def span(self, sequence: int) -> float:
        """Return how many positions a token attends to on average under the causal mask and the window."""
        if self.window is None or self.window >= sequence:
            return sequence / 2
        return self.window - self.window**2 / (2 * sequence)

    def forward_flops(self, sequence: int) -> float:
        """Return FLOPs of one token, forward: products and causal attention, chosen experts only."""
        products = sum(linear.k * linear.n for linear in (*self.attention, *self.mlp))
        if self.experts is not None:
            products += self.expert_matrices // self.experts.count * self.experts.per_token
        return 2 * products + 2 * (self.query_width + self.value_width) * self.span(sequence)


@dataclass(frozen=True, slots=True)
class Shape:
    """One model as the physics reads it. `kinds` are the uniform layers with their share, `lead` those before them."""

    layers: int
    """Uniform layers, which pipeline stages share out."""
    kinds: tuple[tuple[LayerKind, float], ...]
    lead: tuple[tuple[LayerKind, int], ...]
    hidden: int
    vocab: int
    tied: bool
    dropout: bool
    embedding: int
    head: int
    total: int

    @property
    def lead_layers(self) -> int:
        """Layers pinned to the first stage."""
        return sum(count for _, count in self.lead)

    @property
    def experts(self) -> int:
        """Routed experts of a layer; none without a mixture."""
        return max((kind.experts.count for kind, _ in self.kinds if kind.experts), default=0)

    def model_flops_per_token(self, sequence: int) -> float:
        """Return forward and backward FLOPs per token: no recompute, causal attention, embedding look-up free."""
        mean = sum(share * kind.forward_flops(sequence) for kind, share in self.kinds)
        lead = sum(count * kind.forward_flops(sequence) for kind, count in self.lead)
        return 3 * (self.layers * mean + lead + 2 * self.vocab * self.hidden)


def _gqa(attention: Attention, hidden: int) -> tuple[tuple[Linear, ...], int]:
    q, k = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    v, out = attention.kv_heads * attention.value_dim, attention.heads * attention.value_dim
    gate = out if attention.gate else 0
    return (Linear(hidden, q + k + v + gate, "column"), Linear(out, hidden, "row")), k + v


def _mla(attention: LatentAttention, hidden: int) -> tuple[tuple[Linear, ...], int]:
    queries = attention.heads * attention.query_dim
    rank, down = attention.kv_lora_rank, attention.kv_lora_rank + attention.qk_rope
    linears = [Linear(hidden, down, "none"),
               Linear(rank, attention.heads * (attention.qk_nope + attention.v_head), "column"),
               Linear(attention.heads * attention.v_head, hidden, "row")]
    if attention.q_lora_rank is None:
        linears.append(Linear(hidden, queries, "column"))
    else:
        linears += [Linear(hidden, attention.q_lora_rank, "none"), Linear(attention.q_lora_rank, queries, "column")]
    return tuple(linears), queries + attention.heads * attention.v_head


def _attention(attention: AnyAttention, hidden: int) -> tuple[tuple[Linear, ...], int]:
    """Return the products of attention, and the width of a token's expanded keys and values."""
    return _gqa(attention, hidden) if isinstance(attention, Attention) else _mla(attention, hidden)


def kind_of(block: Block, model: Model) -> LayerKind:
    """Return one block as a layer kind. Raises Unsupported by name for what the physics does not cover."""
    attention, mlp, h = block.attention, block.mlp, model.hidden
    if block.recurrence is not None or attention is None or mlp is None:
        raise Unsupported(f"model {model.name}: recurrent layers, or layers of a single part, in training physics")
    if isinstance(attention, LatentAttention) and attention.indexer is not None:
        raise Unsupported(f"model {model.name}: sparse attention with an indexer in training physics")
    linears, key_value = _attention(attention, h)
    latent = attention.kv_lora_rank + attention.qk_rope + (attention.q_lora_rank or 0) if isinstance(
        attention, LatentAttention) else 0
    query_dim = attention.query_dim if isinstance(attention, LatentAttention) else attention.head_dim
    value_dim = attention.v_head if isinstance(attention, LatentAttention) else attention.value_dim
    window = None if isinstance(attention, LatentAttention) else attention.window or attention.chunk
    if isinstance(mlp, MoeMlp):
        ffn, gated = mlp.shared_width, mlp.gated
        experts = Experts(mlp.experts, mlp.experts_per_token, mlp.latent or h, mlp.ffn, mlp.gated)
        routing = [Linear(h, mlp.experts, "none")]
        if mlp.latent:
            routing += [Linear(h, mlp.latent, "none"), Linear(mlp.latent, h, "none")]
        expert = mlp.experts * expert_matrices(mlp, h)
    else:
        ffn, gated, experts, routing, expert = mlp.ffn, mlp.kind == "gated", None, [], 0
    fan = 2 if gated else 1
    dense = [Linear(h, fan * ffn, "column"), Linear(ffn, h, "row")] if ffn else []
    whole = sum(linear.k * linear.n for linear in (*linears, *routing) if linear.split == "none")
    return LayerKind(
        attention=linears, mlp=(*dense, *routing), experts=experts, heads=attention.heads, query_dim=query_dim,
        value_dim=value_dim, key_value_width=key_value, latent_width=latent, window=window,
        norms=block.norm_count, exchanges=1 if block.parallel else 2, ffn=ffn, fan=fan,
        split_matrices=layer_matrices(block, model) - whole - expert, whole_matrices=whole, expert_matrices=expert,
        vectors=vector_parameters(block, model))


def shape_of(model: Model) -> Shape:
    """Return a model as the physics reads it. Raises Unsupported by name for what the physics does not cover."""
    order = model.layer_kinds()
    lead, rest = order[:model.leading_layers], order[model.leading_layers:]
    counts = {id(block): (block, rest.count(block)) for block in rest}
    leading = {id(block): (block, lead.count(block)) for block in lead}
    return Shape(
        layers=len(rest), hidden=model.hidden, vocab=model.vocab, tied=model.tied, dropout=model.positions == "learned",
        kinds=tuple((kind_of(block, model), count / len(rest)) for block, count in counts.values()),
        lead=tuple((kind_of(block, model), count) for block, count in leading.values()),
        embedding=embedding_parameters(model), head=head_parameters(model), total=parameters(model))

