"""Tasks that wait for each other and cost nothing but being late: what CP-SAT does not prove at once goes on from the
best of many lists, whose windows are solved anew.
"""

from __future__ import annotations

import time
from dataclasses import replace

from planner.solver.fleet.compressing import compress
from planner.solver.fleet.even import evenly
from planner.solver.fleet.evolving import Evolution
from planner.solver.fleet.reading import better, value_of
from planner.solver.fleet.schedule import Problem, Schedule
from planner.solver.fleet.starting import ByStart
from planner.solver.settings import Settings

BRIEF, EVEN, EVOLVED, COMPRESSED = 0.1, 0.1, 0.2, 0.35
"""Shares of the time: in which CP-SAT proves what is easy, for options that use all pools evenly, for lists, and for
windows of the best of them; the rest is for CP-SAT from the best schedule.
"""
PLACED_A_UNIT = 300_000
"""Tasks that lists place, moved late and early again, in a unit of CP-SAT's deterministic time, about."""


def waits(problem: Problem) -> bool:
    """Say whether tasks wait for each other, nothing but their dates costs, and nothing asks for a choice by period."""
    by_period = bool(problem.services or problem.purses) or any(task.may_pause for task in problem.tasks)
    costs = any(pool.lots for pool in problem.pools) or any(
        option.micro_usd for task in problem.tasks for option in task.options)
    return any(task.after for task in problem.tasks) and not by_period and not costs


def by_start(problem: Problem, settings: Settings) -> Schedule:
    """Return the cheapest schedule, as far as the time goes where there is a limit of it."""
    stated, limit = ByStart(problem), settings.deterministic_limit
    if limit is None:
        return stated.solved(settings)
    stop = None if settings.seconds is None else time.monotonic() + settings.seconds
    found = stated.solved(_part(settings, BRIEF, stop))
    if found.status in ("optimal", "infeasible") or found.interrupted:
        return found
    known = better(found, _listed(problem, settings, found.bound or 0, stop))
    if known.interrupted or known.status == "optimal":
        return known
    return better(known, stated.solved(_part(settings, 1 - BRIEF - EVEN - EVOLVED - COMPRESSED, stop), known.tasks))


def _listed(problem: Problem, settings: Settings, bound: int, stop: float | None) -> Schedule:
    """Return the best of many lists, their windows solved anew."""
    assert settings.deterministic_limit is not None
    limit, interrupted = settings.deterministic_limit, False
    evolution = Evolution(problem, settings.seed)
    try:
        least, evolution.modes = evenly(problem, _part(settings, EVEN, stop))
        bound = max(bound, least)
        count = round(limit * EVOLVED * PLACED_A_UNIT / len(problem.tasks))
        evolution.run(count, bound, _until(stop, EVOLVED / (1 - BRIEF - EVEN)), settings.heard)
        if evolution.best is not None:
            compress(evolution, _part(settings, COMPRESSED, _until(
                stop, COMPRESSED / (1 - BRIEF - EVEN - EVOLVED))), bound)
    except KeyboardInterrupt:
        interrupted = True
    if not evolution.placed:
        return Schedule("undecided", bound=bound, interrupted=interrupted)
    made = Schedule("feasible", evolution.placed, (), tuple((0,) * len(pool.lots) for pool in problem.pools),
                    bound=bound, interrupted=interrupted)
    return replace(made, value=value_of(problem, made))


def _until(stop: float | None, share: float) -> float | None:
    """Return when a share of the time that is left is over."""
    return None if stop is None else time.monotonic() + (stop - time.monotonic()) * share


def _part(settings: Settings, share: float, stop: float | None) -> Settings:
    """Return settings with a share of the time, or what is left of it."""
    left = None if stop is None else max(0.1, stop - time.monotonic())
    return replace(settings, deterministic_limit=(settings.deterministic_limit or 0.0) * share, seconds=left)
