"""The part of a model that reads images."""

from __future__ import annotations

from planner.catalog.ranges import Parameters
from planner.yaml_io import Frozen


class Tower(Frozen):
    """What turns images into tokens, with its projector: served with the model, no part of its training shape."""

    parameters: Parameters
    whole: bool = False
    """Whether engines hold all of it on every rank of tensor parallelism."""
