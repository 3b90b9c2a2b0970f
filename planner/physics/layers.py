"""What the physics reads of a model: the kinds of layers with their products, widths and saved tensors.

A model is a run of leading layers that differ (dense layers before a mixture of experts), which stay on the first
pipeline stage, and a uniform rest. Kinds that alternate throughout are averaged: every stage holds their mean layer.
h hidden, A query width, K and V key and value width, f feed-forward width, s sequence length.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from planner.catalog.attention import Indexer
from planner.layouts.table import Floats

Split = Literal["column", "row", "none"]
Module: TypeAlias = tuple[str, int]
"""A matrix: its name in `scenario/targets`, several with + where it is fused of them, and its columns."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A product of tokens x k by k x n; tensor parallelism splits n (column), k (row) or nothing."""

    k: int
    modules: tuple[Module, ...]
    """The matrices that it is computed from at once, each with an adapter of its own."""
    split: Split
    shared: int = 0
    """Of the columns, those that every rank computes: the one key-value head of multi-query attention."""
    of_memory: bool = False
    """Whether it is of what an encoder has read, not of tokens."""

    @property
    def n(self) -> int:
        """Columns of all its matrices."""
        return sum(columns for _, columns in self.modules)

    def adapted(self, targets: AbstractSet[str] | None) -> tuple[int, int]:
        """Return how many of its matrices are among `targets` (all without), and their columns."""
        chosen = [columns for name, columns in self.modules
                  if targets is None or not targets.isdisjoint(name.split("+"))]
        return len(chosen), sum(chosen)

    def columns(self, ranks: Floats) -> Floats:
        """Return the columns on one of so many ranks of tensor parallelism."""
        return (self.n - self.shared) / ranks + self.shared if self.split == "column" else 0 * ranks + self.n

    @property
    def whole(self) -> int:
        """Weights that every rank of tensor parallelism holds."""
        return self.k * (self.n if self.split == "none" else self.shared)


def feeding(ffn: int, gated: bool, fused: bool) -> tuple[Module, ...]:
    """Return the matrices into a feed-forward of width `ffn`."""
    if gated and fused:
        return (("gate+up", 2 * ffn),)
    return (("gate", ffn), ("up", ffn)) if gated else (("up", ffn),)


@dataclass(frozen=True, slots=True)
class Experts:
    """Routed experts of one layer: each a gated or plain feed-forward of width `ffn` on `hidden`."""

    count: int
    per_token: int
    hidden: int
    ffn: int
    gated: bool
    biased: bool = False
    fused: bool = False

    @property
    def fan(self) -> int:
        """Products into the feed-forward: two where gated."""
        return 2 if self.gated else 1

    @property
    def linears(self) -> tuple[Linear, Linear]:
        """The products into one expert's feed-forward and out of it, unsplit."""
        return (Linear(self.hidden, feeding(self.ffn, self.gated, self.fused), "column"),
                Linear(self.ffn, (("down", self.hidden),), "row"))


