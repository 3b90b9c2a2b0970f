"""Training of a diffusion model on its GPUs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.answer.placement import Placement
from planner.answer.show_as import ShowAs
from planner.yaml_io import absent


class DiffusionAssignment(Placement):
    """Training of a diffusion model on its GPUs."""

    kind: Literal["diffusion"] = "diffusion"
    """Diffusion."""
    serving: None = None
    """Always none."""
    resolution: Annotated[str, ShowAs("resolution", "layout")]
    """Width and height in pixels: 1024x1024; of sound its length: 240 s."""
    frames: int = Field(gt=0)
    """Of a clip; 1 of an image and of sound."""
    audio_seconds: float | None = Field(default=None, gt=0, exclude_if=absent)
    """Length of sound; left out of images and clips."""
    sample_tokens: Annotated[int, ShowAs("tokens of a sample", "layout")] = Field(gt=0)
    """Patches of one image or clip that the denoiser reads."""
    global_batch: int = Field(gt=0)
    """Images or clips of a step."""
    @property
    def chosen(self) -> tuple[object, ...]:
        """What tells it from another way to do the same."""
        return self.layout, self.offer, self.base, self.stack

    @property
    def noun(self) -> str:
        """What a sample is called."""
        return "clip" if self.frames > 1 or self.audio_seconds else "image"

    base: Annotated[str, ShowAs("base", "layout")]
    """Format of the denoiser's matrices."""
    samples_per_second: Annotated[float, ShowAs("samples/s", "performance")] = Field(gt=0)
    """Images or clips that all GPUs together train on."""
    swapped: float = Field(default=0.0, ge=0, le=1, exclude_if=lambda value: value == 0)
    """Share of the blocks whose weights wait on the host (block swap); left out where none do."""
    checkpoints: float = Field(default=0.0, ge=0, le=1, exclude_if=lambda value: value == 0)
    """Share of what enters recomputed blocks that waits on the host; left out where all of it stays."""
    recomputed: float | None = Field(default=None, gt=0, lt=1, exclude_if=absent)
    """Share of the blocks that are recomputed, where it is neither every other one nor all; otherwise left out."""
    duration_interval90_days: tuple[float, float] | None = Field(default=None, exclude_if=absent)
    """5% and 95% quantile of the run's days, by the error of the step alone; left out without a duration."""
