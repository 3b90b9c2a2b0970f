"""The part of a model that reads images."""

from __future__ import annotations

from pydantic import Field

from planner.yaml_io import Frozen


class Tower(Frozen):
    """What turns images into tokens, with its projector: served with the model, no part of its training shape."""

    parameters: int = Field(gt=0)
    whole: bool = False
    """Whether engines hold all of it on every rank of tensor parallelism."""
