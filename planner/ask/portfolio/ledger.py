"""The money and the nodes of a schedule: what is supplied when, how full every pool is, and cash by month."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction

from planner.answer.portfolio import Cash, Period, Supply
from planner.answer.schema import ByReplay, Objective
from planner.jobs.agenda import Agenda
from planner.jobs.columns import MICRO
from planner.scenario.moment import iso, next_month
from planner.solver.check_schedule import serving, spent, there, used
from planner.solver.fleet.schedule import CENT, Schedule, changes


def supply_of(agenda: Agenda, schedule: Schedule) -> tuple[Supply, ...]:
    """Return every node that is had, pool by pool, in cents that together are what is spent, up."""
    made, exact, before = list[Supply](), 0, 0
    for at, supplier in enumerate(agenda.suppliers):
        for start, end, nodes, usd in sorted(_had(agenda, schedule, at)):
            exact += usd
            until = in_cents(exact)
            estate = supplier.offer.estate
            made.append(Supply(
                pool=supplier.name, node=supplier.node, sourcing=supplier.how, offer=supplier.offer.label,
                start=iso(agenda.moment(start)), end=iso(agenda.moment(end)), nodes=nodes, usd=(until - before) / MICRO,
                capital_usd=None if estate is None else round(estate.capital(nodes).total, 2)))
            before = until
    return tuple(made)


def in_cents(micro_usd: int) -> int:
    """Return micro-USD up to whole cents."""
    return -(-micro_usd // CENT) * CENT


def _had(agenda: Agenda, schedule: Schedule, at: int) -> list[tuple[int, int, int, int]]:
    """Return start, end, nodes and micro-USD of all that is had of one pool."""
    pool = agenda.suppliers[at].pool
    if pool.lots:
        return list(_lots(agenda, schedule, at))
    rows = [*_runs(agenda, schedule, at), *_served(agenda, schedule, at)]
    return rows if pool.capacity is None else [
        (0, agenda.problem.horizon, max(pool.capacity), sum(row[3] for row in rows))]


def _lots(agenda: Agenda, schedule: Schedule, at: int) -> Iterator[tuple[int, int, int, int]]:
    size = agenda.problem.period_seconds
    for lot, nodes in zip(agenda.suppliers[at].pool.lots, schedule.lots[at], strict=True):
        if nodes:
            yield lot.start * size, lot.end * size, nodes, lot.cost(nodes)


def _runs(agenda: Agenda, schedule: Schedule, at: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield start, end, nodes and micro-USD of every task on a pool."""
    for task, placed in zip(agenda.problem.tasks, schedule.tasks, strict=True):
        if placed is not None and task.options[placed.option].pool == at:
            yield (placed.runs[0][0] * agenda.problem.period_seconds, placed.end(agenda.problem, task),
                   task.options[placed.option].nodes, placed.cost(task))


def _served(agenda: Agenda, schedule: Schedule, at: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield start, end, nodes and micro-USD of services on a pool, as long as the nodes stay as many."""
    size = agenda.problem.period_seconds
    price = agenda.suppliers[at].pool.micro_usd_per_node_hour
    nodes_of = serving(agenda.problem, schedule)
    for number, (service, counts) in enumerate(zip(agenda.problem.services, schedule.services, strict=True)):
        usd = [0] * agenda.problem.periods
        for load, rows in zip(service.loads, counts, strict=True):
            each = sum(hours * count * block.nodes * price for (_, hours), row in zip(load.needs, rows, strict=True)
                       for count, block in zip(row, service.blocks, strict=True) if block.pool == at)
            for period in load.periods:
                usd[period] = each
        for period, more in ((period, more) for pool, more, turn in changes(agenda.problem, service, counts)
                             if pool == at for period in turn.periods):
            usd[period] += more
        for first, then, nodes in stretches(nodes_of[number][at]):
            if nodes:
                yield max(first * size, agenda.services[number].start), then * size, nodes, sum(usd[first:then])


def stretches(values: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield stretches of equal values: first, first after, value."""
    first = 0
    for at in range(1, len(values) + 1):
        if at == len(values) or values[at] != values[first]:
            yield first, at, values[first]
            first = at


def periods_of(agenda: Agenda, schedule: Schedule) -> tuple[Period, ...]:
    """Return how full every pool is that has or takes nodes; periods that are alike are one entry."""
    problem, made = agenda.problem, []
    size, busy, served = problem.period_seconds, used(problem, schedule), serving(problem, schedule)
    for at, supplier in enumerate(agenda.suppliers):
        nodes = there(problem, supplier.pool, schedule.lots[at]) or busy[at]
        if not any(nodes):
            continue
        rows = [(nodes[period], sum(counts[at][period] for counts in served), busy[at][period])
                for period in range(problem.periods)]
        number = {row: code for code, row in enumerate(dict.fromkeys(rows))}
        for first, then, _ in stretches([number[row] for row in rows]):
            available, serves, all_ = rows[first]
            made.append(Period(start=iso(agenda.moment(first * size)), end=iso(agenda.moment(then * size)),
                               pool=supplier.name, available=available, serving=serves, training=all_ - serves))
    return tuple(made)


def cash_of(agenda: Agenda, schedule: Schedule) -> tuple[Cash, ...]:
    """Return money by calendar month, in cents; together exactly what is supplied."""
    months: dict[str, Fraction] = {}
    for usd, start, end in spent(agenda.problem, schedule):
        for month, share in _months(agenda.moment(start), agenda.moment(end)):
            months[month] = months.get(month, Fraction()) + usd * share
    made, total, before, last = [], Fraction(), 0, max(months, default="")
    for month in sorted(months):
        total += months[month]
        now = (math.ceil if month == last else math.floor)(total / CENT) * CENT
        made.append(Cash(month=month, usd=(now - before) / MICRO))
        before = now
    return tuple(made)


def _months(start: datetime, end: datetime) -> Iterator[tuple[str, Fraction]]:
    """Yield the calendar months of a stretch of time, each with its share of it."""
    seconds, begin = round((end - start).total_seconds()), start
    while begin < end:
        then = min(end, next_month(begin))
        yield begin.strftime("%Y-%m"), Fraction(round((then - begin).total_seconds()), seconds)
        begin = then


def objective_of(agenda: Agenda, schedule: Schedule) -> Objective:
    """Return money spent and paid for being late, and its bound; what is rejected is no part of it."""
    if schedule.value is None:
        return Objective(name="cost_usd")
    forgone = sum(task.worth or 0 for task, placed in zip(agenda.problem.tasks, schedule.tasks, strict=True)
                  if placed is None)
    value = in_cents(schedule.value - forgone) / MICRO
    bound = None if schedule.bound is None else in_cents(schedule.bound - forgone) / MICRO
    gap = None if bound is None else 0.0 if value == bound else (value - bound) / (schedule.value / MICRO)
    seen = None if agenda.missed is None else ByReplay(met=not agenda.missed, gap=None, missed=agenda.missed)
    return Objective(name="cost_usd", value=value, bound=bound, gap=gap, by_replay=seen)
