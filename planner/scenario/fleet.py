"""A fleet asked about without the work on it: hardware, and where it comes from. The work is a log of jobs."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.default import Defaults
from planner.scenario.limits import Buy, Hardware, Limits, Sourcing
from planner.scenario.load import merge
from planner.scenario.pool import pool
from planner.yaml_io import Document, Frozen, validate

PARTS = ("hardware.", "sourcing.")


class LogFleet(Frozen):
    """Which nodes, and how they are had."""

    hardware: Hardware
    """Which nodes may be used."""
    sourcing: Sourcing = Sourcing()
    """Where hardware comes from: rented on demand or bought, where nothing else is said."""


def fleet_of(overrides: Mapping[str, object], catalog: Catalog, labels: Mapping[str, str]) -> tuple[LogFleet, Defaults]:
    """Return the fleet that scenario values by path ask about. Raises InputError for one that has no effect on it."""
    for path in overrides:
        if not path.startswith(PARTS):
            raise InputError(f"{labels.get(path, path)} has no effect on how many nodes a log of jobs needs: of flags "
                             "only hardware and where it comes from count")
    if not any(path.startswith("hardware.") or path == "sourcing.own" for path in overrides):
        raise InputError("a log of jobs needs hardware: name it with --on dgx-h100, or --own 32xdgx-h100")
    document = merge(Document({}, "", {}), overrides, labels)
    asked, defaults = validate(document, LogFleet), Defaults()
    sourcing, hardware = asked.sourcing, asked.hardware
    if "hardware.candidates" not in overrides:
        hardware = Hardware(candidates=tuple(sourcing.own))
    if not sourcing.own and sourcing.buy is None and not any(path.startswith("sourcing.rent") for path in overrides):
        sourcing = sourcing.model_copy(update={"buy": Buy()})
    if sourcing.own and sourcing.rent is None:
        sourcing = sourcing.model_copy(update={"rent": Sourcing().rent})
    entries = pool(hardware, sourcing, Limits(), catalog, document, defaults)
    return LogFleet.model_validate({name: entries[name] for name in ("hardware", "sourcing")}), defaults
