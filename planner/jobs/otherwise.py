"""A question as it would be with another of what people use, where it leaves that open: engine, format, stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.answer.assignment import Assignment
from planner.catalog.engine import Engine
from planner.catalog.load import Catalog
from planner.jobs.hours import HOURS
from planner.jobs.job import Change
from planner.jobs.serving.narrower import in_fewer_bits
from planner.jobs.solved import ResolvedScenario
from planner.scenario.default import Default
from planner.scenario.generation import Generation
from planner.scenario.scenario import AnyScenario, Scenario, ServingScenario
from planner.scenario.usual import usual_release
from planner.scenario.workload import AUTO
from planner.units import MONTH_DAYS


def by_engines(scenario: AnyScenario, catalog: Catalog
               ) -> Iterator[tuple[str, str, Default | None, AnyScenario]]:
    """Yield a question of one service by each engine but its own: the own, the other, its release where that is not the
    newest, and the question.
    """
    if not isinstance(scenario, ServingScenario) or scenario.workload is None or isinstance(
            scenario.workload, Generation):
        return
    for other in catalog.all("engines", Engine):
        if other.name != (was := scenario.workload.engine):
            work = scenario.workload.model_copy(update={"engine": other.name, "engine_version": None})
            old = usual_release(work, scenario.hardware.candidates, catalog)
            work = work.model_copy(update={"engine_version": old.value} if old else {})
            yield was, other.name, old, scenario.model_copy(update={"workload": work})


def by_last_stacks(scenario: AnyScenario, catalog: Catalog) -> tuple[tuple[str, ...], Scenario] | None:
    """Return the stacks that few use for the method of a run that leaves its stack open, and the question by these."""
    if not isinstance(scenario, Scenario) or scenario.workload.stack != (AUTO,):
        return None
    names = tuple(stack.name for stack in catalog.last_stacks(scenario.workload.method or "pretrain"))
    work = scenario.workload.model_copy(update={"stack": names})
    return (names, scenario.model_copy(update={"workload": work})) if names else None


def is_last_resort(made: Assignment, scenario: AnyScenario, catalog: Catalog) -> bool:
    """Say whether a run that leaves its stack open is by one that few use for its method."""
    last = by_last_stacks(scenario, catalog)
    return last is not None and made.stack in last[0]


def in_narrower_formats(scenario: AnyScenario) -> Iterator[tuple[str, ServingScenario]]:
    """Yield a question of one service of text with its weights in each format of fewer bits, the widest first."""
    if isinstance(scenario, ServingScenario) and scenario.workload is not None and not isinstance(
            scenario.workload, Generation):
        for name, work in in_fewer_bits(scenario.workload):
            yield name, scenario.model_copy(update={"workload": work})


def affordable(question: ResolvedScenario, usd: float) -> ResolvedScenario | None:
    """Return a question of a service, all of whose fleets for less money a month have no node that by itself costs as
    much, without such nodes; none where nothing is left. A question of training with that budget at most.
    """
    if isinstance(question.scenario, Scenario) and not question.terms.robust:
        return question.changed(Change(limits={"budget": usd}))
    if not isinstance(question.scenario, ServingScenario) or any(
            asked.ends is not None for asked in question.scenario.services):
        return question
    # a node that an hour of the day adds is paid for in that hour
    hours = 1 if any(asked.day for asked in question.scenario.services) else HOURS
    market = question.terms.market.below(usd / (MONTH_DAYS * hours))
    return None if market is None else question.under(replace(question.terms, market=market))
