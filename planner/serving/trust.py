"""How far measured seconds per token lie from predicted ones, of comparable runs."""

from __future__ import annotations

from planner.physics.serving.deployment import Deployment

SPREAD = (0.75, 1.35)


def interval(d: Deployment) -> tuple[float, float]:
    """Return measured over predicted that 90% of comparable runs lie between."""
    return SPREAD
