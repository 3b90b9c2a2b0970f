"""All ways at once: CP-SAT finds plans and HiGHS bounds, each from what the other found."""

from __future__ import annotations

import time
from dataclasses import replace

from planner.solver.fleet.branching import branched
from planner.solver.fleet.reading import better, read, solved
from planner.solver.fleet.relaxing import Relaxed, Relaxing
from planner.solver.fleet.schedule import CENT, Problem, Schedule
from planner.solver.fleet.scheduling_model import Scheduling
from planner.solver.fleet.windows import improved, near_best, unit_of
from planner.solver.settings import Settings

BRIEF, LONGER = 1.0, 10.0
"""Of CP-SAT's own time: in which it proves what is easy, and what it is given with a schedule to start from."""
NEAR = 1_000
"""Ways near the relaxation's best, which a first schedule is sought among."""
NEAR_GAP, NEAR_NODES = 5e-3, 20
"""At which that schedule is good enough, and nodes of branch and bound for it."""
MOST_BRANCHED, NODES = 30_000, 2_000
"""Variables up to which HiGHS bounds the whole in little time, and its nodes for it."""
FEW_NODES = 50
"""Of HiGHS, before anything else is known of services."""
NARROW = 1e-5
"""Share of the value that is no longer worth a search."""
SLACK = 1e-6
"""Share of the value that rounding may have hidden in what ways cost more."""
MANY = 20
"""Tasks from which on windows of them find more than CP-SAT on all."""
SHARE = 1 / 3
"""Of the time that is left, where there is a limit of it, for each step but the last."""


def exact(problem: Problem, settings: Settings, start: Schedule | None) -> Schedule:
    """Return the cheapest schedule of all ways, and pauses, as far as the time goes; `start` is where it starts from.

    What CP-SAT does not prove at once it goes on from a schedule of the ways near the relaxation's best; the bound is
    the best of those of the relaxation, of HiGHS and of CP-SAT.
    """
    model = Scheduling(problem)
    if settings.deterministic_limit is None:
        return solved(problem, model, settings, start)
    stop = None if settings.seconds is None else time.monotonic() + settings.seconds
    found = _tried(problem, model, settings, BRIEF, start, stop)
    if start is not None and start.value is not None and found.status not in ("optimal", "infeasible"):
        # out of time it may end with a dearer one than it began with
        found = replace(better(found, start), interrupted=found.interrupted)
    if found.status in ("optimal", "infeasible") or found.interrupted:
        return found
    if problem.services:
        found = _whole(problem, model, found, stop)
        if _is_done(found) and found.status == "feasible" and problem.tasks and not found.interrupted:
            found = better(found, _tried(problem, model, settings, LONGER, found, stop))
        if _is_done(found):
            return found
    if problem.tasks:  # services alone are nodes and no ways: there is nothing to relax
        found, model = _relaxed(problem, model, settings, found, stop)
    if _is_done(found):
        return found
    if len(problem.tasks) > MANY:
        left = None if stop is None else max(0.1, stop - time.monotonic())
        return better(found, improved(problem, replace(settings, seconds=left)))
    return better(found, _tried(problem, model, settings, settings.deterministic_limit, found, stop))


def _tried(problem: Problem, model: Scheduling, settings: Settings, limit: float, known: Schedule | None,
           stop: float | None) -> Schedule:
    """Return what CP-SAT finds in some of its own time from a schedule on, where there is one."""
    left = None if stop is None else max(0.1, stop - time.monotonic())
    limit = min(limit, settings.deterministic_limit or limit)
    return solved(problem, model, replace(settings, deterministic_limit=limit, seconds=left),
                  None if known is None or known.value is None else known)


def _relaxed(problem: Problem, model: Scheduling, settings: Settings, found: Schedule, stop: float | None
             ) -> tuple[Schedule, Scheduling]:
    """Return a better schedule or bound by what the relaxation tells, and the model of all schedules as cheap."""
    relaxation: Relaxing | None = None
    try:
        relaxation = Relaxing(problem, [] if found.value is None else [found])
        relaxed = relaxation.solve(_part(stop))
        if relaxed is not None:
            found = _near(problem, found, relaxed, stop)
            if not _is_closed(found) and found.value is not None:
                model = within(problem, relaxed, found.value)
        # the less is left between bound and value, the fewer ways are left to try
        if not (_is_done(found) if relaxed is None else _is_closed(found)):
            found = better(found, _tried(problem, model, settings, LONGER, found, stop))
        if not _is_done(found):
            found = _branched(problem, model, found, NODES, stop)
    except KeyboardInterrupt:
        if relaxation is not None:
            found = better(found, Schedule("undecided", bound=relaxation.bound))
        return replace(found, interrupted=True), model
    return found, model


def within(problem: Problem, relaxed: Relaxed, value: int) -> Scheduling:
    """Return the model of all schedules that cost no more than one that is known: ways that by the prices of the
    relaxation make any schedule dearer are left out.
    """
    most = value - relaxed.bound + max(SLACK * value, CENT)
    ways = [mine.take(more <= most) for mine, more in zip(relaxed.ways, relaxed.more, strict=True)]
    return Scheduling(problem, ways, (),
                      [[option for option, more in mine.items() if more <= most] for mine in relaxed.pausing])


def _is_closed(found: Schedule) -> bool:
    """Return whether nothing is left to prove."""
    return found.interrupted or found.status in ("optimal", "infeasible") or (
        found.value is not None and found.value == found.bound)


def _is_done(found: Schedule) -> bool:
    """Return whether nothing is left that is worth a search."""
    if found.interrupted or found.status == "infeasible":
        return True
    return found.value is not None and found.bound is not None and found.value - found.bound <= NARROW * found.value


def _near(problem: Problem, found: Schedule, relaxed: Relaxed, stop: float | None) -> Schedule:
    """Return the best schedule of the ways near the relaxation's best, with its bound, where it is better."""
    unit = unit_of(problem)
    bounded = better(found, Schedule("undecided", bound=-(-relaxed.bound // unit) * unit))
    model = Scheduling(problem, near_best(relaxed, NEAR), relaxed.paused)
    first = branched(model.program, NEAR_GAP, NEAR_NODES, _part(stop))
    return better(bounded, read(problem, model, first.values)) if first.values else bounded


def _whole(problem: Problem, model: Scheduling, found: Schedule, stop: float | None) -> Schedule:
    """Return what HiGHS makes of services with all else: their nodes are whole, and relaxed they cost far less, so that
    CP-SAT and prices of the relaxation prove little.
    """
    try:
        return _branched(problem, model, found, FEW_NODES, stop)
    except KeyboardInterrupt:
        return replace(found, interrupted=True)


def _branched(problem: Problem, model: Scheduling, found: Schedule, nodes: int, stop: float | None) -> Schedule:
    """Return what HiGHS makes of all ways where they are few enough, if it is better."""
    if len(model.program.lower) > MOST_BRANCHED:
        return found
    whole = branched(model.program, 0.0, nodes, _part(stop))
    bounded = better(found, Schedule("undecided", bound=whole.bound))
    return better(bounded, read(problem, model, whole.values)) if whole.values else bounded


def _part(stop: float | None) -> float | None:
    return None if stop is None else max(0.1, (stop - time.monotonic()) * SHARE)
