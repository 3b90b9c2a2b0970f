"""Images, clips and sound in tokens, counted as the models' processors count them.

Sources: the processors of Hugging Face Transformers (smart_resize of Qwen2-VL, get_image_size of Pixtral,
select_best_resolution and unpadding of LLaVA-NeXT, get_best_fit of Llama 4) and of OpenGVLab/InternVL
(dynamic_preprocess) and OpenBMB/MiniCPM-V (slice_image).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from planner.catalog.architecture import Model
from planner.catalog.encoder import Fixed, Gridded, Heard, Merged, Reading, Tiled, Tower
from planner.errors import InputError

NARROWEST = 200
"""Width over height, or the other way round, from which on processors refuse an image."""
SHRUNK = 1.1
"""By how much sides exceed the most tiles before a canvas is scaled down (LLaVA-OneVision)."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """What the encoder reads, `count` times `positions` each by itself, and the tokens that all of it becomes."""

    count: int
    positions: int
    tokens: int
    memory: int = 0
    """Positions that cross attention reads, in place of tokens among those of text."""


def seen_by(tower: Tower | None, model: Model, what: str) -> Reading:
    """Return how the tower of a model reads images or sound. Raises InputError where it has none."""
    if tower is None:
        raise InputError(f"{model.name} has no encoder for {what}")
    if tower.encoder is None:
        raise InputError(f"{model.name}: the shape of its encoder is not in the catalog, so that its tokens of {what} "
                         "cannot be counted")
    return tower.encoder.reads


def counted(reads: Reading, model: Model, size: tuple[int, int], frames: int, seconds: float) -> Pictures:
    """Return what an image of `size` (width, height in pixels), a clip of frames, or seconds of sound is to a model."""
    if isinstance(reads, Heard):
        seen = heard(reads, seconds)
        # the silence that short sound is padded with is read too
        return replace(seen, tokens=0, memory=seen.count * seen.positions) if model.crosses else seen
    seen = pictures(reads, size, frames)
    # the prompt has one token where an image stands
    return replace(seen, tokens=frames, memory=seen.tokens) if model.crosses else seen


def heard(reads: Heard, seconds: float) -> Pictures:
    """Return what so many seconds of sound are. Raises InputError for more than are read at once."""
    if reads.longest is not None and seconds > reads.longest:
        raise InputError(f"at most {reads.longest} s are read at once, got {seconds:g} s")
    whole = math.ceil(reads.frames * (reads.longest or seconds))
    return Pictures(1, whole, math.ceil(reads.frames * seconds) // reads.pooled)


def pictures(reads: Fixed | Merged | Tiled | Gridded, size: tuple[int, int], frames: int = 1) -> Pictures:
    """Return what an image of `size` (width, height in pixels) is, or a clip of so many frames. Raises InputError."""
    width, height = size
    if max(size) > NARROWEST * min(size):
        raise InputError(f"{width}x{height} is more than {NARROWEST} times as long as wide, which no "
                         "processor reads")
    match reads:
        case Fixed():
            return Pictures(frames, reads.positions, frames * reads.tokens)
        case Merged():
            rows, columns = _merged(reads, width, height)
            groups = -(-frames // reads.frames)
            return Pictures(groups, rows * columns * reads.merge**2, groups * rows * (columns + reads.row_ends))
        case Tiled():
            # frames of a clip are not cut
            tiles = _tiles(reads, width, height) if frames == 1 else 1
            if reads.joined:
                return Pictures(frames, reads.tiles * reads.positions, frames * tiles * reads.tokens)
            many = frames * (tiles + (tiles > 1))
            return Pictures(many, reads.positions, many * reads.tokens)
        case Gridded():
            if frames > 1:
                return Pictures(frames, reads.positions, frames * reads.grid**2)
            return _gridded(reads, width, height)


def _merged(reads: Merged, width: int, height: int) -> tuple[int, int]:
    """Return rows and columns of tokens."""
    unit = reads.patch * reads.merge
    if reads.longest is not None:
        scale = max(1.0, max(width, height) / reads.longest)
        return -(-math.floor(height / scale) // unit), -(-math.floor(width / scale) // unit)
    assert reads.most is not None
    rows, columns = (max(1, round(side / unit)) for side in (height, width))
    if rows * columns * unit**2 > reads.most:
        scale = math.sqrt(width * height / reads.most)
        return max(1, math.floor(height / scale / unit)), max(1, math.floor(width / scale / unit))
    if rows * columns * unit**2 < reads.least:
        scale = math.sqrt(reads.least / (width * height))
        return math.ceil(height * scale / unit), math.ceil(width * scale / unit)
    return rows, columns


def _tiles(reads: Tiled, width: int, height: int) -> int:
    """Return the tiles that an image is cut into."""
    grids = [(across, down) for across in range(1, reads.tiles + 1) for down in range(1, reads.tiles + 1)
             if across * down <= reads.tiles]
    if reads.choice == "slices":
        wanted = min(math.ceil(width * height / reads.side**2), reads.tiles)
        if wanted <= 1:
            return 1
        near = [grid for grid in grids if wanted - 1 <= grid[0] * grid[1] <= wanted + 1 and grid != (1, 1)]
        across, down = min(near, key=lambda grid: abs(math.log(width / height) - math.log(grid[0] / grid[1])))
    elif reads.choice == "canvas":
        def scale(grid: tuple[int, int]) -> float:
            return min(grid[0] * reads.side / width, grid[1] * reads.side / height)

        larger = [grid for grid in grids if scale(grid) >= 1]
        across, down = min(grids, key=lambda grid: (
            scale(grid) if scale(grid) >= 1 else math.inf if larger else -scale(grid), grid[0] * grid[1]))
    else:
        across, down = _nearest(sorted(grids, key=lambda grid: grid[0] * grid[1]), reads.side, width, height)
    return across * down


def _nearest(grids: list[tuple[int, int]], side: int, width: int, height: int) -> tuple[int, int]:
    """Return the grid of the nearest aspect; of several the last that the image fills by half."""
    best, least = (1, 1), math.inf
    for grid in grids:
        off = abs(width / height - grid[0] / grid[1])
        if off < least or (off == least and width * height > 0.5 * side**2 * grid[0] * grid[1]):
            best, least = grid, off
    return best


def _gridded(reads: Gridded, width: int, height: int) -> Pictures:
    def fit(canvas: tuple[int, int]) -> tuple[int, int]:
        tall, wide = (tiles * reads.side for tiles in canvas)
        scale = min(wide / width, tall / height)
        used = min(int(width * scale) * int(height * scale), width * height)
        return used, -(tall * wide - used)

    down, across = max(reads.canvases, key=fit)
    rows, columns = down * reads.grid, across * reads.grid
    if width / height > columns / rows:
        rows -= (rows - int(round(height * (columns / width), 7))) // 2 * 2
    else:
        columns -= (columns - int(round(width * (rows / height), 7))) // 2 * 2
    if reads.most is not None:
        over = math.sqrt(rows * columns / (reads.most * reads.grid**2))
        if over > SHRUNK:
            rows, columns = int(rows // over), int(columns // over)
    tokens = rows * (columns + 1) + reads.grid**2
    return Pictures(down * across + 1, reads.positions, tokens)
