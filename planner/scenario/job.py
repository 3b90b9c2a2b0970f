"""What a question of one job that trains asks beside its work."""

from __future__ import annotations

from pydantic import Field

from planner.scenario.demand import Confidence
from planner.scenario.limits import Hardware, Limits, Objective, Sourcing
from planner.yaml_io import Frozen

UNNAMED = "unnamed"
"""Name of a question that was given none."""


class JobScenario(Frozen):
    """The question of one job: workload, candidate hardware, its sourcing, limits, objective."""

    name: str = UNNAMED
    """A name for the question."""
    workload: Frozen
    """What is trained."""
    hardware: Hardware
    """Which nodes may be used; any by default."""
    sourcing: Sourcing = Sourcing()
    """Where hardware comes from."""
    limits: Limits = Limits()
    """What the plan must respect."""
    objective: Objective = "cost"
    """What is minimized."""
    confidence: Confidence = Field(default=0.95, ge=0.5, lt=1)
    """Confidence of the memory verdict."""
