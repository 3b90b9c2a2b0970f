"""Defaults as tests compare them."""

from planner.scenario.default import Defaults


def said(defaults: Defaults) -> list[str]:
    """Return name=value of each; every one has its reason."""
    assert all(one.why for one in defaults)
    return [f"{one.name}={one.value}" for one in defaults]
