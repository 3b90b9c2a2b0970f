"""What mixes tokens in one layer: grouped-query, latent, and compressed sparse attention.

All widths are in elements, all windows in tokens. Field names follow the published Hugging Face configs.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from planner.catalog.ranges import Width
from planner.yaml_io import Frozen


class Indexer(Frozen):
    """The small attention that picks the `top` tokens sparse attention reads (DeepSeek-V3.2, GLM-5, MiniMax-M3)."""

    heads: int = Field(gt=0, le=100_000)
    head_dim: Width
    top: Width
    shared: bool = False
    """The choice of an earlier layer is taken: nothing is held or computed here (GLM-5.2)."""

    @property
    def held(self) -> int:
        """Width of the index key that a token leaves in the cache."""
        return 0 if self.shared else self.head_dim


class Attention(Frozen):
    """Multi-head or grouped-query attention. `window` is the sliding window in tokens, none for full attention."""

    kind: Literal["gqa"] = "gqa"
    heads: int = Field(gt=0, le=100_000)
    kv_heads: int = Field(gt=0, le=100_000)
    head_dim: Width
    v_head_dim: Width | None = None
    """Width of a value head where it is not that of a query and key head."""
    query_rank: Width | None = None
    """Rank of the query projection, with a norm on it (Step3); none for one full matrix."""
    bias: Literal["none", "qkv", "qkvo"] = "none"
    qk_norm: bool | Literal["full"] = False
    """A norm on queries and keys: true for one as wide as a head, full for one over all heads together."""
    value_projection: bool = True
    """Whether values have a product of their own; else they come out of that of the keys (Gemma 4's full layers)."""
    borrowed: bool = False
    """Keys and values are those of an earlier layer: none are computed or cached here."""
    indexer: Indexer | None = None
    """What picks the tokens that are read, from the layer's input."""
    gate: bool = False
    """A gate on the output, as wide as the queries and from the same input."""
    sinks: bool = False
    """One learned logit a head that takes probability and gives nothing."""
    bidirectional: bool = False
    """Every token reads the whole sequence, so that nothing can be generated: an encoder."""
    window: Width | None = None
    chunk: Width | None = None
    """Attention stays inside fixed chunks of this many tokens."""

    @model_validator(mode="after")
    def _groups(self) -> Attention:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} is not a multiple of kv_heads {self.kv_heads}")
        if self.query_rank and (self.gate or self.indexer or self.bias != "none"):
            raise ValueError("queries of a rank with a gate, an indexer or biases are not modeled")
        if self.window and self.chunk:
            raise ValueError("window and chunk exclude each other")
        return self

    @property
    def value_dim(self) -> int:
        """Width of a value head."""
        return self.v_head_dim or self.head_dim

    @property
    def projected(self) -> int:
        """Elements that one key-value head computes of a token: key and value, the key alone, or neither."""
        return 0 if self.borrowed else self.head_dim + self.value_dim * self.value_projection


class LatentAttention(Frozen):
    """Multi-head latent attention (MLA): keys and values from one narrow vector a token, norms on the ranks."""

    kind: Literal["mla"]
    heads: int = Field(gt=0, le=100_000)
    q_lora_rank: Width | None = None
    """Rank of the query projection; none for one full matrix."""
    kv_lora_rank: Width
    qk_nope: Width
    qk_rope: int = Field(ge=0, le=10**7)
    """Zero in layers without positions."""
    v_head: Width
    indexer: Indexer | None = None
    """Its queries come from the query rank, or where there is none from the layer's input."""

    @property
    def kv_heads(self) -> int:
        """Key-value heads after expansion: one for each query head."""
        return self.heads

    @property
    def query_dim(self) -> int:
        """Width of a query head."""
        return self.qk_nope + self.qk_rope


class CompressedAttention(Frozen):
    """DeepSeek-V4's: one key that is also the value, of the last `window` tokens and of runs of `ratio` pooled to one.

    With an indexer, the `top` pooled runs are read, and they overlap; without, all are.
    """

    kind: Literal["csa"]
    heads: int = Field(gt=0, le=100_000)
    head_dim: Width
    q_lora_rank: Width
    o_groups: Width
    o_lora_rank: Width
    window: Width
    ratio: Width | None = None
    indexer: Indexer | None = None

    @model_validator(mode="after")
    def _indexer_reads_pooled_runs(self) -> CompressedAttention:
        if self.indexer and self.ratio is None:
            raise ValueError("an indexer needs ratio: it picks pooled runs")
        if self.heads % self.o_groups:
            raise ValueError(f"heads {self.heads} is not a multiple of o_groups {self.o_groups}")
        return self

    @property
    def kv_heads(self) -> int:
        """Every rank of tensor parallelism holds the one key."""
        return self.heads


def by_kind(kinds: str, default: str = "") -> Discriminator:
    """Return how pydantic tells one class from another: by `kind`, which may have a default."""
    def kind(value: object) -> str:
        return str(value.get("kind", default) if isinstance(value, dict) else getattr(value, "kind", default))
    return Discriminator(kind, custom_error_type="unknown_kind", custom_error_message=f"expected kind: {kinds}")


AnyAttention: TypeAlias = Annotated[
    Annotated[Attention, Tag("gqa")] | Annotated[LatentAttention, Tag("mla")]
    | Annotated[CompressedAttention, Tag("csa")], by_kind("gqa, mla or csa", default="gqa")]
