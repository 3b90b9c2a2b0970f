"""GPU-cluster capacity planner: the cheapest GPUs, and the sharding layout on them, that do the work, proven.

The map. A module imports only from a smaller number or its own folder (tests/test_architecture.py).

    units.py errors.py yaml_io.py   0   the unit is part of the value; the exception tree; the only YAML
    catalog/      1   WHAT EXISTS            hardware, models, prices, stacks: each fact with its source
    scenario/     2   WHAT IS ASKED          workload, hardware, limits, objective; load.py reads them
    layouts/      3   WHAT COULD BE DONE     the axis table, named legality rules, enumeration
    physics/      4   WHAT EACH NEEDS        memory, compute, communication: arrays in, arrays out; serving/ its steps
    money/        5   WHAT IT COSTS          rent, and what failures cost
    solver/       6   WHICH TO CHOOSE        staging, fleet, frontier: the only home of ortools
    answer/       7   WHAT WE SAY            Plan and Assignment, versioned JSON
    render/       8   HOW IT READS           sentences and tables
    simulate/     8   DOES IT HOLD           a serving fleet replayed event by event over a trace
    evidence/     8   HOW FAR TO TRUST IT    predicted against measured
    fit/          9   WHICH CONSTANTS        those that measured runs decide
    serving/      9   WHO SERVES IT          the fleet that holds a service level, its replay and comparison
    explaining/   9   WHY                    the cause of a no, why not that, what one more is worth
    pipeline.py api.py              9   the whole flow, and the public functions
    sweep/       10   WHAT IF                variants, resumable, on local cores or a Dask cluster
    cli/         11   one file a command: arguments in, exit code out

Public: `plan`, `estimate` and `validate` return what the commands of these names print as JSON. They, the
answer types and the exceptions are imported when first used, so that `import planner` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from planner.version import __version__

if TYPE_CHECKING:
    from planner.answer.assignment import Assignment
    from planner.answer.schema import Plan
    from planner.api import estimate, plan, validate
    from planner.errors import InputError, MissingFact, PlannerError, UnknownName, Unsupported

__all__ = [
    "Assignment",
    "InputError",
    "MissingFact",
    "Plan",
    "PlannerError",
    "UnknownName",
    "Unsupported",
    "__version__",
    "estimate",
    "plan",
    "validate",
]
_HOMES = {"planner.api": ("estimate", "plan", "validate"), "planner.answer.assignment": ("Assignment",),
          "planner.answer.schema": ("Plan",),
          "planner.errors": ("InputError", "MissingFact", "PlannerError", "UnknownName", "Unsupported")}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'planner' has no attribute {name!r}")
