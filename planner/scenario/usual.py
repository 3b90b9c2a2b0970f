"""The batch and sequence length of training where a question leaves them open: the model's own, or of fine-tuning."""

from __future__ import annotations

from typing import NamedTuple

from planner.catalog.architecture import Model
from planner.catalog.recipes import Recipes
from planner.catalog.stack import Method
from planner.scenario.workload import TUNING, Batch


class Usual(NamedTuple):
    """What a run usually has, and why."""

    sequence_length: int
    global_batch: Batch
    why: str


def usual(model: Model, method: Method | None, recipes: Recipes) -> Usual:
    """Return what `method` usually has for a model: pre-training its own, fine-tuning what people tune with."""
    if method not in TUNING:
        return Usual(model.sequence_length, Batch(model.global_batch), "the model's default")
    tuning = recipes.tuning
    return Usual(min(tuning.sequence_length, model.sequence_length), Batch(tuning.global_batch),
                 f"usual for fine-tuning: {tuning.example}")
