"""A single change of a limit."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from planner.yaml_io import Frozen


class Relaxation(Frozen):
    """A change of a single limit that makes a plan possible."""

    model_config = ConfigDict(populate_by_name=True)

    limit: str
    """Its name."""
    from_: str = Field(alias="from")
    """The limit as asked, with its unit."""
    to: str
    """The limit that would do, with its unit."""
