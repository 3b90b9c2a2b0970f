"""A whole question, as read from a file, from flags or from both."""

from __future__ import annotations

from pydantic import Field

from planner.scenario.limits import Hardware, Limits, Objective, Sourcing
from planner.scenario.workload import Training
from planner.yaml_io import Frozen


class Scenario(Frozen):
    """The question: the workload, the hardware that may do it, where that comes from, limits, objective."""

    name: str = "unnamed"
    workload: Training
    hardware: Hardware
    sourcing: Sourcing = Sourcing()
    limits: Limits = Limits()
    objective: Objective = "cost"
    confidence: float = Field(default=0.95, ge=0.5, lt=1)
