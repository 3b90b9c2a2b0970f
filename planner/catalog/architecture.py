"""A transformer as its config states it: embeddings, and runs of repeated blocks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from planner.catalog.sourced import Sourced
from planner.yaml_io import Frozen


class Attention(Frozen):
    """Multi-head or grouped-query attention. `window` is the sliding window in tokens, none for full attention."""

    kind: Literal["gqa"] = "gqa"
    heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    bias: Literal["none", "qkv", "qkvo"] = "none"
    qk_norm: bool = False
    window: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _groups(self) -> Attention:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} is not a multiple of kv_heads {self.kv_heads}")
        return self


class Mlp(Frozen):
    """The feed-forward of a block: plain (two matrices) or gated (three)."""

    kind: Literal["plain", "gated"]
    ffn: int = Field(gt=0)
    bias: bool = False


class Block(Frozen):
    """`count` equal layers in a row."""

    count: int = Field(gt=0)
    attention: Attention
    mlp: Mlp


class Model(Sourced):
    """One model shape. `parameters` is the published exact count, `nominal` what its makers call it."""

    hf_id: str | None = None
    hidden: int = Field(gt=0)
    vocab: int = Field(gt=0)
    tied: bool
    norm: Literal["rmsnorm", "layernorm"]
    positions: Literal["rope", "learned", "alibi"] = "rope"
    position_rows: int = Field(default=0, ge=0)
    embedding_norm: bool = False
    blocks: tuple[Block, ...] = Field(min_length=1)
    parameters: int | None = Field(default=None, gt=0)
    sequence_length: int = Field(gt=0)
    """Default training length in tokens."""
    global_batch: int = Field(gt=0)
    """Default global batch in sequences of that length."""

    @property
    def layers(self) -> int:
        """Transformer layers, all blocks together."""
        return sum(block.count for block in self.blocks)
