"""The cheapest schedule of many jobs on one fleet, with its proof: solved for money, then for early ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from planner.solver.check_schedule import check_schedule
from planner.solver.engine import Ending
from planner.solver.fleet.pausing import runs_of
from planner.solver.fleet.schedule import Placed, Problem, Runs, Schedule, Task, late_cost, lateness
from planner.solver.fleet.scheduling_model import Model
from planner.solver.fleet.scheduling_tasks import TaskVars, is_linked
from planner.solver.fleet.stating import Stated
from planner.solver.fleet.ways import Ways, ways_of
from planner.solver.settings import Effort, Settings

LIMITED = Settings(deterministic_limit=30.0, linearization=2)
"""About a minute."""
LEAST_SECONDS = 1.0
"""Left to it where the search for columns took all the time there was."""
TIDIED = Settings(deterministic_limit=1.0)
SETTLED = Settings(deterministic_limit=5.0, linearization=2)


def schedule(problem: Problem, settings: Settings = LIMITED) -> Schedule:
    """Return the cheapest schedule; among the cheapest one whose tasks end early, as far as a short search goes."""
    found = solved(problem, Model(problem), settings)
    return _earlier(problem, found) if problem.tasks and found.value is not None else found


def solved(problem: Problem, model: Model, settings: Settings, known: Schedule | None = None) -> Schedule:
    """Return the cheapest schedule of a model; `known` is where it starts from."""
    stated = Stated(model.program)
    point = None if known is None else model.point(known)
    if point is not None:
        stated.hint(point)
    ending = stated.solve(settings)
    if ending.value is None:
        return Schedule(ending.status, bound=ending.bound)
    return _read(problem, model, stated, ending)


def _earlier(problem: Problem, found: Schedule) -> Schedule:
    """Return a schedule that costs no more, by the same options, services and lots, and whose tasks end earlier."""
    assert found.value is not None
    model = Model(problem, *_ways_like(problem, found))
    point, program = model.point(found), model.program
    assert point is not None
    program.row(list(enumerate(program.price)), most=found.value)
    for one in (*(one for service in model.counts for load in service for row in load for one in row),
                *(one for lots in model.lots for one, _ in lots)):
        program.row([(one, 1)], point.get(one, 0), point.get(one, 0))
    program.price = [0] * len(program.price)
    for mine in model.tasks:
        for one, start, end in zip(mine.whole, mine.ways.start, mine.ways.end, strict=True):
            program.price[one] = int(start + end)
        for placed, one in mine.patterns:
            program.price[one] = placed.runs[0][0] + placed.runs[-1][1]
    tidied = solved(problem, model, TIDIED, found)
    return replace(tidied, status=found.status, bound=found.bound) if tidied.value == found.value else found


def _ways_like(problem: Problem, found: Schedule) -> tuple[list[Ways], list[tuple[Placed, ...]]]:
    """Return all ways of each task in the option that it is done in; with pauses the one way."""
    ways, paused = list[Ways](), list[tuple[Placed, ...]]()
    for at, placed in enumerate(found.tasks):
        whole = placed is not None and len(placed.runs) == 1
        mine = ways_of(problem, at, linked=is_linked(problem, at))
        ways.append(mine.take(mine.option == (placed.option if placed is not None and whole else -1)))
        paused.append(() if placed is None or whole else (placed,))
    return ways, paused


def keeping(problem: Problem, found: Schedule, before: Sequence[Placed | None]) -> Schedule:
    """Return a schedule that costs no more, with as many of the first tasks left as they were as can be found."""
    assert found.value is not None
    model = Model(problem)
    program = model.program
    program.row(list(enumerate(program.price)), most=found.value)
    program.price = [0] * len(program.price)
    for at, (mine, placed) in enumerate(zip(model.tasks, before, strict=False)):
        stays = program.variable(price=-1)
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


def _read(problem: Problem, model: Model, stated: Stated, ending: Ending) -> Schedule:
    """Return the schedule that was found, at what it costs: exactly, which is no more than the model has."""
    values = [ending.read(one) for one in stated.variables]
    tasks = tuple(_placed(problem, at, mine, values) for at, mine in enumerate(model.tasks))
    services = tuple(tuple(tuple(tuple(values[one] for one in row) for row in load) for load in service)
                     for service in model.counts)
    lots = tuple(tuple(values[one] for one, _ in counts) for counts in model.lots)
    found = Schedule(ending.status, tasks, services, lots, bound=ending.bound)
    return replace(found, value=value_of(problem, found))


def _placed(problem: Problem, at: int, mine: TaskVars, values: Sequence[int]) -> Placed | None:
    for way, one in enumerate(mine.whole):
        if values[one]:
            return Placed(int(mine.ways.option[way]), ((int(mine.ways.start[way]), int(mine.ways.end[way])),))
    for placed, one in mine.patterns:
        if values[one]:
            return placed
    for number, chosen in mine.by_pauses.items():
        if values[chosen]:
            active = tuple(period for period, runs in mine.paused[number].items() if values[runs])
            return _trimmed(problem, problem.tasks[at], number, active)
    return None


def _trimmed(problem: Problem, task: Task, at: int, active: tuple[int, ...]) -> Placed:
    """Return a task with pauses without the periods at its end that it does not need."""
    option, size = task.options[at], problem.period_seconds

    def needed(runs: Runs) -> int:
        return option.seconds + (len(runs) - 1) * option.resume_seconds

    while len(active) > 1 and (len(active) - 1) * size >= needed(runs_of(active[:-1])):
        active = active[:-1]
    return Placed(at, runs_of(active))


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
