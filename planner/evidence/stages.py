"""Layers of each pipeline stage by what they recompute, as a plan that chooses by layer states them."""

from __future__ import annotations

from planner.catalog.architecture import Model
from planner.evidence.skipping import SkippedError
from planner.layouts.stated import stages_of_text
from planner.layouts.table import Ints


def stated_layers(text: str, stages: int, model: Model) -> Ints:
    """Return layers by stage and mode, (stages, 3), from `28/0/4 30/0/2`; those before a mixture are left out.

    Raises SkippedError.
    """
    try:
        return stages_of_text(text, stages, model)[0]
    except ValueError as problem:
        raise SkippedError(f"recompute_layers: {problem}") from None
