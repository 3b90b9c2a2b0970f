"""What training a denoiser takes beside its shape: formats of the frozen base, optimizers, the host's time."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Annotated, Literal

from pydantic import Field

from planner.catalog.diffusion import Media
from planner.catalog.hardware import Precision
from planner.catalog.ranges import Factor, Held, Passes, Share, Width
from planner.catalog.sourced import Sourced
from planner.units import ByteRate, Bytes, Seconds
from planner.yaml_io import Frozen

Base = Literal["bf16", "fp8", "fp8-weights", "int8", "int4", "nf4"]
"""Formats of a frozen base: fp8 and int8 products read rounded activations too, the others expand the weights."""
Tuned = Literal["adapters", "weights"]
Bound = Annotated[float, Field(ge=1e-3, le=1e3)]


class StoredBase(Frozen):
    """How the matrices of a frozen base are stored and multiplied."""

    weight: float = Field(ge=1e-3, le=64)
    """Bytes of a weight with its share of the scales."""
    copies: Held = 0.0
    """Bytes of a weight that a block keeps for backward: the expanded copy."""
    kept: Factor = 1.0
    """Bytes that a block keeps over those in 16 bits."""
    rounded: Held = 0.0
    """Bytes that a block keeps for each number that goes into a product, which is rounded before."""
    moved: Passes = 0.0
    """Bytes that pass through memory for each number that goes into a product forward, as rounding takes kernels of
    its own."""
    copied: ByteRate | None = None
    """Rate at most at which weights come from the host; none where their memory is pinned, and PCIe bounds it."""
    launch: Seconds = 0.0
    """Seconds of the host for a product forward and backward, over those in 16 bits."""
    needs: Precision | None = None
    """Format of products that a GPU must have for it."""


class Residue(Frozen):
    """Quantiles of measured over predicted, rows of each model predicted without that model."""

    q05: Bound
    q50: Bound
    q95: Bound
    error: float = Field(ge=0, le=10)
    """Median of the relative error."""
    rows: int = Field(ge=0, le=10**9)
    models: int = Field(ge=0, le=10**9)

    def at(self, share: float, widened: float = 1.0) -> float:
        """Return a quantile; the spread about the median is that of the rows times `widened`."""
        side = self.q95 if share >= 0.5 else self.q05
        deviations = NormalDist().inv_cdf(share) / abs(NormalDist().inv_cdf(0.05))
        return self.q50 * math.exp(abs(math.log(side / self.q50)) * widened * deviations)


class RunKind(Frozen):
    """What the runs were of: whatever differs in one of these has no run like it."""

    architectures: frozenset[str]
    media: frozenset[Media]
    bases: frozenset[Base]
    optimizers: frozenset[str]
    swapped: bool
    """Whether blocks that wait on the host are among them, for more than one model."""


class DiffusionLaw(Sourced):
    """Constants of training a denoiser."""

    stack: str
    """Whose runs they are fitted to."""
    bases: dict[Base, StoredBase]
    trained: dict[Tuned, Held]
    """Bytes of a weight that trains, and of its gradient."""
    optimizers: dict[str, Held]
    """Bytes of the states of a weight that trains."""
    context: Bytes
    """Of the CUDA context and libraries on the device."""
    wasted: Share
    """Of what is allocated, what the allocator holds beside it."""
    fixed: Bytes
    """Allocated beside weights, states and activations."""
    kept: Factor
    """What blocks keep over what autograd saves: casts of mixed precision."""
    working: Factor
    """Blocks' worth of kept bytes at work at once where blocks are recomputed."""
    overlap: float = Field(ge=1, le=10)
    """Exponent of the norm that adds the time of the host to that of the GPU: 1 is one after the other."""
    host_step: Seconds
    """The host's own time of a step: loading, logging, the optimizer."""
    host_block: Seconds
    """The host's time to launch one block with attention forward and backward, its products left out."""
    host_product: Seconds
    """The same of one product."""
    host_factor: Seconds
    """The same of the Kronecker adapter of one matrix (LoKr)."""
    factor_row: Seconds
    """The GPU's time for one row of the product with the smaller of its two matrices, which has as few columns as a
    factor: too few to fill what a kernel multiplies at once."""
    host_recompute: Factor
    """The same of a recomputed block, over that."""
    products: Share
    """Of the rate of large matrix products, what those of a step reach."""
    attention: Share
    """The same of attention."""
    spilled: Share
    """Of what a block keeps, what attention has and offloaded activations send to the host."""
    spill_inputs: Factor
    """What stays of a recomputed block then, over what enters it."""
    spill_rate: Share
    """Of the rate of PCIe, what those copies and those of weights reach."""
    head: Width
    """Numbers of a head of attention, of which each GPU that shares a clip has whole ones."""
    passes: Passes
    """Times that kept bytes move through memory in a step."""
    cached: Share
    """Share of them that a cache takes over, if it holds what one kernel reads and writes."""
    graphed: Passes
    """The same where kernels are fused and a step is one graph, which the host launches at once."""
    memory: Residue
    step: Residue
    seen: RunKind
    unseen: Factor
    """Spread of what no run is like, over that of the runs."""
