"""How large a sample of a diffusion model is: pixels and frames of an image or clip, seconds of sound."""

from __future__ import annotations

from typing import Protocol

from planner.catalog.diffusion import Diffusion
from planner.scenario.pixels import Resolution
from planner.scenario.pool import text
from planner.units import show_seconds
from planner.yaml_io import Document


class MediaExtent(Protocol):
    """What is asked of a diffusion model, trained or run."""

    @property
    def resolution(self) -> Resolution | None:
        """Width and height in pixels."""

    @property
    def frames(self) -> int | None:
        """Of a clip."""

    @property
    def audio(self) -> float | None:
        """Seconds of sound."""


def sized(work: MediaExtent, model: Diffusion, document: Document, at: tuple[str | int, ...]) -> dict[str, object]:
    """Return the size of a sample by keys, those that are not asked for as the model was made for. Raises InputError
    for a key that the model has no use for.
    """
    if model.media == "audio":
        for key in ("resolution", "frames"):
            if getattr(work, key) is not None:
                raise document.error((*at, key), f"{model.name} makes sound, which has no {key}: give audio, such as "
                                     "'30 s'")
        return {"audio": work.audio or model.audio}
    if work.audio is not None:
        raise document.error((*at, "audio"), f"{model.name} makes {'images' if model.media == 'image' else 'clips'}, "
                             "which have no sound here: give resolution or frames")
    if model.media == "image" and (work.frames or 1) > 1:
        raise document.error((*at, "frames"), f"{model.name} makes images, which have one frame")
    return {"resolution": work.resolution or Resolution(model.resolution), "frames": work.frames or model.frames}


def said(resolution: Resolution | None, frames: int | None, audio: float | None) -> str:
    """Write the size of a sample: 1024x1024, 832x480 x 81 frames, 4 min."""
    if audio is not None:
        return sounding(audio)
    return f"{resolution}" + (f" x {frames} frames" if (frames or 1) > 1 else "")


def shown_value(key: str, value: object) -> str:
    """Write the value of a key as a default shows it."""
    if key == "audio" and isinstance(value, int | float):
        return sounding(value)
    return str(value) if key == "resolution" else text(value)


def sounding(seconds: float) -> str:
    """Write a length of sound as it is read: 240 s."""
    return f"{seconds:g} s" if seconds >= 1 else show_seconds(seconds)
