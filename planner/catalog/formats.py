"""How weights and caches are stored: bytes of a weight and of a cached element, by the names of formats.

Quantization is of the matrices inside layers; norms and routers stay as they are, and so do embedding and output
matrix outside GGUF and exl2. Scales count with the weights they scale.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.catalog.hardware import Precision
from planner.catalog.ranges import Held
from planner.catalog.sourced import Sourced
from planner.errors import MissingFact
from planner.yaml_io import Frozen


class WeightFormat(Frozen):
    """Bytes of one weight of a quantized matrix with its share of the scales, and of any other weight."""

    matrix: float = Field(ge=1e-4, le=64)
    other: float = Field(default=2.0, ge=1e-4, le=64)
    experts_alone: bool = False
    """Whether only routed experts are quantized, as in gpt-oss."""
    attention: float | None = Field(default=None, ge=1e-4, le=64)
    """Of matrices of attention, where they are kept apart from the rest."""
    embedding: float | None = Field(default=None, ge=1e-4, le=64)
    head: float | None = Field(default=None, ge=1e-4, le=64)
    """Of the token table and the output matrix, where they are quantized too."""
    activation: float = Field(default=0.0, ge=0, le=64)
    """Bytes of an element of the copy that products in eight or four bits read in place of activations."""
    computes: Precision = "bf16"
    """Format of products where the GPU has it; else, and in bf16, weights are expanded to the GPU's 16 bits."""
    needs: Precision | None = None
    """Format that a GPU must have for it, where that is another."""
    hidden_multiple: int = Field(default=1, gt=0, le=10_000)
    ffn_multiple: int = Field(default=1, gt=0, le=10_000)
    """What widths of a rank's experts are rounded up to for the kernels."""

    @property
    def of_attention(self) -> float:
        """Bytes of a weight of attention."""
        if self.attention is not None:
            return self.attention
        return self.other if self.experts_alone else self.matrix


class GgufKind(Frozen):
    """Bytes of a matrix weight and of a weight of the token table in one of llama.cpp's kinds."""

    matrix: float = Field(ge=1e-4, le=64)
    table: float = Field(ge=1e-4, le=64)


class CacheRules(Frozen):
    """What a cache holds beside keys and values, whatever their format. Bytes."""

    state: dict[Literal["mamba", "mamba2", "deltanet", "kda", "channels"], Held]
    """Of an element of a recurrent state, by kind."""
    convolved: Held
    """Of an element of the inputs that the short convolution looks back at."""
    index_scale: Held
    """Of the scale beside the fp8 key of a sparse-attention indexer."""
    nearly_equal: float = Field(ge=1, le=100)
    """Kinds whose counts of layers differ by less make one group each where an engine shares the pool by kind."""


class StoredCache(CacheRules):
    """The same with the bytes of one element of keys and values, scales included."""

    element: float = Field(ge=1e-4, le=64)


class Formats(Sourced):
    """Every format by the names that scenarios and evidence use."""

    weights: dict[str, WeightFormat]
    gguf: dict[str, GgufKind]
    """llama.cpp's kinds, by lower-case name."""
    gguf_head: Held
    """Bytes of a weight of the output matrix, at least, in every GGUF kind."""
    exl2_head: Held
    """The same in exl2."""
    cached: dict[str, Held]
    """Bytes of one element of the cache, with its scales."""
    cache_rules: CacheRules

    def cache(self, name: str) -> StoredCache:
        """Return how a cache in a format is held. Raises MissingFact."""
        if name not in self.cached:
            raise MissingFact("formats", f"a cache in {name}")
        return StoredCache(element=self.cached[name], **dict(self.cache_rules))
