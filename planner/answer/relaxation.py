"""A single change of a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

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
    work: SkipJsonSchema[Mapping[str, Any] | None] = Field(default=None, exclude=True, repr=False)
    """Keys of the workload that ask for it, where these are all that changes; not a part of what is printed."""
