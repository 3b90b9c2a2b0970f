"""GPU-cluster capacity planner: the cheapest GPUs, and the sharding layout on them, that do the work, proven.

The map. A module imports only from the rooms above its own, and from its own (tests/test_architecture.py).

    units/ errors.py text_io.py yaml_io.py                the unit is part of the value; the exception tree; files
    process/                 the version; workers that end with their parent; Ctrl-C at any moment
    catalog/     WHAT EXISTS             hardware, models, prices, stacks, engines: each fact with its source
    scenario/    WHAT IS ASKED           workloads by kind, hardware, sourcing, limits, objective
    layouts/     WHAT COULD BE DONE      the axis table, named legality rules, enumeration
    physics/     WHAT EACH NEEDS         kernels and collectives; training/ and serving/: arrays in, arrays out
    money/       WHAT IT COSTS           rent, own, buy, and what failures cost
    simulate/    DOES IT HOLD            a fleet of replicas replayed event by event over a trace
    solver/      WHICH TO CHOOSE         search/ layouts to columns, staging/ inside one layout, fleet/ across all jobs
    answer/      WHAT WE SAY             the schema of every answer, versioned JSON
    jobs/        EVERY KIND OF WORK      job.py says what a kind is; training/ serving/: question to columns to answer
    evidence/    HOW FAR TO TRUST IT     predicted against measured
    fit/         WHICH CONSTANTS         those that measured runs decide
    probe/       WHAT IS MEASURED        rates of this machine, with torch
    ask/         EVERY VERB              plan, estimate, compare, explain, hold, validate, calibrate: knows no kind
    render/      HOW IT READS            text and HTML
    launch/      WHAT STARTS IT          emitters/ files of stacks, places/ jobs of schedulers, checks/ by own parsers
    sweeping/    WHAT IF                 variants, resumable, on local cores or a Dask cluster
    api/         PYTHON                  the public functions
    web/         THE BROWSER             the page and the JSON API, on this machine
    cli/         THE TERMINAL            one file a command: arguments in, exit code out

Public: `plan`, `estimate`, `compare`, `explain`, `sweep` and `validate` return what the commands of these names print
as JSON. They, the answer types and the exceptions are imported when first used, so that `import planner` costs nothing.
"""

from __future__ import annotations

import sys

if sys.argv[:1] == ["-m"] and sys.orig_argv[1:3] == ["-m", "planner"]:  # this is the command, and its first moment
    from planner.process.interrupts import leave_at_once

    leave_at_once()

from importlib import import_module

from planner.process.version import __version__

TYPE_CHECKING = False  # as in typing, which takes long to import

if TYPE_CHECKING:
    from planner.answer.assignment import Assignment
    from planner.answer.comparison import Comparison
    from planner.answer.explanation import Explanation
    from planner.answer.schema import Plan
    from planner.answer.validation import Validation
    from planner.api.functions import compare, estimate, explain, plan, sweep, validate
    from planner.errors import InputError, MissingFact, PlannerError, UnknownName, Unsupported
    from planner.sweeping.line import Sweep

__all__ = [
    "Assignment",
    "Comparison",
    "Explanation",
    "InputError",
    "MissingFact",
    "Plan",
    "PlannerError",
    "Sweep",
    "UnknownName",
    "Unsupported",
    "Validation",
    "__version__",
    "compare",
    "estimate",
    "explain",
    "plan",
    "sweep",
    "validate",
]
_FUNCTIONS = "planner.api.functions"
_HOMES = {_FUNCTIONS: ("compare", "estimate", "explain", "plan", "sweep", "validate"),
          "planner.answer.assignment": ("Assignment",), "planner.answer.comparison": ("Comparison",),
          "planner.answer.explanation": ("Explanation",), "planner.answer.schema": ("Plan",),
          "planner.answer.validation": ("Validation",), "planner.sweeping.line": ("Sweep",),
          "planner.errors": ("InputError", "MissingFact", "PlannerError", "UnknownName", "Unsupported")}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    return _meant(name)


def _meant(name: str) -> object:
    """Return a function by another name that people have for it, as the command line does: serve, finetune, fits."""
    from functools import partial

    from planner.scenario.flag_names import MEANT, VERBS

    verb = next((verb for verb in ("plan", "compare", "estimate") if name in VERBS[verb].split()), None)
    if verb is None and name not in MEANT:
        errors = name.endswith(("Error", "Exception", "Infeasible"))
        known = ", ".join(_HOMES["planner.errors"]) + (
            "; that there is no plan is an answer, and no error: plan.status, plan.infeasible.because"
        ) if errors else ", ".join(_HOMES[_FUNCTIONS])
        raise AttributeError(f"module 'planner' has no attribute {name!r}; it has {known}")
    return partial(getattr(import_module(_FUNCTIONS), verb or "plan"), **MEANT.get(name, {}))
