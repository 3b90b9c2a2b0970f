"""The site of owned and bought nodes, as a question has it."""

from __future__ import annotations

from planner.catalog.load import Catalog
from planner.catalog.price import Site
from planner.catalog.sourced import Fact
from planner.scenario.limits import Sourcing


def site_of(sourcing: Sourcing, catalog: Catalog) -> Site:
    """Return the site, with the price of electricity that the question names. Raises UnknownName."""
    site = catalog.site(sourcing.site)
    if sourcing.electricity is None:
        return site
    asked = Fact(source="as asked", as_of=site.as_of, kind="assumed")
    return site.model_copy(update={"electricity": sourcing.electricity, "facts": {**site.facts, "electricity": asked}})


def power_of(sourcing: Sourcing, catalog: Catalog) -> str:
    """Return in words whose electricity, or at what price, owned nodes have."""
    if sourcing.electricity is None:
        return f"electricity of {catalog.site(sourcing.site).name}"
    return f"electricity at {sourcing.electricity:g} USD/kWh"
