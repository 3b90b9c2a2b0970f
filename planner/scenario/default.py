"""What was not asked and decided all the same."""

from __future__ import annotations

from planner.yaml_io import Frozen


class Default(Frozen):
    """A value that the question leaves open."""

    name: str
    """Name of the scenario value, or of what else was decided."""
    value: str
    """The value used, with its unit."""
    why: str
    """Why this value is the default."""


Defaults = list[Default]
