"""A diffusion model by its parts: the denoiser, whose blocks are run at every step, the autoencoder, text encoders.

Tokens are what the denoiser's blocks read: patches of the latent image or clip, and text. A stage of a UNet reads
pixels of the latent image at its own scale. Sound is a line of samples: an image that is one pixel high. Field names
follow the published diffusers configs.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from planner.catalog.ranges import Few, Parameters, Width
from planner.catalog.sourced import Sourced
from planner.units import DAY, Seconds
from planner.yaml_io import Frozen

Reads = Literal["both", "all", "image", "text"]
"""Image and text by weights of their own (MMDiT), image and text alike, only the image, or only text."""
Kept = Annotated[float, Field(gt=0, le=1e8)]
"""Bytes of one token."""


class KeptForBackward(Frozen):
    """Bytes that one block keeps of one token for the backward pass, in 16 bits and with flash attention."""

    adapters: Kept
    """Where only adapters on the attention train."""
    weights: Kept
    """Where its weights train."""


class DenoiserBlock(Frozen):
    """`count` equal blocks: attention and feed-forward, or a residual pair of 3x3 convolutions (`inputs`)."""

    count: Few
    width: Width
    reads: Reads = "all"
    inner: Annotated[int, Field(ge=0, le=10**7)] = 0
    """Width of queries; none where there is no attention of the block's tokens to each other."""
    kv: Width | None = None
    """Width of keys; that of queries unless said."""
    mlp: Annotated[int, Field(ge=0, le=10**7)] = 0
    gated: bool = False
    """Whether the feed-forward has a third matrix."""
    experts: Few = 1
    """Feed-forwards of that width, of which a token meets some."""
    active: Few = 1
    """How many."""
    shared: Annotated[int, Field(ge=0, le=10**7)] = 0
    """Width of one more that every token meets."""
    cross: Width | None = None
    """Width of text that it attends to (cross attention); none where it does not."""
    cross_inner: Width | None = None
    """Width of queries of that attention; the block's unless said."""
    cross_kv: Width | None = None
    """Width of its keys; that of its queries unless said."""
    inputs: Width | None = None
    """Channels that come in, of convolutions."""
    modulation: Annotated[int, Field(ge=0, le=100)] = 0
    """Vectors that it makes of the time step with a matrix of its own."""
    conditioning: Width | None = None
    """Width of what it makes them of; its own unless said."""
    linear: bool = False
    """Whether attention takes time linear in tokens."""
    scale: Few = 1
    """By how much a side is smaller than that of what the denoiser reads."""
    kept: KeptForBackward

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not (self.inner or self.mlp or self.inputs):
            raise ValueError("a block has attention (inner), a feed-forward (mlp) or convolutions (inputs)")
        return self


class Denoiser(Frozen):
    """What is trained, and run at every step."""

    parameters: Parameters
    patch: Few = 1
    """Latent pixels of a side of a token."""
    blocks: tuple[DenoiserBlock, ...] = Field(min_length=1)
    text_tokens: Few
    """That blocks read beside the image, as pipelines pad the prompt."""
    text_kept: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    """Bytes that what makes them of several layers of a text encoder keeps of each for the backward pass."""
    head: Width = 128
    """Width of an attention head; of a UNet, that of its smallest blocks."""
    launches: Few | None = None
    """Kernels that one forward pass launches without a compiler; none is not counted."""


class Coding(Frozen):
    """What an autoencoder takes for one pixel of one frame, in 16 bits and with flash attention."""

    flops: Annotated[float, Field(gt=0, le=1e12)]
    bytes: Kept
    """What is alive at once."""
    frames: Few | None = None
    """That it works on at once; none is all of them."""


class Autoencoder(Frozen):
    """What turns pixels, or samples of sound, into latents and back."""

    parameters: Parameters
    compression: Few
    """Pixels of a side of a latent pixel."""
    frames: Few = 1
    """Frames of a latent frame after the first; 1 of images."""
    channels: Few
    decode: Coding
    encode: Coding | None = None
    tile: Width = 1024
    """Pixels of a side of a tile, where it works on tiles."""
    wide: bool = False
    """Whether it works in 32 bits, as it overflows in fewer."""
    sample_rate: Annotated[int, Field(gt=0, le=10**6)] | None = None
    """Samples of a second of sound, each a pixel; none of images and clips."""


class TextEncoder(Frozen):
    """What turns prompts into vectors."""

    name: str
    parameters: Parameters


class Sampling(Frozen):
    """How a model is run unless the question says otherwise, as its pipeline's defaults or its card have it."""

    steps: Few
    guidance: Annotated[float, Field(ge=0, le=100)]
    """Scale of guidance; up to 1 is none."""
    passes: Literal[1, 2]
    """Of the denoiser for a step with guidance: two (with and without the prompt), or one that is told the scale."""
    together: bool = True
    """Whether the pipeline makes two passes in one call of the denoiser, as a batch, or one after the other."""


Media = Literal["image", "video", "audio"]


class Extent(NamedTuple):
    """How large one sample is in pixels and frames; of sound samples are pixels, one high."""

    width: int
    height: int
    frames: int


class Diffusion(Sourced):
    """A diffusion model for images, clips or sound."""

    hf_id: str
    like: str | None = None
    """Another diffusion model, from which what is not said here is taken."""
    media: Media
    denoiser: Denoiser
    denoisers: Annotated[int, Field(ge=1, le=4)] = 1
    """Of which one is run at a step, and each is trained on its own (Wan 2.2: high and low noise)."""
    autoencoder: Autoencoder
    text_encoders: tuple[TextEncoder, ...] = ()
    resolution: tuple[Width, Width] = (1, 1)
    """Width and height that it was made for, in pixels; sound has none."""
    frames: Few = 1
    """Of a clip that it was made for."""
    audio: Annotated[Seconds, Field(gt=0, le=DAY)] | None = None
    """Sound that it was made for; none of images and clips."""
    sampling: Sampling

    def extent(self, resolution: tuple[int, int] | None, frames: int | None, audio: float | None) -> Extent:
        """Return the size of a sample; what is not said is what the model was made for. audio: seconds."""
        if self.autoencoder.sample_rate is not None:
            return Extent(round((audio or self.audio or 1.0) * self.autoencoder.sample_rate), 1, 1)
        width, height = resolution or self.resolution
        return Extent(width, height, frames or self.frames)

    @model_validator(mode="after")
    def _clips_have_frames(self) -> Self:
        if (self.media != "video") != (self.frames == 1):
            raise ValueError("frames: an image has one, a clip has more")
        if not (self.media == "audio") == (self.audio is not None) == (self.autoencoder.sample_rate is not None):
            raise ValueError("audio: sound has seconds and an autoencoder with a sample_rate, and nothing else has")
        if (self.media == "audio") != (self.resolution == (1, 1)):
            raise ValueError("resolution: images and clips have one, sound has none")
        return self
