"""How large an image is: width and height in pixels, as text has them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from planner.units import trimmed

LARGEST = 16384
"""Pixels of a side."""
_SIZE = re.compile(r"(\d{1,6})(?: ?[x\u00d7] ?(\d{1,6}))?(?: ?px)?", re.ASCII | re.IGNORECASE)

_LINES = {"360p": (640, 360), "480p": (832, 480), "540p": (960, 544), "720p": (1280, 720), "1080p": (1920, 1088)}
"""What people call sizes by their lines, at 16 to 9, as the models have them that make such clips."""


class Resolution(tuple[int, int]):
    """Width and height in pixels."""

    __slots__ = ()

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{self[0]}x{self[1]}"


def resolution_of(text: str) -> tuple[int, int] | None:
    """Return width and height as text has them, 1024, 1024x768 or 720p; none where it has not."""
    if (lines := _LINES.get(text.lower())) is not None:
        return lines
    match = _SIZE.fullmatch(text)
    return (int(match[1]), int(match[2] or match[1])) if match else None


def _resolution(value: object) -> Resolution:
    sides: tuple[object, ...] = ()
    if isinstance(value, str):
        sides = resolution_of(trimmed(value, "resolution")) or ()
    elif isinstance(value, int) and not isinstance(value, bool):
        sides = (value, value)
    elif isinstance(value, list | tuple) and len(value) == 2:
        sides = tuple(value)
    if not sides or not all(isinstance(side, int) and 16 <= side <= LARGEST for side in sides):
        raise ValueError(f"{value!r} is not a resolution: write width and height in pixels, such as '1024x1024', each "
                         f"from 16 to {LARGEST:,}")
    width, height = sides
    assert isinstance(width, int)
    assert isinstance(height, int)
    return Resolution((width, height))


PixelSize = Annotated[Resolution, PlainValidator(_resolution, json_schema_input_type=str | int),
                      PlainSerializer(str, return_type=str)]


def check_images(work: object, key: str) -> None:
    """Raise ValueError for the size of images where `key` says that there are none."""
    for name in ("resolution", "frames"):
        if getattr(work, name) is not None and getattr(work, key) is None:
            raise ValueError(f"{name} applies to images, and none are given: write {key} 1")
