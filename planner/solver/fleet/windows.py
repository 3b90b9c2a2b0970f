"""Many tasks: ways that the relaxation finds near the best, a first schedule of them, then window after window."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np

from planner.process.together import together
from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.apart import first_of
from planner.solver.fleet.branching import branched
from planner.solver.fleet.greedy import greedy
from planner.solver.fleet.guided import guided
from planner.solver.fleet.reading import better, read, solved
from planner.solver.fleet.recreating import recreated
from planner.solver.fleet.relaxing import Relaxed, Relaxing
from planner.solver.fleet.schedule import CENT, Problem, Schedule
from planner.solver.fleet.scheduling_model import Scheduling
from planner.solver.fleet.ways import TaskWays, ways_of
from planner.solver.fleet.window import Window, joined
from planner.solver.settings import Settings

MOST_WAYS = 8_000
"""Of all tasks that are looked at together, and of those of a window."""
EACH_OPTION = 2
"""Ways of every option, at least."""
MOST_OPTIONS = 24
"""Of a task that are looked at beyond the relaxation: those that are the least dearer than the best."""
GAP = 0.005
"""At which the first schedule is good enough."""
NODES = 50
"""Of branch and bound for it."""
WINDOW = 20
"""Tasks that are free at a time."""
WINDOWS, OFTEN = 12, 3
"""At least, and how often each task is free where there are many."""
BESIDE = 4
"""Windows of one schedule, which are solved at the same time where there are workers for it."""
RELAXED_SHARE = 0.5
"""Of the time, where there is a limit of it, for the relaxation."""
FIRST_SHARE = 0.25
"""Of what is then left, for first schedules by its prices."""
ROUNDS, EACH_TASK = 20_000, 100
"""In which some tasks are taken out and placed again: at least, and for each task."""
WINDOW_SHARE = 1 / 30
"""Of the time, for each window."""


def improved(problem: Problem, settings: Settings, over: Problem | None = None) -> Schedule:
    """Return the best schedule found in the time of `settings`, with the bound of the relaxation.

    over: the same problem with more options behind those of each task, which none is taken of: the bound holds for
    them too.
    """
    if settings.deterministic_limit is None:
        return solved(problem, Scheduling(problem), settings)
    began, apart = time.monotonic(), None
    relaxation: Relaxing | None = None
    try:
        apart = first_of(problem, settings)
        relaxation = Relaxing(over or problem, [] if apart is None else [apart])
        relaxed = relaxation.solve(None if settings.seconds is None else settings.seconds * RELAXED_SHARE)
    except KeyboardInterrupt:
        least = Schedule("undecided", bound=None if relaxation is None else relaxation.bound)
        return replace(better(apart or greedy(problem) or least, least), interrupted=True)
    if relaxed is None:
        return solved(problem, Scheduling(problem), settings) if over is None else Schedule("undecided")
    unit = unit_of(problem)
    relaxed = _of_use(problem, replace(relaxed, bound=-(-relaxed.bound // unit) * unit))
    # what must be done may be left out at a price at first, so that there is always a schedule to start from
    dear = 2 * sum(int(mine.micro_usd.max()) for mine in relaxed.ways if len(mine)) // CENT * CENT + CENT
    asked, must = problem, {at for at, task in enumerate(problem.tasks) if task.worth is None}
    problem = replace(problem, tasks=tuple(replace(task, worth=dear) if at in must else task
                                           for at, task in enumerate(problem.tasks)))
    stop = None if settings.seconds is None else began + settings.seconds
    known = [*_first(problem, must, relaxed, settings, stop), *([] if apart is None else [apart])]
    if not known:
        return Schedule("undecided", bound=relaxed.bound)
    best = min(known, key=lambda one: one.value or 0)
    _tell(settings, must, best, relaxed.bound)
    if not problem.stocks and best.value != relaxed.bound and not best.interrupted:
        rounds = max(ROUNDS, EACH_TASK * len(problem.tasks))
        best = recreated(problem, must, relaxed, best, rounds, settings.seed, stop)
    if not best.interrupted:
        best = _in_windows(problem, must, relaxed, best, settings, stop)
    if best.value is None or any(best.tasks[at] is None for at in must):
        return Schedule("undecided", bound=relaxed.bound, interrupted=best.interrupted)
    if wrong := check_schedule(asked, replace(best, status="feasible", bound=relaxed.bound)):
        raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
    bound = min(max(relaxed.bound, 0), best.value)
    return replace(best, status="optimal" if bound == best.value else "feasible", bound=bound)


def _of_use(problem: Problem, relaxed: Relaxed) -> Relaxed:
    """Return the relaxation without options that are much dearer than others, and without those that none is taken of;
    the fastest, the smallest and the cheapest are kept.
    """
    ways, more, paused = list[TaskWays](), [], []
    for task, mine, dearer, several in zip(problem.tasks, relaxed.ways, relaxed.more, relaxed.paused, strict=True):
        count = len(task.options)
        least = np.full(max(count, int(mine.option.max(initial=-1)) + 1), np.inf)
        np.minimum.at(least, mine.option, dearer)
        there = [at for at in range(count) if np.isfinite(least[at])]
        kept = sorted(there, key=lambda at: (float(least[at]), at))[:MOST_OPTIONS]
        kept += [min(there, key=lambda at: (getattr(task.options[at], what), at)) for what in (
            "seconds", "nodes", "micro_usd") if there]
        rows = np.isin(mine.option, kept)
        ways.append(mine.take(rows))
        more.append(dearer[rows])
        paused.append(tuple(placed for placed in several if placed.option < count))
    return replace(relaxed, ways=tuple(ways), more=tuple(more), paused=tuple(paused))


def _tell(settings: Settings, must: set[int], best: Schedule, bound: int) -> None:
    if settings.heard is not None and all(best.tasks[at] is not None for at in must):
        settings.heard(best.value, bound)


def _in_windows(problem: Problem, must: set[int], relaxed: Relaxed, best: Schedule, settings: Settings,
                stop: float | None) -> Schedule:
    """Return a schedule that costs no more: some tasks are solved again while the others stay, over and over, and so
    are others of the same schedule at the same time.
    """
    limit = settings.deterministic_limit or 0.0
    random, each = Random(settings.seed), replace(settings, deterministic_limit=limit * WINDOW_SHARE, heard=None)
    for _ in range(-(-max(WINDOWS, len(problem.tasks) * OFTEN // WINDOW) // BESIDE)):
        if best.value == relaxed.bound or (stop is not None and time.monotonic() > stop):
            break
        _tell(settings, must, best, relaxed.bound)
        left, free = None if stop is None else max(0.1, stop - time.monotonic()), list[frozenset[int]]()
        while len(free) < BESIDE and sum(map(len, free)) < len(problem.tasks):
            free.append(_window(problem, best, random, must, frozenset[int]().union(*free)))
        found = list[Schedule]()
        try:
            for tried in together([_around(problem, relaxed, best, one, replace(each, seconds=left)).solve
                                   for one in free]):
                found.append(tried)
                if tried.interrupted:
                    break
        except KeyboardInterrupt:
            return replace(best, interrupted=True)
        best = joined(problem, best, [*zip(free, found, strict=False)])
        if any(tried.interrupted for tried in found):
            return replace(best, interrupted=True)
    return best


def _first(problem: Problem, must: set[int], relaxed: Relaxed, settings: Settings, stop: float | None
           ) -> Iterator[Schedule]:
    """Yield schedules to start from, of what the relaxation finds near the best."""
    bare = replace(problem, tasks=(), stocks=())
    alone = solved(bare, Scheduling(bare), replace(settings, heard=None)) if problem.services else Schedule(
        "optimal", lots=tuple((0,) * len(pool.lots) for pool in problem.pools), value=0)
    until = None if stop is None else time.monotonic() + (stop - time.monotonic()) * FIRST_SHARE
    made = guided(problem, must, relaxed, alone, until) if alone.value is not None else None
    if made is not None:
        yield made
    else:
        model = Scheduling(problem, near_best(relaxed, MOST_WAYS), relaxed.paused)
        first = branched(model.program, GAP, NODES, None if stop is None else max(1.0, stop - time.monotonic()))
        if first.values:
            yield read(problem, model, first.values)


def unit_of(problem: Problem) -> int:
    """Return what every schedule costs a multiple of: cents, where nothing has a price below."""
    prices = {0, *(lot.cost(nodes) for pool in problem.pools for lot in pool.lots for nodes in range(
        2 if len(lot.micro_usd) == 1 else len(lot.micro_usd)))}
    for task in problem.tasks:
        prices |= {task.worth or 0, CENT if task.late_cents_per_day else 0}
        prices |= {usd for one in task.options for usd in (one.micro_usd, one.resume_micro_usd * task.may_pause)}
    prices |= {problem.pools[block.pool].micro_usd_per_node_hour * block.nodes
               for service in problem.services for block in service.blocks}
    return max(1, math.gcd(*prices))


def near_best(relaxed: Relaxed, most: int) -> list[TaskWays]:
    """Return the ways that cost least more than the best by the prices of the relaxation."""
    every = np.sort(np.concatenate(relaxed.more))
    limit = every[min(most, len(every)) - 1] if len(every) else 0.0
    return [_nearest(relaxed, at, limit) for at in range(len(relaxed.ways))]


def _nearest(relaxed: Relaxed, at: int, limit: float) -> TaskWays:
    more = relaxed.more[at]
    kept = more <= limit
    ways = relaxed.ways[at]
    order = np.lexsort((ways.start, more, ways.option))
    first = np.flatnonzero(np.diff(ways.option[order], prepend=-1))
    for step in range(EACH_OPTION):
        # of each option the next best, and as early and as late as may be
        kept[order[np.minimum(first + step, len(order) - 1)]] = True
    edge = np.diff(ways.option, prepend=-1, append=-1) != 0
    return ways.take(kept | edge[:-1] | edge[1:])


def _window(problem: Problem, best: Schedule, random: Random, must: set[int], others: frozenset[int]) -> frozenset[int]:
    """Return tasks to look at again: those that run about some moment, or of two pools, or any; none of `others`."""
    tasks, middle = set(range(len(problem.tasks))) - others, random.randrange(problem.periods)
    pools = set(random.sample(range(len(problem.pools)), min(2, len(problem.pools))))
    how = random.randrange(3)

    lacking = {at for at in must if best.tasks[at] is None}
    lacking |= {other for at in lacking for other in problem.tasks[at].after}

    def far(at: int) -> tuple[float, float]:
        placed = best.tasks[at]
        if at in lacking:
            return -1.0, random.random()
        if placed is None or how == 0:
            return 0.0, random.random()
        away = abs((placed.runs[0][0] + placed.runs[-1][1]) / 2 - middle)
        other = how == 1 and problem.tasks[at].options[placed.option].pool not in pools
        return float(other), away * random.random()
    return frozenset(sorted(sorted(tasks), key=far)[:WINDOW])


def _around(problem: Problem, relaxed: Relaxed, best: Schedule, free: frozenset[int], settings: Settings) -> Window:
    """Return the question in which only some tasks may move."""
    share = MOST_WAYS // max(1, len(free))
    ways, patterns = [], []
    for at, (mine, placed) in enumerate(zip(relaxed.ways, best.tasks, strict=True)):
        now = np.zeros(len(mine), dtype=bool)
        if placed is not None and len(placed.runs) == 1:
            now = (mine.option == placed.option) & (mine.start == placed.runs[0][0])
        mine_paused = list(relaxed.paused[at]) if at in free else []
        if placed is not None and len(placed.runs) > 1 and placed not in mine_paused:
            mine_paused.append(placed)
        if at in free:
            now[np.argsort(relaxed.more[at], kind="stable")[:share]] = True
        taken = mine.take(now)
        if placed is not None and len(placed.runs) == 1 and taken.find(placed.option, placed.runs[0][0]) is None:
            every = ways_of(problem, at, linked=True)
            taken = taken.joined(every.take(np.array([every.find(placed.option, placed.runs[0][0])], dtype=np.intp)))
        ways.append(taken)
        patterns.append(mine_paused)
    return Window(problem, best, free, ways, patterns, settings)
