"""Where hardware comes from as people write it: `rent: spot`, `sourcing: [on-demand, buy]`, `spot: true`."""

from __future__ import annotations

from typing import Any, get_args

from planner.catalog.price import Term
from planner.scenario.words import named

TERMS = "sourcing.rent.terms"
BOUGHT = "buy"
_KNOWN = get_args(Term)
_DELIVERY = ("delivery_time", "lead_time", "delivered_after", "delivered_in", "delivery_days")
"""What people call the time from an order to the nodes, with or without its unit."""
_YES, _NO = (True, None, "yes", "true", "allowed"), (False, "no", "never")


def with_sources(data: dict[Any, Any]) -> dict[Any, Any]:
    """Return a file with its ways to rent as terms of `rent`, wherever they stand, and with how long a delivery takes
    under the planner's name.
    """
    sourcing = data.get("sourcing")
    if isinstance(sourcing, str | list | dict):
        data = {**data, "sourcing": _by_source(sourcing if isinstance(sourcing, dict) else {"rent": sourcing})}
    return {key: _in_terms(key, value) for key, value in data.items()}


def _by_source(sourcing: dict[Any, Any]) -> dict[Any, Any]:
    """Return the block with `spot: true` and the like among the terms of rent; what is named is what counts."""
    said = {key: named(TERMS, key) for key, value in sourcing.items()
            if key != "rent" and named(TERMS, key) in _KNOWN and (value in _YES or value in _NO)}
    told = {key: _in_terms(key, value) for key, value in sourcing.items() if key not in said}
    terms = [term for key, term in said.items() if sourcing[key] in _YES]
    rent = told.get("rent")
    if not said or (rent is not None and not isinstance(rent, dict)) or (rent and "terms" in rent):
        return told if not said else sourcing
    if "rent" in told and "on-demand" not in said.values():
        terms = ["on-demand", *terms]
    return {**told, "rent": {**(rent or {}), "terms": terms} if terms else None}


def _in_terms(key: object, value: object) -> object:
    """Return `rent: on-demand, spot` as its terms, and `buy: {lead_time: 90 d}` as a delivery; all else as it is."""
    if key == "rent" and isinstance(value, str | list):
        said = value.split(",") if isinstance(value, str) else value
        terms = [named(TERMS, each.strip()) if isinstance(each, str) else each for each in said]
        return {"terms": terms} if all(term in (*_KNOWN, BOUGHT) for term in terms) else value
    if key == BOUGHT and isinstance(value, dict) and "delivery" not in value:
        return {"delivery" if str(inner).replace("-", "_") in _DELIVERY else inner:
                f"{each} d" if inner == "delivery_days" and isinstance(each, int) else each
                for inner, each in value.items()}
    return value
