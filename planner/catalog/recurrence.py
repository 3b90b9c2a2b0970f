"""Layers with a recurrence over the sequence in place of attention."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.catalog.ranges import Width
from planner.yaml_io import Frozen


class Mamba(Frozen):
    """A selective state-space layer of the first kind. `inner_norms` are Jamba's norms on dt, B and C."""

    kind: Literal["mamba"]
    inner: Width
    state: Width
    conv: Width
    dt_rank: Width
    inner_norms: bool = False


class Mamba2(Frozen):
    """A state-space layer with scalar decay a head; `groups` share B and C as key-value heads do."""

    kind: Literal["mamba2"]
    heads: int = Field(gt=0, le=100_000)
    head_dim: Width
    state: Width
    groups: Width
    conv: Width
    normed: bool = True
    """Whether a norm as wide as the recurrence stands ahead of the output product (not in Falcon-H1)."""

    @property
    def inner(self) -> int:
        """Width of the recurrence."""
        return self.heads * self.head_dim


class DeltaNet(Frozen):
    """Gated delta rule linear attention (Qwen3-Next, Qwen3.5)."""

    kind: Literal["deltanet"]
    key_heads: Width
    value_heads: Width
    key_dim: Width
    value_dim: Width
    conv: Width


class Kda(Frozen):
    """Kimi delta attention: a delta rule whose forget gate, like its output gate, is a low-rank product a channel."""

    kind: Literal["kda"]
    heads: int = Field(gt=0, le=100_000)
    head_dim: Width
    conv: Width

    @property
    def inner(self) -> int:
        """Width of queries, of keys and of values."""
        return self.heads * self.head_dim


class Channels(Frozen):
    """Channels that each keep a few numbers of their own: a short convolution (LFM2), or an RG-LRU or RWKV-4 state."""

    kind: Literal["channels"]
    inner: Width
    inputs: Width
    """Products of the layer's input, each as wide as `inner`."""
    state: int = Field(ge=0, le=10**6)
    """Numbers that a channel carries along the sequence; none where the convolution alone mixes tokens."""
    conv: Width = 1
    """Taps of the convolution; 1 for none."""
    gate_heads: int = Field(default=0, ge=0, le=100_000)
    """Blocks of the two block-diagonal gates (RG-LRU); none without them."""
