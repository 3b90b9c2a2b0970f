"""Layers of each pipeline stage by what they recompute, as a plan that chooses by layer states them."""

from __future__ import annotations

import re

import numpy as np

from planner.catalog.architecture import Model
from planner.evidence.skipping import SkippedError
from planner.layouts.axes import RECOMPUTE
from planner.layouts.table import Ints

_STAGE = re.compile(r"(\d{1,6})/(\d{1,6})/(\d{1,6})")


def stated_layers(text: str, stages: int, model: Model) -> Ints:
    """Return layers by stage and mode, (stages, 3), from `28/0/4 30/0/2`; those before a mixture are left out.

    Raises SkippedError.
    """
    found = [_STAGE.fullmatch(word) for word in text.split()]
    counts = np.array([[int(count) for count in stage.groups()] for stage in found if stage is not None], np.int64)
    if None in found or len(found) != stages or counts.sum() != model.layers:
        raise SkippedError(f"recompute_layers: expected {stages} of none/selective/full, {model.layers} layers in all, "
                           f"got {len(counts)} with {counts.sum()}")
    lead = RECOMPUTE.index("none" if counts[0, 0] >= model.leading_layers else "full")
    if counts[0, lead] < model.leading_layers:
        raise SkippedError("recompute_layers: the layers before a mixture are not on the first stage")
    counts[0, lead] -= model.leading_layers
    return counts
