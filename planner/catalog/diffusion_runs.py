"""What the words of published runs of diffusion models mean, and what they leave out: by example, model and format."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.catalog.diffusion_law import Base
from planner.catalog.hardware import Precision
from planner.catalog.ranges import Few, Width
from planner.catalog.sourced import Sourced
from planner.units import Seconds
from planner.yaml_io import Frozen


class Recomputing(Frozen):
    """Share of blocks that a setting recomputes, and in rows of how many."""

    share: float = Field(ge=0, le=1)
    segment: Few = 1
    spilled: bool = False
    """Whether what attention keeps goes to the host."""
    entering: float = Field(default=1.0, ge=0, le=1)
    """Share of what enters recomputed blocks that stays on the GPU."""


class Kronecker(Frozen):
    """Factors of an example's Kronecker adapters (LoKr)."""

    attention: Few
    mlp: int = Field(default=0, ge=0, le=10_000)
    """None where only attention has them."""


class Example(Frozen):
    """What an example configuration trains on, where that is not what the run states."""

    resolution: tuple[Width, Width] | None = None
    frames: Few = 1
    audio: Annotated[Seconds, Field(gt=0)] | None = None
    """Length of sound; none of images and clips, which have a resolution."""
    latents: Literal["cached", "online"] = "cached"
    model: str | None = None
    """Catalog name of what it trains; none means what the run is called."""
    swapped: float = Field(default=0.0, ge=0, le=1)
    """Share of the blocks whose weights it keeps on the host."""
    wide: bool = False
    """Whether it trains in 32 bits."""
    timed: bool = True
    """Whether what it prints as a step is one: not where it compiles for every size of image on the way."""


class OtherWords(Frozen):
    """What words of other stacks mean in those of the one whose runs are known; empty where nothing is said."""

    bases: dict[str, str]
    """Precision or format of quantization, in small letters."""
    checkpointing: dict[str, str]
    optimizers: dict[str, str]
    """Word that an optimizer's name has, the first that fits."""
    sizes: dict[str, tuple[Width, Width]]
    """Printed model -> resolution that its benchmark trains at."""
    graphed: tuple[str, ...]
    """Stacks whose steps are graphs of fused kernels."""
    scaled: dict[str, Precision]
    """The same words -> the format of products, where all weights train."""


class DiffusionRuns(Sourced):
    """Of one trainer's runs."""

    models: dict[str, str]
    """Printed name, in small letters -> catalog name."""
    bases: dict[str, Base]
    optimizers: dict[str, str]
    recompute: dict[str, Recomputing]
    """Of models that can recompute rows of blocks at once."""
    in_rows: tuple[str, ...]
    """These models."""
    alone: dict[str, Recomputing]
    """The same of the other models."""
    examples: dict[str, Example]
    kronecker: dict[str, Kronecker]
    """Example -> factors."""
    unlike: dict[str, str]
    """Examples that do what is not modeled -> what that is."""
    fed: tuple[str, ...]
    """Models whose adapters of low rank reach the feed-forward too."""
    unspilled: tuple[str, ...]
    """Models whose recomputed blocks send nothing of attention to the host, whatever is asked."""
    holding: tuple[str, ...]
    """Models of which what enters recomputed blocks stays on the GPU, whatever is asked."""
    elsewhere: OtherWords
    failed: dict[str, str]
    """Models of which every run ended out of memory where a fit is said -> what those runs were."""
    ineffective: dict[str, str]
    """Models whose runs take the same memory by every setting -> the setting whose memory it is."""
    acting: dict[str, str] = Field(default={})
    """Of these, models that recompute all blocks by another page of the trainer -> its name in a row's source."""
