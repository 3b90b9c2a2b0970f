"""The cheapest schedule of many jobs on one fleet, with its proof: solved for money, then for early ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from planner.process.together import on_processes
from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.apart import first_of
from planner.solver.fleet.reading import solved
from planner.solver.fleet.schedule import CENT, Placed, Problem, Schedule
from planner.solver.fleet.scheduling_model import Scheduling
from planner.solver.fleet.scheduling_tasks import TaskVars
from planner.solver.fleet.waiting import by_start, waits
from planner.solver.fleet.ways import TaskWays, every_way
from planner.solver.progress import SoFar, say
from planner.solver.settings import Effort, Heard, Settings

LIMITED = Settings(deterministic_limit=30.0, linearization=2, so_far=True)
"""About a minute."""
LEAST_SECONDS = 1.0
"""Left to it where the search for columns took all the time there was."""
MOST_EXACT, MOST_EXACT_OF_MANY, MANY = 200_000, 20_000, 40
"""Ways of all tasks up to which CP-SAT looks at all at once; of more tasks than so many it finds little in time."""
MUCH = 3
"""As many ways, times this, leave little to win from looking at the cheapest first."""
USED_SHARE = 0.8
"""Of the time that is left; the rest is for what is said about the schedule."""
TIDY_SHARE = 0.9
"""Of the time, after which no earlier ends are looked for."""
TIDIED = Settings(deterministic_limit=1.0)
SETTLED = Settings(deterministic_limit=5.0, linearization=2)


def schedule(problem: Problem, settings: Settings = LIMITED, over: Problem | None = None) -> Schedule:
    """Return the cheapest schedule; among the cheapest one whose tasks end early, as far as a short search goes.

    over: the same problem with more options of each task, which none is taken of and the bound holds for too.
    """
    began = time.monotonic()
    if waits(problem):
        return by_start(problem, settings)
    try:
        found = _cheapest(problem, settings, over)
    except KeyboardInterrupt:
        if not settings.so_far:
            raise
        return replace(first_of(problem, settings) or Schedule("undecided"), interrupted=True)
    # stating it takes as long as a window does
    late = settings.seconds is not None and time.monotonic() - began > settings.seconds * TIDY_SHARE
    if not problem.tasks or found.value is None or found.interrupted or late:
        return found
    left = None if settings.seconds is None else max(0.1, settings.seconds - (time.monotonic() - began))
    try:
        return _earlier(problem, found, left)
    except KeyboardInterrupt:
        if not settings.so_far:
            raise
        return replace(found, interrupted=True)


def _cheapest(problem: Problem, settings: Settings, over: Problem | None) -> Schedule:
    """Return the cheapest schedule, whose tasks may end late."""
    most = MOST_EXACT_OF_MANY if len(problem.tasks) > MANY else MOST_EXACT
    above = over is not None or sum(len(mine) for mine in every_way(problem)) > most
    if above and settings.deterministic_limit is not None:
        # GLOP takes half a second to load
        from planner.solver.fleet.windows import improved

        return improved(problem, settings, over)
    cheap = _cheap(problem, settings)
    if cheap is not None and (cheap.status == "optimal" or cheap.interrupted):
        return cheap
    # GLOP and HiGHS take half a second to load
    from planner.solver.fleet.exact import exact

    return exact(problem, settings, cheap or first_of(problem, settings))


def telling(problem: Problem) -> Heard:
    """Return what tells who waits of the best schedule and bound so far, in cents, whichever search they are of; of no
    value where jobs may be left out, whose worth the solver counts and nobody pays.
    """
    counted = not any(task.worth for task in problem.tasks)
    best: list[int | None] = [None, None]

    def heard(value: int | None, bound: int | None) -> None:
        if counted:
            best[0] = min((usd for usd in (best[0], value) if usd is not None), default=None)
            best[1] = max((usd for usd in (best[1], bound) if usd is not None), default=None)
        found, least = (None if usd is None else usd // CENT for usd in best)
        least = min((usd for usd in (found, least) if usd is not None), default=None) if least is not None else None
        say(lambda: SoFar("cost", 1.0, found, least, "schedules of all jobs"))

    heard(None, None)
    return heard


def _cheap(problem: Problem, settings: Settings) -> Schedule | None:
    """Return a schedule of every task in ways at the least that any costs; optimal where its services cost the least.

    None where there is none, where nodes come in lots, which no way pays for, or where that takes long.
    """
    if not problem.tasks or any(pool.lots for pool in problem.pools):
        return None
    ways = every_way(problem)
    least = [min([option.micro_usd for option in task.options] + ([] if task.worth is None else [task.worth]))
             for task in problem.tasks]
    cheapest = [mine.take(mine.micro_usd == usd) for mine, usd in zip(ways, least, strict=True)]
    if not all(len(mine) for mine in cheapest) or sum(map(len, cheapest)) * MUCH > sum(map(len, ways)):
        return None
    brief = replace(SETTLED, seconds=settings.seconds, so_far=settings.so_far)
    alone = replace(problem, tasks=())
    served = solved(alone, Scheduling(alone), brief) if problem.services else Schedule("optimal", value=0, bound=0)
    if served.bound is None:
        return None
    found = solved(problem, Scheduling(problem, cheapest), brief)
    if found.value is None or check_schedule(problem, found):
        return None
    bound = sum(least) + served.bound
    return replace(found, status="optimal" if found.value == bound else "feasible", bound=bound)


def _earlier(problem: Problem, found: Schedule, seconds: float | None) -> Schedule:
    """Return a schedule that costs no more, by the same options, services and lots, and whose tasks end earlier."""
    assert found.value is not None
    model = Scheduling(problem, *_ways_like(problem, found))
    point, program = model.point(found), model.program
    assert point is not None
    program.row(list(enumerate(program.price)), most=found.value)
    for one in (*(one for service in model.counts for load in service for row in load for one in row),
                *(one for lots in model.lots for one, _ in lots)):
        program.row([(one, 1)], point.get(one, 0), point.get(one, 0))
    program.price = [0] * len(program.price)
    for mine in model.tasks:
        _prefer_early(model, mine)
    tidied = solved(problem, model, replace(TIDIED, seconds=seconds), found)
    return replace(tidied, status=found.status, bound=found.bound) if tidied.value == found.value else found


def _prefer_early(model: Scheduling, mine: TaskVars) -> None:
    """Price the ways of a task by when they start and end; with pauses that are not known yet as the latest."""
    for one, start, end in zip(mine.whole, mine.ways.start, mine.ways.end, strict=True):
        model.program.price[one] = int(start + end)
    for placed, one in mine.patterns:
        model.program.price[one] = placed.runs[0][0] + placed.runs[-1][1]
    for one in mine.by_pauses.values():
        model.program.price[one] = 2 * model.problem.periods


def _ways_like(problem: Problem, found: Schedule) -> tuple[list[TaskWays], list[tuple[Placed, ...]]]:
    """Return all ways of each task in the option that it is done in; with pauses the one way."""
    ways, paused = list[TaskWays](), list[tuple[Placed, ...]]()
    for mine, placed in zip(every_way(problem), found.tasks, strict=True):
        whole = placed is not None and len(placed.runs) == 1
        ways.append(mine.take(mine.option == (placed.option if placed is not None and whole else -1)))
        paused.append(() if placed is None or whole else (placed,))
    return ways, paused


def keeping(problem: Problem, found: Schedule, before: Sequence[Placed | None]) -> Schedule:
    """Return a schedule that costs no more, with as many of the first tasks left as they were as can be found, and the
    others early.
    """
    assert found.value is not None
    model = Scheduling(problem)
    program = model.program
    program.row(list(enumerate(program.price)), most=found.value)
    program.price = [0] * len(program.price)
    for mine in model.tasks[len(before):]:
        _prefer_early(model, mine)
    worth = 1 + 2 * problem.periods * len(model.tasks)
    for at, (mine, placed) in enumerate(zip(model.tasks, before, strict=False)):
        stays = program.variable(price=-worth)
        kept = model.chosen(at, placed) if placed is not None else None if mine.rejected is None else {mine.rejected: 1}
        if kept is None:
            program.upper[stays] = 0
            continue
        for one, value in kept.items():
            # no more than its value of each, which is 1 or counts pauses
            program.row([(stays, value), (one, -1)], most=0)
    kept_to = solved(problem, model, SETTLED)
    return replace(kept_to, status=found.status, bound=found.bound) if kept_to.value is not None and (
        kept_to.value <= found.value) else found


def checked(problem: Problem, effort: Effort, over: Problem | None = None) -> Schedule:
    """Return the cheapest schedule in the time that is left, with a bound that holds for more options of each task too
    where those are given. Raises RuntimeError where a check contradicts it.
    """
    left = None if effort.stop is None else max(effort.stop - time.monotonic(), LEAST_SECONDS)
    settings = LIMITED if left is None else replace(LIMITED, deterministic_limit=left, seconds=left * USED_SHARE)
    with on_processes(effort.workers):
        found = schedule(problem, replace(settings, heard=telling(problem)), over)
    if wrong := check_schedule(problem, found):
        raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
    return found
