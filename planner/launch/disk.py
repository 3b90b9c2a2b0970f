"""How much the disk of a rented node has to hold: places that rent take a small one where nobody says."""

from __future__ import annotations

import numpy as np

from planner.answer.assignment import Assignment, TrainingAssignment
from planner.catalog.load import Catalog
from planner.physics.serving.formats import format_of
from planner.physics.serving.weights import weight_bytes

GB = 10**9
ROOM = 100
"""GB of an image, packages, caches and data."""
STEP = 50
"""GB to which it is rounded up."""


def disk_of(placed: Assignment, nodes: int, catalog: Catalog) -> int:
    """Return GB for the weights of a language model as published, and where one node trains them all for a checkpoint.

    Several nodes have storage that all see for what they save.
    """
    assert placed.model is not None
    model = catalog.model(placed.model)
    weights = format_of(catalog.formats, model.stored, model)
    assert weights is not None
    one = np.ones(1, dtype=np.int64)
    held = float(weight_bytes(model, weights, one, one)[0])
    if nodes == 1 and isinstance(placed, TrainingAssignment) and placed.failures is not None:
        held += placed.failures.checkpoint_bytes
    return STEP * -(-round(ROOM + held / GB) // STEP)
