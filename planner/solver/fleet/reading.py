"""A model of a schedule solved by CP-SAT, and read back at what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.solver.fleet.pausing import runs_of
from planner.solver.fleet.schedule import Placed, Problem, Runs, Schedule, Task, changes, late_cost, lateness
from planner.solver.fleet.scheduling_model import Scheduling
from planner.solver.fleet.scheduling_tasks import TaskVars
from planner.solver.fleet.stating import Stated
from planner.solver.settings import Settings


def solved(problem: Problem, model: Scheduling, settings: Settings, known: Schedule | None = None) -> Schedule:
    """Return the cheapest schedule of a model; `known` is where it starts from."""
    stated = Stated(model.program)
    point = None if known is None else model.point(known)
    if point is not None:
        stated.hint(point)
    ending = stated.solve(settings)
    if ending.value is None and known is not None and ending.status == "undecided":
        return replace(known, status="feasible", bound=max(0, ending.bound or 0), interrupted=ending.interrupted)
    if ending.value is None:
        return Schedule(ending.status, bound=ending.bound, interrupted=ending.interrupted)
    found = read(problem, model, [ending.read(one) for one in stated.variables])
    return replace(found, status=ending.status, bound=ending.bound, interrupted=ending.interrupted)


def read(problem: Problem, model: Scheduling, values: Sequence[int]) -> Schedule:
    """Return the schedule that values of all variables mean, at what it costs: exactly, no more than the model has."""
    tasks = tuple(_placed(problem, at, mine, values) for at, mine in enumerate(model.tasks))
    services = tuple(tuple(tuple(tuple(values[one] for one in row) for row in load) for load in service)
                     for service in model.counts)
    lots = tuple(tuple(values[one] for one, _ in counts) for counts in model.lots)
    found = Schedule("feasible", tasks, services, lots)
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
        total += sum(usd * len(turn.periods) for _, usd, turn in changes(problem, service, counts))
    for pool, nodes in zip(problem.pools, found.lots, strict=True):
        total += sum(lot.cost(count) for lot, count in zip(pool.lots, nodes, strict=True))
    return total


def better(one: Schedule, other: Schedule) -> Schedule:
    """Return the cheaper of two schedules of one problem, with the better bound."""
    if other.status == "infeasible":
        return other
    best = one if other.value is None or (one.value is not None and one.value <= other.value) else other
    bound = max((each.bound for each in (one, other) if each.bound is not None), default=None)
    if best.value is None:
        return replace(other, bound=bound)
    bound = None if bound is None else min(bound, best.value)
    return replace(best, status="optimal" if bound == best.value else "feasible", bound=bound,
                   interrupted=other.interrupted)
