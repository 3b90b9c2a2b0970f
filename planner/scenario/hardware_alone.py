"""A question of hardware alone: rented or bought for some years, without a word of the work that it does."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.currencies import in_dollars
from planner.scenario.default import Default, Defaults
from planner.scenario.job import UNNAMED
from planner.scenario.limits import Buy, Hardware, Limits, Sourcing
from planner.scenario.load import merge
from planner.scenario.plainly import BOUGHT, KEPT, TERMS
from planner.scenario.pool import pool
from planner.scenario.resolve import NO_FILE
from planner.yaml_io import Document, Frozen, validate

LASTING = ("on-demand", "reserved-1y", "reserved-3y")
"""Terms that hardware of years is rented on, where none are named."""
_GIVEN = {"hardware.candidates", "limits.gpus", "limits.max_nodes"}


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


def asks_for_hardware(reference: object, values: Mapping[str, object], *, always: bool) -> bool:
    """Say whether values by path name hardware and no work; `always`, or only where buying or years are named too."""
    terms = str(values.get(TERMS, ""))
    named = reference is None and "hardware.candidates" in values and all(
        path in _GIVEN or path.startswith("sourcing.") for path in values)
    return named and (always or KEPT in values or BOUGHT in terms.replace("'", "").replace("[", "").split(","))


def load_hardware(values: Mapping[str, object], catalog: Catalog, labels: Mapping[str, str]
                  ) -> tuple[HardwareQuestion, Defaults]:
    """Return the question that values by path ask, and the defaults that decided it. Raises InputError."""
    lasting = {TERMS: list(LASTING)} if TERMS not in values else {}
    merged, _ = in_dollars(merge(NO_FILE, {**lasting, **values}, labels), catalog.recipes.currencies)
    data = merged.data if isinstance(merged.data, dict) else {}
    document = Document({key: value for key, value in data.items() if key != "workload"}, merged.file, merged.lines,
                        merged.labels)
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
