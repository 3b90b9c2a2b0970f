"""What was not asked and decided all the same."""

from __future__ import annotations

from planner.yaml_io import Frozen


class Default(Frozen):
    """A value that the question leaves open."""

    name: str
    """Of the scenario value, or of what else decided."""
    value: str
    """What it was taken to be, with its unit."""
    why: str
    """Where that comes from."""


Defaults = list[Default]
