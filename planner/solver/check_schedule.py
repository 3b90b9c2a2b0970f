"""Whether a schedule does what was asked, recomputed period by period without a solver."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from planner.solver.check import claims
from planner.solver.fleet.schedule import (
    CENT,
    DAY_SECONDS,
    HOUR_SECONDS,
    Ceiling,
    Counts,
    Endless,
    Placed,
    Pool,
    Problem,
    Purse,
    Schedule,
    Task,
)


def check_schedule(problem: Problem, schedule: Schedule) -> list[str]:
    """Return what is wrong with an answer; empty where nothing is, and for an answer without a schedule."""
    if schedule.value is None:
        return ["there are tasks after " + schedule.status] if schedule.tasks else []
    wrong = [*_dates(problem, schedule), *_answered(problem, schedule), *_capacity(problem, schedule)]
    entries = list(spent(problem, schedule))
    paid = sum(usd for usd, _, _ in entries)
    if problem.budget is not None and paid > problem.budget:
        wrong.append(f"{paid} micro-USD against a budget of {problem.budget}")
    for purse in problem.purses:
        within = spent_within(problem, schedule, purse)
        if within > purse.micro_usd:
            wrong.append(f"{float(within)} micro-USD between seconds {purse.start} and {purse.end}, "
                         f"at most {purse.micro_usd}")
    wrong += list(_used_up(problem, schedule))
    value = paid + sum(_priced(problem, task, placed)
                       for task, placed in zip(problem.tasks, schedule.tasks, strict=True))
    return [*wrong, *claims(schedule, "micro-USD", value)]


def spent(problem: Problem, schedule: Schedule) -> Iterator[tuple[int, int, int]]:
    """Yield everything that is paid: micro-USD, and the seconds from and to which it is spread evenly."""
    size = problem.period_seconds
    for task, placed in zip(problem.tasks, schedule.tasks, strict=True):
        if placed is not None:
            yield from spent_on(problem, task, placed)
    for service, counts in zip(problem.services, schedule.services, strict=True):
        for load, rows in zip(service.loads, counts, strict=True):
            usd = sum(hours * count * block.nodes * problem.pools[block.pool].micro_usd_per_node_hour
                      for (_, hours), row in zip(load.needs, rows, strict=True)
                      for count, block in zip(row, service.blocks, strict=True))
            for period in load.periods:
                yield usd, period * size, (period + 1) * size
        yield from _changed(problem, service, counts)
    for pool, counts_of in zip(problem.pools, schedule.lots, strict=True):
        for lot, nodes in zip(pool.lots, counts_of, strict=True):
            if nodes:
                yield lot.cost(nodes), lot.start * size, lot.end * size


def _changed(problem: Problem, service: Endless, counts: Counts) -> Iterator[tuple[int, int, int]]:
    """Yield what is paid for nodes while they start, and while they end the requests that they have."""
    for turn in service.turns:
        (load, need), (later, other) = turn.before, turn.then
        usd = 0
        for at, block in enumerate(service.blocks):
            more, pool = counts[later][other][at] - counts[load][need][at], problem.pools[block.pool]
            if more > 0 and pool.is_endless:
                each = -(-pool.micro_usd_per_node_hour * service.changing // HOUR_SECONDS)
                usd += more * block.nodes * each
        for period in turn.periods:
            yield usd, period * problem.period_seconds, (period + 1) * problem.period_seconds


def spent_within(problem: Problem, schedule: Schedule, purse: Purse) -> Fraction:
    """Return the micro-USD that are spent between two seconds."""
    return sum((usd * Fraction(max(0, min(end, purse.end) - max(start, purse.start)), end - start)
                for usd, start, end in spent(problem, schedule)), Fraction())


def spent_on(problem: Problem, task: Task, placed: Placed) -> Iterator[tuple[int, int, int]]:
    """Yield what a task pays: micro-USD, and the seconds from and to which it is spread evenly."""
    usd, size = placed.cost(task), problem.period_seconds
    if len(placed.runs) == 1:
        yield usd, placed.runs[0][0] * size, placed.end(problem, task)
        return
    periods, done = sum(end - start for start, end in placed.runs), 0
    for start, end in placed.runs:
        before, done = done, done + end - start
        yield usd * done // periods - usd * before // periods, start * size, end * size


def used(problem: Problem, schedule: Schedule) -> list[list[int]]:
    """Return the nodes in use, by pool and period."""
    nodes = [[0] * problem.periods for _ in problem.pools]
    for task, placed in zip(problem.tasks, schedule.tasks, strict=True):
        for start, end in () if placed is None else placed.runs:
            assert placed is not None
            option = task.options[placed.option]
            for pool, count in option.held:
                for period in range(start, min(end, problem.periods)):
                    nodes[pool][period] += count
    for taken in serving(problem, schedule):
        for mine, more in zip(nodes, taken, strict=True):
            for period, count in enumerate(more):
                mine[period] += count
    return nodes


def serving(problem: Problem, schedule: Schedule) -> list[list[list[int]]]:
    """Return the nodes that each service is on at the busiest hour, by service, pool and period."""
    out = []
    for service, counts in zip(problem.services, schedule.services, strict=True):
        nodes = [[0] * problem.periods for _ in problem.pools]
        for load, rows in zip(service.loads, counts, strict=True):
            for pool in {block.pool for block in service.blocks}:
                most = max(sum(count * block.nodes for count, block in zip(row, service.blocks, strict=True)
                               if block.pool == pool) for row in rows)
                for period in load.periods:
                    nodes[pool][period] += most
        out.append(nodes)
    return out


def _dates(problem: Problem, schedule: Schedule) -> Iterator[str]:
    """Yield what is wrong with when tasks run, and with what they wait for."""
    size = problem.period_seconds
    for at, (task, placed) in enumerate(zip(problem.tasks, schedule.tasks, strict=True)):
        if placed is None:
            if task.worth is None:
                yield f"task {at} is rejected, and must be done"
            continue
        option = task.options[placed.option]
        yield from (f"task {at}: {what}" for what in _runs(problem, task, placed))
        if placed.runs[0][0] * size < task.release:
            yield f"task {at} starts before its release"
        end = placed.end(problem, task)
        if end > min(problem.horizon, problem.horizon if task.deadline is None else task.deadline):
            yield f"task {at} ends at second {end}, after its deadline"
        if any(pool >= len(problem.pools) for pool, _ in option.held):
            yield f"task {at} is on no pool"
        for other in task.after:
            before = schedule.tasks[other]
            if before is None or before.end(problem, problem.tasks[other]) > placed.runs[0][0] * size:
                yield f"task {at} starts before task {other} has ended"


def _runs(problem: Problem, task: Task, placed: Placed) -> Iterator[str]:
    option, size = task.options[placed.option], problem.period_seconds
    if any(start >= end for start, end in placed.runs) or any(
            run[1] >= other[0] for run, other in zip(placed.runs, placed.runs[1:], strict=False)):
        yield f"runs {placed.runs} are not in order"
    if len(placed.runs) > 1 and not task.may_pause:
        yield "it is paused, and may not be"
    if len(placed.runs) > 1 and problem.pools[option.pool].is_endless:
        yield "it is paused where nodes are taken as needed"
    work = option.seconds + (len(placed.runs) - 1) * option.resume_seconds
    periods = sum(end - start for start, end in placed.runs)
    if not periods * size >= work > (periods - 1) * size:
        yield f"{periods} periods for {work} seconds of work"


def _used_up(problem: Problem, schedule: Schedule) -> Iterator[str]:
    for stock, most in enumerate(problem.stocks):
        total = sum(task.options[placed.option].uses[stock] for task, placed in zip(
            problem.tasks, schedule.tasks, strict=True) if placed is not None and task.options[placed.option].uses)
        if total > most:
            yield f"{total} of stock {stock}, which has {most}"


def _answered(problem: Problem, schedule: Schedule) -> Iterator[str]:
    for at, (service, counts) in enumerate(zip(problem.services, schedule.services, strict=True)):
        for load, rows in zip(service.loads, counts, strict=True):
            for (need, _), row in zip(load.needs, rows, strict=True):
                rate = sum(count * block.micro_rate for count, block in zip(row, service.blocks, strict=True))
                if rate < need:
                    yield f"service {at} answers {rate} of {need} micro-requests/s in period {load.periods[0]}"


def _capacity(problem: Problem, schedule: Schedule) -> Iterator[str]:
    nodes = used(problem, schedule)
    held = [there(problem, pool, counts) for pool, counts in zip(problem.pools, schedule.lots, strict=True)]
    for at, (pool, mine, most) in enumerate(zip(problem.pools, nodes, held, strict=True)):
        for lot, count in zip(pool.lots, schedule.lots[at], strict=True):
            if not 0 <= count <= lot.most:
                yield f"pool {at}: {count} nodes of a lot of {lot.most}"
        if most is not None:
            yield from (f"pool {at}: {taken} nodes of {limit} in period {period}"
                        for period, (taken, limit) in enumerate(zip(mine, most, strict=True)) if taken > limit)
    for ceiling in problem.ceilings:
        yield from (f"{total} against a limit of {ceiling.most} in period {period}"
                    for period, total in enumerate(total_of(problem, schedule, ceiling)) if total > ceiling.most)


def total_of(problem: Problem, schedule: Schedule, ceiling: Ceiling) -> list[int]:
    """Return what all pools take of a ceiling in each period."""
    nodes = used(problem, schedule)
    held = [there(problem, pool, counts) for pool, counts in zip(problem.pools, schedule.lots, strict=True)]
    counted = [most if ceiling.held and pool.lots and most is not None else mine
               for pool, mine, most in zip(problem.pools, nodes, held, strict=True)]
    return [sum(weight * mine[period] for weight, mine in zip(ceiling.weights, counted, strict=True))
            for period in range(problem.periods)]


def there(problem: Problem, pool: Pool, counts: tuple[int, ...]) -> list[int] | None:
    """Return the nodes that a pool has in each period; none where they are taken as needed."""
    if pool.is_endless:
        return None
    nodes = list(pool.capacity or (0,) * problem.periods)
    for lot, count in zip(pool.lots, counts, strict=True):
        for period in range(lot.start, min(lot.end, problem.periods)):
            nodes[period] += count
    return nodes


def _priced(problem: Problem, task: Task, placed: Placed | None) -> int:
    """Return what is forgone by a task that is rejected, or paid for one that is late, up to whole cents."""
    if placed is None:
        return task.worth or 0
    late = 0 if task.due is None else max(0, placed.end(problem, task) - task.due)
    return -(-late * task.late_cents_per_day // DAY_SECONDS) * CENT
