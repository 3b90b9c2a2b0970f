"""Training questions, as most tests ask them."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalog.load import Catalog
from planner.scenario.default import Defaults
from planner.scenario.load import Reference, load_any
from planner.scenario.scenario import Scenario, only_training


def load_scenario(reference: Reference, overrides: Mapping[str, object], catalog: Catalog, *,
                  labels: Mapping[str, str] | None = None) -> tuple[Scenario, Defaults]:
    """Return a training question as `load_any` does. Raises Unsupported for one of serving."""
    scenario, defaults = load_any(reference, overrides, catalog, labels=labels)
    return only_training(scenario, "what was asked"), defaults
