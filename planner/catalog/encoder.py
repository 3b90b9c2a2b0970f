"""What turns images, clips or sound into tokens of a language model: an encoder, its projector, how many tokens.

Counted are the tokens that stand for what is seen or heard, less the one or two marks around it.

Widths are in elements, sides in pixels, sound in seconds. Field names follow the published Hugging Face configs.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, Tag, model_validator

from planner.catalog.attention import by_kind
from planner.catalog.ranges import Parameters, Width
from planner.yaml_io import Frozen

Side: TypeAlias = Annotated[int, Field(gt=0, le=100_000)]
Sense = Literal["images", "sound"]
Count: TypeAlias = Annotated[int, Field(gt=0, le=10**6)]


class Fixed(Frozen):
    """Every image is scaled to one size (LLaVA-1.5, Gemma 3, Qwen-VL)."""

    kind: Literal["fixed"]
    tokens: Count
    """Of an image, in the language model."""
    positions: Count
    """Patches of an image, in the encoder."""


class Merged(Frozen):
    """Patches of the image as it is, scaled to whole merges within bounds (Qwen2-VL and its kin, Pixtral)."""

    kind: Literal["merged"]
    patch: Side
    merge: Annotated[int, Field(gt=0, le=64)] = 1
    """Patches of a side that become one token."""
    least: Annotated[int, Field(ge=0, le=10**10)] = 0
    most: Annotated[int, Field(gt=0, le=10**10)] | None = None
    """Pixels of an image at least and at most."""
    longest: Side | None = None
    """Longest side, in place of the two: larger images are scaled to it."""
    frames: Annotated[int, Field(gt=0, le=64)] = 1
    """Frames of a clip that are one picture."""
    row_ends: bool = False
    """Whether every row of tokens ends with one more (Pixtral)."""

    @model_validator(mode="after")
    def _bounded(self) -> Merged:
        if (self.most is None) == (self.longest is None):
            raise ValueError("give one of most (pixels) and longest (side)")
        return self


class Tiled(Frozen):
    """The image is cut into tiles of one size by its aspect, with a thumbnail where there are several."""

    kind: Literal["tiled"]
    side: Side
    tokens: Count
    """Of a tile, in the language model."""
    positions: Count
    """Patches of a tile, in the encoder."""
    tiles: Annotated[int, Field(gt=0, le=1000)]
    """Tiles of an image at most, beside the thumbnail."""
    choice: Literal["aspect", "canvas", "slices"] = "aspect"
    """How tiles are chosen: by the nearest aspect (InternVL), by the canvas that scales the image least (Llama 4), or
    by the area in tiles (MiniCPM-V)."""
    joined: bool = False
    """The encoder reads the most tiles of every image at once, empty ones too, and there is no thumbnail (Llama 3.2
    Vision)."""


class Gridded(Frozen):
    """The image on the best of some canvases of tiles, padding cut away, beside one small view of all (LLaVA-NeXT)."""

    kind: Literal["gridded"]
    side: Side
    grid: Annotated[int, Field(gt=0, le=1000)]
    """Tokens of a tile's side."""
    positions: Count
    """Patches of a tile, in the encoder."""
    canvases: tuple[tuple[Side, Side], ...] = Field(min_length=1)
    """Height and width of each, in tiles."""
    most: Annotated[int, Field(gt=0, le=1000)] | None = None
    """Tiles that a larger canvas is scaled down to (anyres_max)."""


class Heard(Frozen):
    """Sound: frames of an encoder, of which some become one token (Qwen2-Audio, Qwen2.5-Omni)."""

    kind: Literal["heard"]
    frames: Count
    """Positions of a second, in the encoder."""
    pooled: Annotated[int, Field(gt=0, le=1000)]
    """Positions that become one token."""
    longest: Annotated[int, Field(gt=0, le=10**6)] | None = None
    """Seconds that it reads at most, shorter sound being padded to it; none takes sound as long as it is."""


Reading: TypeAlias = Annotated[
    Annotated[Fixed, Tag("fixed")] | Annotated[Merged, Tag("merged")] | Annotated[Tiled, Tag("tiled")]
    | Annotated[Gridded, Tag("gridded")] | Annotated[Heard, Tag("heard")], by_kind(
        "fixed, merged, tiled, gridded or heard")]


class Encoder(Frozen):
    """A transformer whose every position reads all others, or those of a window, in most of its layers."""

    layers: Annotated[int, Field(gt=0, le=10_000)]
    hidden: Width
    heads: Annotated[int, Field(gt=0, le=100_000)]
    ffn: Width
    gated: bool = False
    norm: Literal["rmsnorm", "layernorm"] = "layernorm"
    bias: Literal["none", "qkv", "qkvo"] = "qkvo"
    ffn_bias: bool = True
    vectors: Annotated[int, Field(ge=0, le=10**9)] = 0
    """Further parameters of a layer: scales, norms of queries and keys."""
    windowed: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Layers whose attention stays within `window` positions."""
    window: Count | None = None
    embedding: Parameters
    """Ahead of the layers, and the norms around them: product of patches or sound, positions."""
    projector: Parameters
    """What joins it to the language model."""
    reads: Reading

    @property
    def parameters(self) -> int:
        """Parameters of the encoder and its projector."""
        biases = {"none": 0, "qkv": 3, "qkvo": 4}[self.bias] * self.hidden
        products, fan = 4 * self.hidden**2 + (3 if self.gated else 2) * self.hidden * self.ffn, 2 if self.gated else 1
        ffn_biases = (self.hidden + fan * self.ffn) * self.ffn_bias
        norms = 2 * self.hidden * (2 if self.norm == "layernorm" else 1)
        layer = products + biases + ffn_biases + norms + self.vectors
        return self.layers * layer + self.embedding + self.projector

    @model_validator(mode="after")
    def _whole(self) -> Encoder:
        if self.hidden % self.heads:
            raise ValueError(f"heads {self.heads} do not divide hidden {self.hidden}")
        if bool(self.windowed) != (self.window is not None) or self.windowed > self.layers:
            raise ValueError("windowed is how many of the layers have a window, and needs one")
        return self


class Tower(Frozen):
    """What turns images or sound into tokens, with its projector: served with the model."""

    parameters: Parameters
    whole: bool = False
    """Whether engines hold all of it on every rank of tensor parallelism."""
    encoder: Encoder | None = None
    """Its shape; none where only its size is known, so that no image can be counted."""
