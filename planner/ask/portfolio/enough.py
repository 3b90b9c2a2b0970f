"""What a limit would have to be for a portfolio to have a plan, each by itself, found by solving it again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from planner.answer.relaxation import Relaxation
from planner.ask.portfolio.limited import asked_limit, taken_of, without_limits
from planner.jobs.agenda import Agenda
from planner.scenario.moment import written
from planner.scenario.recurring import due_written
from planner.solver.check_schedule import total_of
from planner.solver.fleet.schedule import CENT, DAY_SECONDS, HOUR_SECONDS, Problem, Schedule, Task
from planner.solver.settings import Effort
from planner.units import plural

STEEP = 10**9
"""Cents for a day after a deadline, where the least lateness is looked for."""
TRIES = 8  # of a limit of nodes, GPUs or power that may be enough


def relaxed(agenda: Agenda, reasons: Collection[str], effort: Effort) -> Iterator[Relaxation]:
    """Yield of every reason by itself what would be enough, with all others kept."""
    for name in reasons:
        if name.endswith(".deadline"):
            yield from _postponed(agenda, name, effort)
            continue
        schedule = solve_again(without_limits(agenda, {name}), effort)
        if schedule.value is not None:
            if name in agenda.ceilings:
                schedule = _leanest(agenda, name, schedule, effort)
            yield Relaxation(limit=name, from_=asked_limit(agenda, name), to=taken_of(agenda, name, schedule))


def _leanest(agenda: Agenda, name: str, schedule: Schedule, effort: Effort) -> Schedule:
    """Return a schedule that takes the least of nodes, GPUs or power, as far as some tries go, with all others kept."""
    problem, at = _priced(agenda.problem), agenda.ceilings.index(name)
    low, high = problem.ceilings[at].most, max(total_of(problem, schedule, problem.ceilings[at]))
    for _ in range(TRIES):
        if high - low <= 1 or effort.is_over:
            break
        middle = replace(problem.ceilings[at], most=(low + high) // 2)
        ceilings = (*problem.ceilings[:at], middle, *problem.ceilings[at + 1:])
        found = solve_again(replace(problem, ceilings=ceilings), effort)
        if found.value is None:
            low = middle.most
        else:
            schedule, high = found, max(total_of(problem, found, middle))
    return schedule


def _postponed(agenda: Agenda, name: str, effort: Effort) -> Iterator[Relaxation]:
    """Yield the deadline, to the day, that would do for a job with all other limits kept."""
    jobs, problem = agenda.portfolio.jobs, agenda.problem
    number = next(at for at, job in enumerate(jobs) if f"{job.name}.deadline" == name)

    horizon = agenda.portfolio.horizon
    ways = sum(len(task.options) for task in problem.tasks) * horizon.periods * -(-int(horizon.length) // DAY_SECONDS)
    steep_cents = min(STEEP, 2**60 // (ways * CENT) or 1)  # all ways together are priced in 64 bits

    def late(task: Task) -> Task:
        return replace(task, deadline=None, due=task.deadline, late_cents_per_day=steep_cents)

    steep = replace(problem, tasks=tuple(late(task) if item.job == number else task
                                         for task, item in zip(problem.tasks, agenda.items, strict=True)))
    schedule = solve_again(steep, effort)
    if schedule.value is not None:
        taken = [(task.release, placed.end(steep, task)) for task, item, placed in zip(
            steep.tasks, agenda.items, schedule.tasks, strict=True) if item.job == number and placed is not None]
        yield Relaxation(limit=name, from_=asked_limit(agenda, name), to=put_off(agenda, number, taken))


def put_off(agenda: Agenda, number: int, taken: Sequence[tuple[int, int]]) -> str:
    """Return the deadline of a job, to the day, by which instances end that are released, and end, at these seconds;
    as a span from each release, to the hour, where it was asked as one.
    """
    if isinstance(agenda.portfolio.jobs[number].deadline, timedelta):
        hours = -(-max((end - release for release, end in taken), default=0) // HOUR_SECONDS)
        return due_written(timedelta(hours=hours))
    day = -(-max((end for _, end in taken), default=0) // DAY_SECONDS) * DAY_SECONDS
    return written(agenda.moment(day))


def more_nodes(agenda: Agenda, effort: Effort) -> Iterator[Relaxation]:
    """Yield for each kind of owned node how many would be enough, where some number is."""
    for at, supplier in enumerate(agenda.suppliers):
        if (capacity := supplier.pool.capacity) is None:
            continue
        high = max(sum(max((option.nodes for option in task.options if option.pool == at), default=0)
                       for task in agenda.problem.tasks), *capacity) * 2
        if not _enough(agenda, at, high, effort):
            continue
        high = 1 + bisect_left(range(1, high), True, key=partial(_enough, agenda, at, effort=effort))
        owned = max(capacity)
        yield Relaxation(limit=f"own.{supplier.node}", from_=plural(owned, "node"), to=plural(owned + high, "node"))


def _enough(agenda: Agenda, at: int, more: int, effort: Effort) -> bool:
    """Say whether there is a schedule with so many more nodes of a pool all the time."""
    pools = list(agenda.problem.pools)
    pools[at] = replace(pools[at], capacity=tuple(nodes + more for nodes in pools[at].capacity or ()))
    return solve_again(_priced(replace(agenda.problem, pools=tuple(pools))), effort).value is not None


def free_of_charge(problem: Problem) -> Problem:
    """Return a problem without money, so that any schedule ends the search."""
    pools = tuple(replace(pool, micro_usd_per_node_hour=0, lots=tuple(
        replace(lot, micro_usd=(0,)) for lot in pool.lots)) for pool in problem.pools)
    tasks = tuple(replace(task, late_cents_per_day=0, worth=None if task.worth is None else 0, options=tuple(
        replace(option, micro_usd=0, resume_micro_usd=0) for option in task.options)) for task in problem.tasks)
    return replace(problem, pools=pools, tasks=tasks, budget=None, purses=())


def _priced(problem: Problem) -> Problem:
    """Return a problem without money where no limit counts it, so that any schedule ends the search."""
    return problem if problem.budget is not None or problem.purses else free_of_charge(problem)


def solve_again(problem: Problem, effort: Effort) -> Schedule:
    """Return the cheapest schedule of a changed problem. Raises RuntimeError where the check contradicts it."""
    # CP-SAT takes half a second to load
    from planner.solver.fleet.scheduling import checked

    return checked(problem, effort)
