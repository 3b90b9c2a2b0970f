"""One variant answered, in this process or in any that has the planner installed."""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path

from planner.ask.account import Interrupted
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.errors import InputError, PlannerError
from planner.sweeping.task import SweepTask, SweepTerms, VariantOutcome


def answer(task: SweepTask, terms: SweepTerms, catalog: Catalog | None = None) -> VariantOutcome:
    """Return the plan of one variant, or its PlannerError; anything else that is raised is a bug and goes on.

    Without `catalog` this process opens its own, and keeps it.
    """
    try:
        plan = make_plan(task.scenario, catalog or _catalog(terms.folders, terms.digest),
                         defaults=task.defaults, time_limit=terms.time_limit)
    except PlannerError as error:
        return VariantOutcome(task.index, None, str(error))
    except Interrupted:
        raise KeyboardInterrupt from None  # a sweep keeps what is done; what was cut short is asked again
    return VariantOutcome(task.index, plan.model_dump(mode="json", by_alias=True), None, plan.notes)


@lru_cache(maxsize=2)
def _catalog(folders: tuple[str, ...], digest: str) -> Catalog:
    """Return the catalog of these folders, kept for the next variant; errors are not kept."""
    catalog = Catalog([Path(folder) for folder in folders], configs=True)
    if catalog.digest != digest:
        raise InputError(f"the catalog of {platform.node()} has digest {catalog.digest}, not {digest} as where the "
                         "sweep was started: install the same planner and catalog folders there")
    return catalog
