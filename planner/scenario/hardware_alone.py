"""A question of hardware alone: rented or bought for some years, without a word of the work that it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.currencies import in_dollars
from planner.scenario.default import Default, Defaults
from planner.scenario.job import UNNAMED
from planner.scenario.limits import Buy, Hardware, Limits, Sourcing
from planner.scenario.load import as_written, merge
from planner.scenario.plainly import KEPT, in_blocks
from planner.scenario.pool import pool
from planner.scenario.resolve import NO_FILE
from planner.scenario.sourcing_words import BOUGHT, TERMS
from planner.yaml_io import Document, Frozen, validate

LASTING = ("on-demand", "reserved-1y", "reserved-3y")
"""Terms that hardware of years is rented on, where none are named."""
_DEPTH = 2
"""Blocks that a block of hardware is in: sourcing.rent.terms."""
PRICE = "sourcing.rent.price"
_LONG = "limits.deadline"
"""How long hardware is had, as of work how long it may take: --months 18."""
_GIVEN = {"hardware.candidates", "limits.gpus", "limits.max_nodes", _LONG}


class HardwareQuestion(Frozen):
    """Which nodes, how many, and how they may be had."""

    name: str = UNNAMED
    """A name for the question."""
    hardware: Hardware
    """Which nodes may be used."""
    sourcing: Sourcing
    """Where hardware comes from."""
    limits: Limits = Limits()
    """How many GPUs."""


def hardware_alone(reference: str | Mapping[str, object] | Document | None, values: Mapping[str, object],
                   catalog: Catalog, *, always: bool) -> dict[str, object] | None:
    """Return the values by path of a question that names hardware and no work, those of its file too; none of others.

    always: also where neither buying nor years are named. Raises InputError for a file that cannot be read.
    """
    if any(not _is_of_hardware(path) for path in values):
        return None
    if reference is not None:
        data = in_blocks(as_written(reference), catalog.recipes.requests)
        written = dict(_by_path(data)) if isinstance(data, dict) else {}
        if any(not _is_of_hardware(path) for path in written.keys() - {"name"}):
            return None
        values = {**{path: value for path, value in written.items() if path != "name"}, **values}
    terms = str(values.get(TERMS, ""))
    buys = any(path.startswith("sourcing.buy") for path in values)
    asks = always or buys or BOUGHT in terms.replace("'", "").replace("[", "").split(",")
    return dict(values) if "hardware.candidates" in values and asks else None


def _is_of_hardware(path: str) -> bool:
    return path in _GIVEN or path.startswith("sourcing.")


def _by_path(data: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Yield what a file says by path; that nodes may be bought, and no more of it, by its usual share of use."""
    for key, value in data.items():
        path = f"{before}{key}"
        if path == "sourcing.buy" and not value:
            yield "sourcing.buy.utilization", Buy().utilization
        elif isinstance(value, Mapping) and path.count(".") < _DEPTH:
            yield from _by_path(value, f"{path}.")
        else:
            yield path, value


def hardware_file(values: Mapping[str, object], labels: Mapping[str, str]) -> Document:
    """Return what a file of a question of hardware alone holds. Raises InputError."""
    if _LONG in values and KEPT not in values:
        values = {KEPT: values[_LONG], **{path: value for path, value in values.items() if path != _LONG}}
        labels = {**labels, KEPT: labels.get(_LONG, _LONG)}
    # what one pays is of no term
    lasting = {TERMS: list(LASTING)} if {TERMS, PRICE}.isdisjoint(values) else {}
    merged = merge(NO_FILE, {**lasting, **values}, labels)
    return replace(merged, data={key: value for key, value in merged.data.items() if key != "workload"})


def load_hardware(values: Mapping[str, object], catalog: Catalog, labels: Mapping[str, str]
                  ) -> tuple[HardwareQuestion, Defaults]:
    """Return the question that values by path ask, and the defaults that decided it. Raises InputError."""
    document, _ = in_dollars(hardware_file(values, labels), catalog.recipes.currencies)
    asked = validate(document, HardwareQuestion)
    if asked.limits.max_nodes is not None and asked.limits.gpus is not None:
        raise InputError("gpus and max_nodes are both given: one of them says how many")
    sourcing = asked.sourcing if asked.sourcing.buy else asked.sourcing.model_copy(update={"buy": Buy()})
    defaults: list[Default] = []
    if sourcing.buy is not None and "utilization" not in sourcing.buy.model_fields_set:
        defaults.append(Default(name="utilization", value=f"{sourcing.buy.utilization:.0%}", why="--utilization"))
    if "site" not in sourcing.model_fields_set:
        defaults.append(Default(name="site", value=sourcing.site, why="the default site of bought nodes"))
    found = pool(asked.hardware, sourcing, asked.limits, catalog, document, defaults)
    return asked.model_copy(update=found), defaults