@dataclass(frozen=True, slots=True)
class Scan:
    """A recurrence over the sequence (Mamba, Mamba-2, gated delta rule), as wide as a token's elements say."""

    inner: int
    """Width of what the recurrence reads and returns."""
    state: int
    """Elements of the state for each of those."""
    convolved: int
    """Channels of the short convolution."""
    projected: int
    """Width of the projection in front: channels, gate and steps."""

    def forward_flops(self, chunk: int) -> float:
        """Return FLOPs of one token, forward, in chunks: inside a chunk by products, between chunks by states.

        None where nothing but the convolution mixes tokens.
        """
        if not self.state:
            return 0.0
        return 2 * chunk * (self.inner + self.state) + 4 * self.inner * self.state


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
    bidirectional: bool
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
    indexer: Indexer | None = None
    """What picks the positions that sparse attention reads."""
    scan: Scan | None = None
    """The recurrence of a layer that has one in place of attention; its attention widths are zero."""
    normed: int = 0
    """Width of queries and keys where these have norms of their own, whose inputs are kept."""
    crosses: bool = False
    """Whether keys and values are of what an encoder has read."""
    waits: bool = False
    """Whether the layer is left out where there is nothing of that."""
    portion: float = 1.0
    """Share of the kernels of a usual layer, of attention and a feed-forward."""

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Every product but those of routed experts."""
        return self.attention + self.mlp

    @property
    def of_tokens(self) -> tuple[Linear, ...]:
        """Products of attention over tokens."""
        return tuple(linear for linear in self.attention if not linear.of_memory) if self.crosses else self.attention

    @property
    def of_memory(self) -> tuple[Linear, ...]:
        """Products of attention over what an encoder has read."""
        return tuple(linear for linear in self.attention if linear.of_memory)

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
        return max([linear.k * columns for linear in (*self.attention, *self.mlp)
                    for _, columns in linear.modules] + expert)

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values."""
        return self.key_value_width // max(1, self.query_dim + self.value_dim)

    @property
    def shared_key(self) -> bool:
        """Whether there is one key-value head, which every rank of tensor parallelism holds."""
        return self.heads > 1 and self.key_value_heads == 1

    def keys_and_values(self, ranks: Floats) -> Floats:
        """Return the width of keys and values on one of so many ranks of tensor parallelism."""
        return self.key_value_width / (np.ones_like(ranks) if self.shared_key else ranks)

    def runs(self, memory: float) -> bool:
        """Say whether the layer runs where an encoder has read so many positions."""
        return memory > 0 or not (self.crosses or self.waits)

    def span(self, sequence: int, memory: float = 0.0) -> float:
        """Return how many positions a token attends to on average under the mask and the window.

        memory: positions of a sequence that cross attention reads.
        """
        if self.crosses:
            return memory
        if self.bidirectional:
            return min(self.window or sequence, sequence)
        if self.window is None or self.window >= sequence:
            return sequence / 2
        return self.window - self.window**2 / (2 * sequence)

    def forward_flops(self, sequence: int, chunk: int, memory: float = 0.0) -> float:
        """Return FLOPs of one token, forward: products, causal attention, recurrence in chunks, chosen experts only.

        memory: as of `span`; keys and values of it are shared out over the tokens.
        """
        if not self.runs(memory):
            return 0.0
        products = sum(linear.k * linear.n * (memory / sequence if linear.of_memory else 1)
                       for linear in (*self.attention, *self.mlp))
        if self.experts is not None:
            products += self.expert_matrices // self.experts.count * self.experts.per_token
        return 2 * products + self.mixing_flops(sequence, chunk, memory)

    def mixing_flops(self, sequence: int, chunk: int, memory: float = 0.0) -> float:
        """Return those of `forward_flops` that no weight takes part in: attention's core and the recurrence."""
        if not self.runs(memory):
            return 0.0
        scanned = self.scan.forward_flops(chunk) if self.scan else 0.0
        return 2 * (self.query_width + self.value_width) * self.span(sequence, memory) + scanned


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

    def model_flops_per_token(self, sequence: int, chunk: int, memory: float = 0.0) -> float:
        """Return forward and backward FLOPs per token: no recompute, causal attention, embedding look-up free.

        chunk: tokens that kernels of a recurrence work on at once; memory: positions that cross attention reads.
        """
        return 3 * sum(self.forward_flops_per_token(sequence, chunk, memory))

    def forward_flops_per_token(self, sequence: int, chunk: int, memory: float = 0.0) -> tuple[float, float]:
        """Return FLOPs per token, forward: of products with weights, and of what mixes tokens (attention, recurrence).
        """
        def of(kind: LayerKind) -> tuple[float, float]:
            every = kind.forward_flops(sequence, chunk, memory)
            mixing = kind.mixing_flops(sequence, chunk, memory)
            return every - mixing, mixing

        counted = [*((self.layers * share, of(kind)) for kind, share in self.kinds),
                   *((float(count), of(kind)) for kind, count in self.lead)]
        products, mixing = (sum(count * flops[part] for count, flops in counted) for part in (0, 1))
        return products + 2 * self.vocab * self.hidden, mixing
