"""Layers of each pipeline stage by what they recompute, as text: none/selective/full of each, `28/0/4*3 30/0/2`."""

from __future__ import annotations

import re

import numpy as np

from planner.catalog.architecture import Model
from planner.layouts.axes import RECOMPUTE
from planner.layouts.table import Ints

_STAGE = re.compile(r"(\d{1,6})/(\d{1,6})/(\d{1,6})(?:\*(\d{1,6}))?")


def stages_of_text(text: str, stages: int, model: Model) -> tuple[Ints, int]:
    """Return layers by stage and mode, (stages, 3), without those before a mixture, and the mode of these.

    They are on the first stage, and keep everything where so many do. Raises ValueError.
    """
    found = [_STAGE.fullmatch(word) for word in text.split()]
    rows = [[int(count) for count in stage.groups()[:3]] for stage in found if stage is not None
            for _ in range(min(int(stage[4] or 1), stages + 1))]
    counts = np.array(rows, np.int64).reshape(-1, len(RECOMPUTE))
    if None in found or len(counts) != stages or counts.sum() != model.layers:
        raise ValueError(f"expected {stages} of none/selective/full, {model.layers} layers in all, got {len(counts)} "
                         f"with {counts.sum()}")
    lead = RECOMPUTE.index("none" if counts[0, 0] >= model.leading_layers else "full")
    if counts[0, lead] < model.leading_layers:
        raise ValueError("the layers before a mixture are not on the first stage")
    counts[0, lead] -= model.leading_layers
    return counts, lead
