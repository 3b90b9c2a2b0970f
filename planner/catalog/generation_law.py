"""What running a diffusion model takes beside its shape: formats of the denoiser, the host's time, offload, caches."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.catalog.diffusion import Media
from planner.catalog.diffusion_law import Residue
from planner.catalog.hardware import Precision
from planner.catalog.ranges import Factor, Few, Held, Passes, Share, Width
from planner.catalog.sourced import Sourced
from planner.units import ByteRate, Bytes, FlopRate, Seconds
from planner.yaml_io import Frozen

Stored = Literal["bf16", "fp8", "fp8-weights", "int8", "int8-weights", "fp6", "fp5", "fp4", "int4", "nf4", "q8_0",
                 "q6_k", "q5_k_m", "q4_k_m", "svdq-int4"]
"""Formats of a denoiser: fp8, int8 and svdq-int4 products read rounded activations too, the others expand weights."""
StepCache = Literal["none", "teacache", "first-block-cache", "cache-dit"]


class StoredDenoiser(Frozen):
    """How the matrices of a denoiser are stored and multiplied."""

    weight: float = Field(ge=1e-3, le=64)
    """Bytes of a weight with its share of the scales."""
    computes: Precision | None = None
    """Format of its products where that is not 16 bits; a GPU must have it."""
    products: Factor = 1.0
    """Rate of its products over that of the format."""
    expands: Held = 0.0
    """Bytes moved for each weight in a pass that is not compiled, where weights are expanded to 16 bits."""
    passes: Passes = 0.0
    """Times that a block's intermediates are moved beside those in 16 bits, as rounding is a step of its own."""
    fused: Passes = 0.0
    """The same of a compiled denoiser."""


class SmallUnits(Frozen):
    """Shares of the peak that GPUs reach whose multiprocessors multiply slowly, so that little else holds them up."""

    below: FlopRate
    """FLOP/s in 16 bits of a multiprocessor from which on its matrix units are large."""
    products: Share
    convolutions: Share
    attention: Share
    wide: dict[str, Factor]
    """By architecture: by how much attention is faster with wide heads."""


class WideHeads(Frozen):
    """Heads from a width on: by how much attention is faster with them than with the narrower ones of measured runs."""

    width: Width
    faster: dict[str, Factor]
    """By architecture."""


class UnseenRuns(Frozen):
    """What measured runs are of: whatever differs in one of these has no run like it."""

    architectures: frozenset[str]
    media: frozenset[Media]
    formats: frozenset[Stored]


class GenerationLaw(Sourced):
    """Constants of running a diffusion model."""

    stack: str
    """Whose runs they are fitted to."""
    formats: dict[Stored, StoredDenoiser]
    step_caches: dict[StepCache, Share]
    """Share of the passes of the denoiser that are computed."""
    context: Bytes
    """Of the CUDA context and libraries on the device."""
    wasted: Share
    """Of what is allocated, what the allocator holds beside it."""
    held: Factor
    """Bytes that the allocator holds for the autoencoder over those allocated: workspaces of convolutions."""
    moved: Factor
    """Times that what is alive in the autoencoder moves through memory."""
    wide: Factor
    """Bytes of the autoencoder in 32 bits over those in 16."""
    working: Factor
    """Blocks' worth of intermediates that a pass of the denoiser works with."""
    products: Share
    """Of the rate of large matrix products, what those of a pass reach."""
    convolutions: Share
    """The same of convolutions, and of the products among them in a UNet."""
    attention: dict[str, Share]
    """The same of attention, by architecture; `others` of those that no run is of."""
    wide_heads: WideHeads
    small: SmallUnits
    passes: Passes
    """Times that a block's intermediates are moved in a pass."""
    convolved: Passes
    """The same in a UNet."""
    cached: Share
    """Of those of a transformer, the share that a cache as large as what one kernel reads and writes takes over."""
    fused: Passes
    """The same of a compiled denoiser."""
    host_launch: Seconds
    """The host's time to launch one kernel, and what Python does between it and the next."""
    launched: Factor
    """Kernels for each product of a denoiser whose kernels were not counted."""
    host_fused: Seconds
    """The host's time to launch one compiled block."""
    host_shared: Seconds
    """The same of one that is not compiled and whose attention several GPUs share."""
    host_image: Seconds
    """The host's own time of a call: the prompt, the scheduler, writing."""
    host_coding: Seconds
    """The same of the autoencoder."""
    copied_in: ByteRate
    """Bytes/s from the host's memory that is not pinned to the GPU, of any link as fast."""
    copied_out: ByteRate
    """The same back, into memory that is new and has to be mapped."""
    overlap: Share
    """Fraction of a tile's side that tiles share."""
    encoder: Share
    """Of the rate of large matrix products, what a text encoder reaches."""
    sharing: Share
    """Rate of a GPU that shares a call with others over that of one alone, for every doubling of their number."""
    ring: Factor
    """Seconds of exchange of ring attention over those of its bytes."""
    stale: Few
    """Steps of PipeFusion that are computed in full before patches are pipelined."""
    slower: Annotated[dict[str, Factor], Field(default_factory=dict)]
    """Seconds of another stack over those of this one."""
    memory: Residue
    seconds: Residue
    sources: Few
    """That the rows of both are from."""
    seen: UnseenRuns
    unseen: Factor
    """Spread of what no run is like, over that of the runs."""


class GenerationRuns(Sourced):
    """What the words of published runs mean, and what they leave out."""

    models: dict[str, str]
    """Printed name, in small letters -> catalog name."""
    formats: dict[str, Stored]
    """Printed quantization, or where there is none precision."""
    offloads: dict[str, Literal["model", "sequential"]]
    """A word of the offload -> what waits on the host."""
    caches: dict[str, StepCache]
    """A word of the settings -> the cache of steps."""
    steps: dict[str, Few]
    """Of models whose rows leave them out."""
    batches: dict[str, Few]
    """Of stacks whose rows leave them out."""
    compiled: tuple[str, ...]
    """Stacks that compile the denoiser."""
    quantized_on_gpu: tuple[str, ...]
    """Stacks that load 16 bits before they quantize."""
    encoders_quantized: tuple[str, ...]
    """Models whose runs quantize the text encoders too."""
    gpu_unsure: tuple[str, ...]
    """Stacks whose rows name a GPU that they cannot be of."""
    stand_in: str
    """GPU that stands in where memory alone is asked and none is told apart."""
    alike: tuple[str, ...]
    """Stacks that the constants are fitted to."""
    other: dict[str, str]
    """Stack -> why its runs are not modeled."""
