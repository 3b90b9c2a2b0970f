"""Regions that a question names: parts of the world, zones, and regions that no offer of the catalog is in."""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog.price import PriceList
from planner.catalog.regions import area_of, region_of
from planner.errors import UnknownName
from planner.scenario.default import Default, Defaults
from planner.scenario.limits import Rent
from planner.yaml_io import Document


def regions_asked(rent: Rent, lists: Sequence[PriceList], document: Document, defaults: Defaults) -> tuple[str, ...]:
    """Return the regions that `rent` names, as the catalog spells them: a part of the world is all its regions.

    Of regions without an offer those that have one are taken alone, or else regions nearby, which `defaults` says.
    Raises InputError for a region that is in no part of the world with offers.
    """
    asked = [prices for prices in lists if not rent.providers or prices.name in map(str.lower, rent.providers)]
    found = {name: _offered(name, asked) for name in rent.regions}
    taken: dict[str, None] = {}
    for at, name in enumerate(rent.regions):
        if not found[name] and not (near := _nearby(name, asked)):
            known = sorted({area for prices in asked for area in prices.areas} | {
                offer.region for prices in asked for offer in prices.offers})
            unknown = UnknownName("region", name, known).problem
            raise document.error(("sourcing", "rent", "regions", at), unknown if not area_of(name) else (
                f"no offer of the catalog is in {name} or near it: {', '.join(known)} have some"))
        if not found[name]:
            near = [] if any(found.values()) else near
            defaults.append(Default(name="regions", value=f"{', '.join(near) or 'the others'}, as no offer of the "
                                    f"catalog is in {name}", why="prices differ from region to region"))
            taken |= dict.fromkeys(near)
        taken |= dict.fromkeys(found[name])
    return tuple(taken)


def _offered(name: str, lists: Sequence[PriceList]) -> list[str]:
    """Return the regions that a name means, where an offer is to be had there: its own, or those of a zone."""
    for each in dict.fromkeys((name.lower(), region_of(name))):
        if known := sorted({region for prices in lists for region in prices.regions(each)}):
            return known
        if any(prices.sells_in(offer, (each,)) for prices in lists for offer in prices.offers):
            return [each]
    return []


def _nearby(name: str, lists: Sequence[PriceList]) -> list[str]:
    """Return the regions with offers in the same part of the world; those named alike may not have what is asked."""
    area = area_of(name)
    return sorted({region for prices in lists for region in prices.regions(area)}) if area else []
