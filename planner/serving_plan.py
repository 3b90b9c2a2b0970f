"""A serving question answered: not yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.scenario.scenario import ServingScenario
from planner.scenario.serving import Serving
from planner.solver.settings import UNLIMITED, Effort


def plan_serving(scenario: ServingScenario, catalog: Catalog, defaults: Sequence[str] = (),
                 effort: Effort = UNLIMITED, *, simple: bool = False, pareto: Sequence[str] = ()) -> Plan:
    """Return the proven plan for a resolved serving scenario. Raises PlannerError where the input is wrong."""
    raise NotImplementedError


def estimate_serving(service: Serving, catalog: Catalog, node: str, gpus: int | None, layout: Mapping[str, str],
                     confidence: float) -> Assignment:
    """Return whether one layout holds a resolved service, and how fast it is. Raises PlannerError."""
    raise NotImplementedError
