"""The limits of a portfolio by name: as they were asked, lifted, and what a schedule takes of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from fractions import Fraction

from planner.jobs.agenda import POWER, QUARTER, Agenda
from planner.jobs.columns import MICRO
from planner.scenario.recurring import due_written
from planner.solver.check_schedule import spent, spent_within, total_of
from planner.solver.fleet.schedule import Problem, Schedule
from planner.units import plural


def limits_of(agenda: Agenda) -> Iterator[str]:
    """Yield what may be lifted, by its name."""
    if agenda.problem.budget is not None:
        yield "budget"
    yield from dict.fromkeys(agenda.purses)
    yield from agenda.ceilings
    jobs = {item.job for item in agenda.items}
    for at in sorted(jobs):
        asked = agenda.portfolio.jobs[at]
        if asked.deadline is not None and asked.late is None:
            yield f"{asked.name}.deadline"


def asked_limit(agenda: Agenda, name: str) -> str:
    """Return a limit as it was asked."""
    limits, rent = agenda.portfolio.limits, agenda.portfolio.sourcing.rent
    if name.endswith(".deadline"):
        asked = next(job for job in agenda.portfolio.jobs if f"{job.name}.deadline" == name)
        return "" if asked.deadline is None else due_written(asked.deadline)
    if name.startswith("quota."):
        return plural(rent.quota[name.removeprefix("quota.")], "node") if rent else ""
    stated = limits.model_dump(mode="json")
    return str(stated[QUARTER][name.removeprefix(f"{QUARTER}.")] if name.startswith(f"{QUARTER}.") else stated[name])


def without_limits(agenda: Agenda, lifted: Collection[str]) -> Problem:
    """Return the problem without some limits; the horizon stays."""
    problem, jobs = agenda.problem, agenda.portfolio.jobs
    tasks = tuple(replace(task, deadline=None) if f"{jobs[item.job].name}.deadline" in lifted else task
                  for task, item in zip(problem.tasks, agenda.items, strict=True))
    return replace(problem, tasks=tasks, budget=None if "budget" in lifted else problem.budget,
                   purses=tuple(purse for name, purse in zip(agenda.purses, problem.purses, strict=True)
                                if name not in lifted),
                   ceilings=tuple(ceiling for name, ceiling in zip(agenda.ceilings, problem.ceilings, strict=True)
                                  if name not in lifted))


def taken_of(agenda: Agenda, name: str, schedule: Schedule) -> str:
    """Return what a schedule takes of a limit, up, in the unit that it is asked in."""
    if name == "budget":
        return dollars(sum(usd for usd, _, _ in spent(agenda.problem, schedule)))
    if name in agenda.purses:
        return dollars(max(spent_within(agenda.problem, schedule, purse) for mine, purse in zip(
            agenda.purses, agenda.problem.purses, strict=True) if mine == name))
    ceiling = agenda.problem.ceilings[agenda.ceilings.index(name)]
    most = max(total_of(agenda.problem, schedule, ceiling))
    return f"{most:,} W" if name in POWER else plural(most, "node") if name.startswith("quota.") else f"{most:,}"


def dollars(micro_usd: Fraction | int) -> str:
    """Write money up to whole dollars, so that it is enough."""
    return f"{-(-micro_usd // int(MICRO)):,} USD"
