"""Sizes of an image or a clip, and batches of them, that are tried for the largest that fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from planner.catalog.load import Catalog
from planner.errors import InputError, Unsupported
from planner.scenario.diffusion import DiffusionScenario
from planner.scenario.extent import sounding
from planner.scenario.pixels import LARGEST, Resolution
from planner.scenario.scenario import AnyScenario, GenerationScenario
from planner.units import HOUR

MediaSize = Literal["resolution", "frames", "batch", "audio"]
SIDE = 64
"""Pixels by which the shorter side is tried."""
SOUND = 5.0
"""Seconds by which sound is tried."""
MOST_FRAMES, MOST_BATCH = 10_000, 1024


class SizeTried(NamedTuple):
    """One size: as it is shown, and the keys of the workload and axes of the layout that ask for it."""

    shown: str
    work: dict[str, Any]
    layout: dict[str, str]


def sizes(scenario: AnyScenario, what: MediaSize, catalog: Catalog) -> tuple[Callable[[int], SizeTried], int]:
    """Return the size of a rising number, and the last number. Raises PlannerError for work that has no such size."""
    if not isinstance(scenario, DiffusionScenario | GenerationScenario):
        raise Unsupported(f"--max {what} of a model that makes no images")
    work = scenario.workload
    if work is None:
        raise Unsupported(f"--max {what} of several services")
    model = catalog.diffusion(work.model)
    if what == "batch":
        gpus = scenario.limits.gpus or 1
        return lambda count: SizeTried(f"{count}", {"batch": count * gpus if isinstance(scenario, DiffusionScenario)
                                                    else count}, {"mbs": f"{count}"}), MOST_BATCH
    if (what == "audio") != (model.media == "audio"):
        raise InputError(f"--max {what}: {model.name} makes " + (
            "sound, which has a length: --max audio" if model.media == "audio" else "no sound"))
    if what == "audio":
        return lambda count: SizeTried(sounding(count * SOUND), {"audio": count * SOUND}, {}), int(HOUR / SOUND)
    if what == "frames":
        if model.media == "image":
            raise InputError(f"--max frames: {model.name} makes images, which have one frame")
        each = model.autoencoder.frames
        return lambda count: SizeTried(f"{1 + each * count}", {"frames": 1 + each * count}, {}), MOST_FRAMES // each - 1
    width, height = work.resolution or model.resolution

    def size(count: int) -> SizeTried:
        shorter = count * SIDE
        sides = Resolution(round(shorter * side / min(width, height) / SIDE) * SIDE for side in (width, height))
        return SizeTried(str(sides), {"resolution": sides}, {})

    return size, LARGEST * min(width, height) // max(width, height) // SIDE
