"""What measured runs say of the speed of a service on some hardware."""

from __future__ import annotations

from planner.catalog.likeness import kind_of_model
from planner.catalog.load import Catalog
from planner.catalog.residuals import Residual
from planner.jobs.serving.service import Service
from planner.physics.serving.deployment import Deployment


def residual(catalog: Catalog, service: Service, d: Deployment) -> Residual:
    """Return measured over predicted seconds per token of comparable runs."""
    return catalog.serving_residuals("tpot_ms").at({
        "engine": service.asked.engine, "kind": kind_of_model(service.model), "tuned": "no", **d.traits},
        media=bool(service.seen))
