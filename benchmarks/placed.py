"""Job after job in its place, all jobs apart, and what fits at all: what a portfolio's answer is judged by.

`listed` is a greedy that the solver does not have, `apart` what all jobs cost each alone, and `bound` a linear program
of the nodes and the time that fractions of jobs take, which knows neither starts nor whole nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import numpy as np

from benchmarks.judged import CENT, HOUR, Nodes, cost, end_of, faults, had, late_usd, spent_in, stays
from benchmarks.portfolios import portfolio
from planner.solver.fleet.linear import LinearProgram
from planner.solver.fleet.program import MixedProgram
from planner.solver.fleet.schedule import (
    Ceiling,
    Counts,
    Endless,
    Load,
    NodeBlock,
    Placed,
    Problem,
    Purse,
    Schedule,
    Task,
)

PARTS = 10**6
"""In which fractions of jobs are whole numbers."""
SHARE_LOST = 1e-6
"""Of a bound, for the tolerances of the linear program."""
SIZES = ((4, 52), (8, 52), (4, 91), (8, 26))
"""Pools and periods of a drawn question."""
DATES = 12
"""Between which what must be done fits into what there is."""


def drawn(seed: int, most: int = 40) -> Problem:
    """Return a question of 5 to `most` jobs, in part with a service, a ceiling, and budgets of quarters."""
    random = Random(f"judged {seed}")
    pools, periods = random.choice(SIZES)
    problem = portfolio(random.randint(5, most), pools, periods, seed)
    if random.random() < 0.5:
        problem = replace(problem, services=(_service(problem, random),))
    if random.random() < 0.3:
        owned = sum(max(pool.capacity or (0,)) for pool in problem.pools)
        problem = replace(problem, ceilings=(Ceiling((1,) * pools, max(64, round(owned * random.uniform(1.0, 2.0)))),))
    if random.random() < 0.4 and (plain := listed(problem)) is not None:
        cut = [periods * part // 4 * problem.period_seconds for part in range(5)]
        quarters = [Purse(start, end, 0) for start, end in pairwise(cut)]
        most = max(spent_in(problem, plain, quarter) for quarter in quarters)
        problem = replace(problem, purses=tuple(replace(quarter, micro_usd=round(most * random.uniform(0.7, 1.2)))
                                                for quarter in quarters))
    return problem


def _service(problem: Problem, random: Random) -> Endless:
    """Return a service that grows, with more to answer in some hours than in others."""
    blocks = tuple(NodeBlock(pool, random.randint(1, 2), random.randint(2, 9) * 10**6) for pool in range(2))
    hours, loads = problem.period_seconds // HOUR, []
    third = problem.periods // 3
    for part in range(3):
        until = (part + 1) * third if part < 2 else problem.periods
        high = random.randint(4, 9) * (part + 2) * 10**6
        loads.append(Load(tuple(range(part * third, until)), ((high // 4, hours // 3), (high, hours - hours // 3))))
    return Endless(blocks, tuple(loads))


@dataclass(frozen=True, slots=True)
class _Place:
    """The best place for a job so far."""

    usd: int
    option: int
    start: int
    end: int


def listed(problem: Problem) -> Schedule | None:
    """Return the cheapest of a few schedules that place job after job, by deadline, where each costs the least, or ends
    the earliest; none where all of them leave a job out that must be done, or spend too much.

    They buy and reserve nothing. A service is on one kind of block, the cheapest that there is.
    """
    waited = {other for task in problem.tasks for other in task.after}
    made = [one for hurried in (set[int](), waited, set(range(len(problem.tasks))))
            if (one := _listed(problem, hurried)) is not None]
    return min(made, key=lambda one: one.value or 0) if made else None


def _listed(problem: Problem, hurried: Collection[int]) -> Schedule | None:
    free = had(problem, [(0,) * len(pool.lots) for pool in problem.pools])
    taken = np.zeros_like(free)
    services = []
    for service in problem.services:
        ways = [(usd, pool, counts, nodes) for usd, pool, counts, nodes in _on_one_kind(problem, service)
                if not stays(problem, pool) or (nodes <= free[pool]).all()]
        if not ways:
            return None
        _, pool, counts, nodes = min(ways, key=lambda way: way[:2])
        services.append(counts)
        free[pool] -= nodes * stays(problem, pool)
        taken[pool] += nodes
    placed: dict[int, Placed | None] = {}
    dates = _latest(problem)
    waiting = set(range(len(problem.tasks)))
    while waiting:
        at = min((one for one in waiting if placed.keys() >= set(problem.tasks[one].after)), key=lambda one: (
            dates[one], one))
        waiting.remove(at)
        task, before = problem.tasks[at], [placed[other] for other in problem.tasks[at].after]
        best = None if None in before else _best(problem, task, placed, free, taken, hurried=at in hurried)
        if best is None or (task.worth is not None and best.usd >= task.worth):
            placed[at] = None
            continue
        option = task.options[best.option]
        then = best.start + -(-option.seconds // problem.period_seconds)
        placed[at] = Placed(best.option, ((best.start, then),))
        free[option.pool, best.start:then] -= option.nodes * stays(problem, option.pool)
        taken[option.pool, best.start:then] += option.nodes
    made = Schedule("feasible", tuple(placed[at] for at in range(len(problem.tasks))), tuple(services),
                    tuple((0,) * len(pool.lots) for pool in problem.pools))
    return None if faults(problem, made) else replace(made, value=cost(problem, made))


def _latest(problem: Problem) -> list[int]:
    """Return by when each job should have ended, for itself and for all that wait for it."""
    dates = [task.deadline or task.due or problem.horizon for task in problem.tasks]
    for at in reversed(range(len(dates))):
        shortest = min(option.seconds for option in problem.tasks[at].options)
        for other in problem.tasks[at].after:
            dates[other] = min(dates[other], dates[at] - shortest)
    return dates


def _on_one_kind(problem: Problem, service: Endless) -> Iterator[tuple[int, int, Counts, Nodes]]:
    """Yield of each kind of block what a service costs on it alone, its pool, its blocks, and its nodes by period."""
    for at, block in enumerate(service.blocks):
        counts = tuple(tuple(tuple(-(-need // block.micro_rate) if one == at else 0 for one in range(
            len(service.blocks))) for need, _ in load.needs) for load in service.loads)
        nodes, usd = np.zeros(problem.periods, dtype=np.int64), 0
        for load, rows in zip(service.loads, counts, strict=True):
            nodes[list(load.periods)] = max(row[at] for row in rows) * block.nodes
            usd += sum(hours * row[at] * len(load.periods) for (_, hours), row in zip(load.needs, rows, strict=True)
                       ) * block.nodes * problem.pools[block.pool].micro_usd_per_node_hour
        yield usd, block.pool, counts, nodes


def _best(problem: Problem, task: Task, placed: dict[int, Placed | None], free: Nodes, taken: Nodes, *, hurried: bool
          ) -> _Place | None:
    """Return the cheapest place for a job, or where it ends the earliest; none where there is none."""
    size, best = problem.period_seconds, None
    ready = max([task.release, *(end_of(problem, problem.tasks[other], one) for other in task.after
                                 if (one := placed[other]) is not None)])
    for number, option in enumerate(task.options):
        length = -(-option.seconds // size)
        for start in range(-(-ready // size), (_until(problem, task) - option.seconds) // size + 1):
            end, span = start * size + option.seconds, slice(start, start + length)
            place = _Place(option.micro_usd + late_usd(task, end), number, start, end)
            if best is not None and ((place.end, place.usd) >= (best.end, best.usd) if hurried
                                     else place.usd >= best.usd):
                continue
            fits = not stays(problem, option.pool) or (free[option.pool, span] >= option.nodes).all()
            if fits and all((np.asarray(ceiling.weights) @ taken[:, span] + ceiling.weights[
                    option.pool] * option.nodes <= ceiling.most).all() for ceiling in problem.ceilings):
                best = place
    return best


def _until(problem: Problem, task: Task) -> int:
    return min(problem.horizon, problem.horizon if task.deadline is None else task.deadline)


def apart(problem: Problem) -> int | None:
    """Return what all jobs cost, each alone on nodes that are taken as needed; none where that is no plan of all."""
    if problem.ceilings or problem.purses or problem.budget is not None or any(task.after for task in problem.tasks):
        return None
    alone, size = list[list[int]](), problem.period_seconds
    for task in problem.tasks:
        start = -(-task.release // size) * size
        alone.append([option.micro_usd + late_usd(task, start + option.seconds) for option in task.options
                      if not stays(problem, option.pool) and start + option.seconds <= _until(problem, task)]
                     + ([] if task.worth is None else [task.worth]))
    alone += [[usd for usd, pool, _, _ in _on_one_kind(problem, service) if not stays(problem, pool)]
              for service in problem.services]
    return sum(map(min, alone)) if all(alone) else None


def bound(problem: Problem) -> int:
    """Return micro-USD that no schedule costs less than: the nodes and the time that fractions of all jobs take.

    What must be done by a date fits into what there is until then, and what is released from one on into what is left.
    """
    program = MixedProgram()
    takes: list[list[tuple[int, int, int, int]]] = [[] for _ in problem.pools]
    for task in problem.tasks:
        _do(program, problem, task, takes)
    for service in problem.services:
        for load in service.loads:
            _serve(program, problem, service, load, takes)
    dates = sorted({first for mine in takes for _, _, first, _ in mine} | {then for mine in takes for *_, then in mine})
    for at, pool in enumerate(problem.pools):
        lots = [program.variable(lot.most * PARTS, lot.micro_usd[0] if len(lot.micro_usd) == 1 else min(
            usd // count for count, usd in enumerate(lot.micro_usd) if count)) for lot in pool.lots]
        for begin, end in {(0, problem.periods), *((0, date) for date in dates[::max(1, len(dates) // DATES)]),
                           *((date, problem.periods) for date in dates[::max(1, len(dates) // DATES)])}:
            inside = [(one, used) for one, used, first, then in takes[at] if begin <= first and then <= end]
            bought = [(one, -max(0, min(lot.end, end) - max(lot.start, begin))) for one, lot in zip(
                lots, pool.lots, strict=True)]
            if stays(problem, at) and inside:
                program.row([*inside, *bought], most=PARTS * sum((pool.capacity or (0,) * problem.periods)[begin:end]))
    least = LinearProgram(program, np.arange(len(program.least))).solve()
    assert least is not None
    return round(least.value / PARTS * (1 - SHARE_LOST)) - CENT


def _do(program: MixedProgram, problem: Problem, task: Task, takes: Sequence[list[tuple[int, int, int, int]]]) -> None:
    """Add that a job is done, or not, in fractions of its options; each takes node-periods between two dates."""
    size, ways = problem.period_seconds, []
    first, then = -(-task.release // size), -(-_until(problem, task) // size)
    for option in task.options:
        if first * size + option.seconds <= _until(problem, task):
            ways.append(program.variable(PARTS, option.micro_usd + late_usd(task, first * size + option.seconds)))
            takes[option.pool].append((ways[-1], option.nodes * -(-option.seconds // size), first, then))
    ways += [] if task.worth is None else [program.variable(PARTS, task.worth)]
    program.row([(one, 1) for one in ways], PARTS, PARTS)


def _serve(program: MixedProgram, problem: Problem, service: Endless, load: Load,
           takes: Sequence[list[tuple[int, int, int, int]]]) -> None:
    """Add that a service answers what it needs in some periods, by fractions of blocks."""
    most = {pool: program.variable(PARTS * 10**6) for pool in sorted({block.pool for block in service.blocks})}
    for need, hours in load.needs:
        counts = [program.variable(PARTS * 10**6, hours * len(load.periods) * block.nodes * problem.pools[
            block.pool].micro_usd_per_node_hour) for block in service.blocks]
        program.row([(one, block.micro_rate) for one, block in zip(counts, service.blocks, strict=True)],
                    least=need * PARTS)
        for pool, nodes in most.items():
            program.row([(nodes, 1), *((one, -block.nodes) for one, block in zip(
                counts, service.blocks, strict=True) if block.pool == pool)], least=0)
    for pool, nodes in most.items():
        takes[pool].append((nodes, len(load.periods), min(load.periods), max(load.periods) + 1))
