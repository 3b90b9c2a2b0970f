"""The cheapest schedule of many jobs on one fleet, with its proof: solved for money, then for early ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ortools.sat.python import cp_model

from planner.solver.check_schedule import check_schedule
from planner.solver.engine import Ending, run
from planner.solver.fleet.schedule import Placed, Problem, Runs, Schedule, Task, late_cost, lateness
from planner.solver.fleet.scheduling_model import Model, runs_of
from planner.solver.fleet.scheduling_tasks import TaskVars
from planner.solver.settings import Effort, Settings

LIMITED = Settings(deterministic_limit=20.0, presolve=False)
"""About a minute. The presolve of CP-SAT 9.15 loses solutions of cumulatives with optional intervals."""
LEAST_SECONDS = 1.0
"""Left to it where the search for columns took all the time there was."""
TIDIED = Settings(deterministic_limit=1.0, presolve=False)
SETTLED = Settings(deterministic_limit=5.0, presolve=False)


def schedule(problem: Problem, settings: Settings = LIMITED) -> Schedule:
    """Return the cheapest schedule; among the cheapest one whose tasks end early, as far as a short search goes."""
    stated = Model(problem)
    ending = run(stated.model, stated.objective(), settings)
    if ending.value is None:
        return Schedule(ending.status, bound=ending.bound)
    found = _read(problem, stated, ending)
    return _earlier(problem, found) if problem.tasks else found


def _decided(stated: Model, known: Schedule) -> Iterator[tuple[cp_model.IntVar, int, bool]]:
    """Yield variables with their values in a schedule, and whether each is about when, and not about what."""
    for mine, placed in zip(stated.tasks, known.tasks, strict=True):
        runs = () if placed is None else placed.runs
        option = None if placed is None else placed.option
        yield from ((one, int(option == at and len(runs) == 1), False) for at, one in enumerate(mine.whole))
        for at, one in mine.by_pauses.items():
            paused = option == at and len(runs) > 1
            active = {period for start, end in runs for period in range(start, end)} if paused else set()
            yield one, int(paused), False
            yield from ((one, int(period in active), True) for period, one in mine.paused[at].items())
        if runs:
            yield mine.start, runs[0][0], True
    for service, counts in zip(stated.counts, known.services, strict=True):
        for load, rows in zip(service, counts, strict=True):
            for variables, values in zip(load, rows, strict=True):
                yield from ((one, value, False) for one, value in zip(variables, values, strict=True))
    for variables, nodes in zip(stated.lots, known.lots, strict=True):
        yield from ((one, value, False) for one, value in zip(variables, nodes, strict=True))


def _earlier(problem: Problem, found: Schedule) -> Schedule:
    """Return a schedule that costs no more, by the same options, services and lots, and whose tasks end earlier."""
    assert found.value is not None
    stated = Model(problem)
    for variable, value, is_when in _decided(stated, found):
        if is_when:
            stated.model.add_hint(variable, value)
        else:
            stated.model.add(variable == value)
    stated.model.add(stated.objective() <= found.value)
    ending = run(stated.model, sum(mine.start + mine.ends for mine in stated.tasks), TIDIED)
    if ending.value is None:
        return found
    tidied = _read(problem, stated, ending)
    return replace(tidied, status=found.status, bound=found.bound) if tidied.value == found.value else found


def keeping(problem: Problem, found: Schedule, before: Sequence[Placed | None]) -> Schedule:
    """Return a schedule that costs no more, with as many of the first tasks left as they were as can be found."""
    assert found.value is not None
    stated = Model(problem)
    for variable, value, _ in _decided(stated, found):
        stated.model.add_hint(variable, value)
    stated.model.add(stated.objective() <= found.value)
    stay = [_stays(stated, mine, placed) for mine, placed in zip(stated.tasks, before, strict=False)]
    ending = run(stated.model, -sum(stay), SETTLED)
    if ending.value is None:
        return found
    kept = _read(problem, stated, ending)
    return replace(kept, status=found.status, bound=found.bound) if kept.value == found.value else found


def _stays(stated: Model, mine: TaskVars, placed: Placed | None) -> cp_model.IntVar:
    """Return whether a task is as it was: in the same option at the same time, or rejected."""
    stays = stated.model.new_bool_var("stays")
    if placed is None:
        stated.model.add(mine.rejected == 1).only_enforce_if(stays)
        return stays
    for variable, value in _values(mine, placed):
        stated.model.add(variable == value).only_enforce_if(stays)
    return stays


def _values(mine: TaskVars, placed: Placed) -> Iterator[tuple[cp_model.IntVar, int]]:
    yield mine.start, placed.runs[0][0]
    if len(placed.runs) == 1:
        yield mine.whole[placed.option], 1
        return
    yield mine.by_pauses[placed.option], 1
    active = {period for start, end in placed.runs for period in range(start, end)}
    yield from ((one, int(period in active)) for period, one in mine.paused[placed.option].items())


def _read(problem: Problem, stated: Model, ending: Ending) -> Schedule:
    """Return the schedule that was found, at what it costs: exactly, which is no more than the model has."""
    tasks = tuple(_placed(problem, task, mine, ending)
                  for task, mine in zip(problem.tasks, stated.tasks, strict=True))
    services = tuple(tuple(tuple(tuple(ending.read(one) for one in row) for row in load) for load in service)
                     for service in stated.counts)
    lots = tuple(tuple(ending.read(one) for one in counts) for counts in stated.lots)
    found = Schedule(ending.status, tasks, services, lots, bound=ending.bound)
    return replace(found, value=value_of(problem, found))


def _placed(problem: Problem, task: Task, mine: TaskVars, ending: Ending) -> Placed | None:
    for at, one in enumerate(mine.whole):
        if ending.read(one):
            start = ending.read(mine.start)
            return Placed(at, ((start, start + problem.length(task.options[at])),))
    for at, one in mine.by_pauses.items():
        if ending.read(one):
            active = tuple(period for period, runs in mine.paused[at].items() if ending.read(runs))
            return _trimmed(problem, task, at, active)
    return None


def _trimmed(problem: Problem, task: Task, at: int, active: tuple[int, ...]) -> Placed:
    """Return a task with pauses without the periods at its end that it does not need."""
    option, size = task.options[at], problem.period_seconds

    def needed(runs: Runs) -> int:
        return option.seconds + (len(runs) - 1) * option.resume_seconds

    while len(active) > 1 and (len(active) - 1) * size >= needed(tuple(runs_of(active[:-1]))):
        active = active[:-1]
    return Placed(at, tuple(runs_of(active)))


def value_of(problem: Problem, found: Schedule) -> int:
    """Return what a schedule costs, in micro-USD."""
    total = 0
    for task, placed in zip(problem.tasks, found.tasks, strict=True):
        total += (task.worth or 0) if placed is None else placed.cost(task) + late_cost(
            task, lateness(problem, task, placed))
    for service, counts in zip(problem.services, found.services, strict=True):
        for load, rows in zip(service.loads, counts, strict=True):
            total += len(load.periods) * sum(
                hours * count * block.nodes * problem.pools[block.pool].micro_usd_per_node_hour
                for (_, hours), row in zip(load.needs, rows, strict=True)
                for block, count in zip(service.blocks, row, strict=True))
    for pool, nodes in zip(problem.pools, found.lots, strict=True):
        total += sum(lot.cost(count) for lot, count in zip(pool.lots, nodes, strict=True))
    return total


def checked(problem: Problem, effort: Effort) -> Schedule:
    """Return the cheapest schedule in the time that is left. Raises RuntimeError where a check contradicts it."""
    settings = LIMITED if effort.stop is None else replace(
        LIMITED, deterministic_limit=max(effort.stop - time.monotonic(), LEAST_SECONDS))
    found = schedule(problem, settings)
    if wrong := check_schedule(problem, found):
        raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
    return found
