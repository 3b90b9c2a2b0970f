"""A plan whose question names the targets that it is to be started with."""

from __future__ import annotations

from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.scenario.launchable import names_target
from planner.scenario.portfolio import AnyQuestion


def told_as_asked(plan: Plan, asked: AnyQuestion, catalog: Catalog) -> Plan:
    """Return a plan that the targets which its question names can be told. Raises InputError for what they cannot."""
    if not names_target(asked):
        return plan
    # emitters take long to load, and few questions name a target
    from planner.launch.written import told_to_target

    return told_to_target(plan, catalog)
