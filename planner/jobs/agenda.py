"""A portfolio as the fleet model sees it: tasks and services from the columns of its jobs, on the pools there are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeAlias

from planner.catalog.calibration import Reliability
from planner.jobs.columns import MICRO, Columns, Demand, ReplicaColumn
from planner.jobs.job import Job
from planner.jobs.market import Market
from planner.jobs.offering import MOST_WAYS, Offering, beyond, spread
from planner.jobs.pools import MOST_STARTS, Supplier
from planner.jobs.purchases import as_late_as_may_be
from planner.scenario.moment import months_since
from planner.scenario.portfolio import Portfolio
from planner.scenario.portfolio_job import PortfolioJob
from planner.scenario.quarters import quarter_after, quarter_of
from planner.scenario.recurring import releases
from planner.solver.column import Column
from planner.solver.fleet.schedule import (
    CENT,
    HOUR_SECONDS,
    Ceiling,
    Endless,
    Load,
    NodeBlock,
    Option,
    Problem,
    Purse,
    Task,
    Turn,
)

QUARTER = "budget_by_quarter"
"""The limit of calendar quarters; of one of them with its name, as in budget_by_quarter.2027-Q1."""
Alike: TypeAlias = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]
"""Of a period what a service needs in how many hours, and what is there of the pools that have nodes."""
POWER = ("max_power", "site_power")
"""Limits in watts."""


@dataclass(frozen=True, slots=True)
class JobTask:
    """One task: an instance of a job, with the column behind each of its options."""

    job: int
    number: int | None
    """Of several alike, from 1."""
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """One service, with the column and the replicas behind each of its blocks."""

    job: int
    columns: tuple[tuple[ReplicaColumn, int], ...]
    start: int = 0
    """Second of the horizon from which it runs."""


@dataclass(frozen=True)
class Agenda:
    """A portfolio with its columns, pools and problem."""

    portfolio: Portfolio
    jobs: tuple[Job, ...]
    columns: tuple[Columns, ...]
    market: Market
    suppliers: tuple[Supplier, ...]
    problem: Problem
    items: tuple[JobTask, ...]
    services: tuple[Standing, ...]
    offering: Offering
    left_out: int = 0
    """Columns that were not offered."""
    beyond: tuple[tuple[Option, ...], ...] = ()
    """By task, what none of those is better than."""
    empty: tuple[int, ...] = ()
    """Jobs without any column on any pool."""
    ceilings: tuple[str, ...] = ()
    """Names of the problem's ceilings."""
    purses: tuple[str, ...] = ()
    """Names of the limits that the problem's purses are of: of one amount for all quarters one name."""
    missed: tuple[str, ...] | None = None
    """Which targets services miss by replay, and by how much; none where nothing was replayed."""

    @property
    def relaxed(self) -> Problem | None:
        """The problem with what no column that was left out is better than; none where all are offered."""
        return replace(self.problem, tasks=tuple(replace(task, options=task.options + more) for task, more in zip(
            self.problem.tasks, self.beyond, strict=True))) if any(self.beyond) else None

    def answering(self, columns: Sequence[Columns]) -> Agenda:
        """Return the same question with other columns of its jobs."""
        return agenda_of(self.portfolio, self.jobs, columns, self.market, self.offering.suppliers,
                         self.offering.reliability)

    def label(self, item: JobTask) -> str:
        """Return what an instance is called."""
        name = self.portfolio.jobs[item.job].name
        return name if item.number is None else f"{name} {item.number}"

    def moment(self, second: int) -> datetime:
        """Return the date of a second of the horizon."""
        return self.portfolio.horizon.start + timedelta(seconds=second)

    def only(self, jobs: Collection[int]) -> Agenda:
        """Return the agenda of some of the jobs: they wait no longer for the others."""
        kept = [at for at, item in enumerate(self.items) if item.job in jobs]
        place = {at: number for number, at in enumerate(kept)}
        tasks = tuple(replace(self.problem.tasks[at], after=tuple(
            place[other] for other in self.problem.tasks[at].after if other in place)) for at in kept)
        served = [(mine, service) for mine, service in zip(self.services, self.problem.services, strict=True)
                  if mine.job in jobs]
        problem = replace(self.problem, tasks=tasks, services=tuple(service for _, service in served))
        return replace(self, problem=problem, items=tuple(self.items[at] for at in kept),
                       beyond=tuple(self.beyond[at] for at in kept),
                       services=tuple(mine for mine, _ in served))


def agenda_of(portfolio: Portfolio, jobs: Sequence[Job], columns: Sequence[Columns], market: Market,
              suppliers: Sequence[Supplier], reliability: Reliability) -> Agenda:
    """Return the whole question in the solver's integers. Raises Unsupported for a service it cannot hold."""
    items: list[JobTask] = []
    tasks: list[Task] = []
    standing: list[Standing] = []
    services: list[Endless] = []
    left_out, empty = 0, []
    best: list[tuple[Option, ...]] = []
    instances: dict[str, range] = {}
    offering = Offering(portfolio, suppliers, reliability)
    runs = [[] if mine.demands else offering.options(mine) for mine in columns]
    ways = portfolio.horizon.periods * sum(len(options) * sum(1 for _ in _instances(portfolio, asked))
                                           for options, asked in zip(runs, portfolio.jobs, strict=True))
    for at in _in_order(portfolio):
        asked, mine = portfolio.jobs[at], columns[at]
        if mine.demands:
            blocks = offering.blocks(asked, mine)
            standing.append(Standing(at, tuple((column, replicas) for _, column, replicas in blocks), round((
                (asked.from_ or portfolio.horizon.start) - portfolio.horizon.start).total_seconds())))
            loads, turns = _loads(portfolio, asked, mine.demands[0], blocks, suppliers)
            services.append(Endless(tuple(block for block, _, _ in blocks), loads, turns, mine.demands[0].changing))
            empty += [] if blocks else [at]
            continue
        options = runs[at]
        kept = spread(options, suppliers, every=ways <= MOST_WAYS)
        left_out += len(options) - len(kept)
        empty += [] if kept else [at]
        first = len(tasks)
        for number, release in _instances(portfolio, asked):
            best.append(beyond(options, kept))
            items.append(JobTask(at, number, tuple(column for _, column in kept)))
            tasks.append(_task(portfolio, asked, release, [option for option, _ in kept],
                               tuple(other for name in asked.after for other in instances[name])))
        instances[asked.name] = range(first, len(tasks))
    horizon, limits = portfolio.horizon, portfolio.limits
    suppliers = [_capped(at, _bought(portfolio, at, supplier, tasks), tasks, services)
                 for at, supplier in enumerate(suppliers)]
    ceilings = dict(_ceilings(portfolio, suppliers))
    last = max([horizon.periods, *(lot.end for supplier in suppliers for lot in supplier.pool.lots)])
    purses = list(_quarters(portfolio, last))
    problem = Problem(
        horizon.periods, round(horizon.period), tuple(supplier.pool for supplier in suppliers),
        tuple(tasks), tuple(services),
        tuple(ceilings.values()), None if limits.budget is None else math.floor(limits.budget * MICRO),
        tuple(purse for _, purse in purses))
    return Agenda(portfolio, tuple(jobs), tuple(columns), market, tuple(suppliers), problem, tuple(items),
                  tuple(standing), offering, left_out, tuple(best), tuple(empty), tuple(ceilings),
                  tuple(name for name, _ in purses))


def _bought(portfolio: Portfolio, at: int, supplier: Supplier, tasks: Sequence[Task]) -> Supplier:
    """Return a pool of bought nodes with deliveries that leave tasks just the time they need; others as they are."""
    estate = supplier.offer.estate
    return supplier if estate is None else replace(supplier, pool=as_late_as_may_be(
        portfolio, estate, supplier.pool, at, tasks, MOST_STARTS))


def _capped(at: int, supplier: Supplier, tasks: Sequence[Task], services: Sequence[Endless]) -> Supplier:
    """Return a pool without lots of more nodes than all that is offered on it could ever use at once."""
    most = sum(max((option.nodes for option in task.options if option.pool == at), default=0) for task in tasks)
    for service in services:
        peak = max((need for load in service.loads for need, _ in load.needs), default=0)
        most += max((-(-peak // block.micro_rate) * block.nodes for block in service.blocks if block.pool == at),
                    default=0)
    lots = tuple(replace(lot, most=min(lot.most, most), micro_usd=lot.micro_usd[:max(2, most + 1)])
                 for lot in supplier.pool.lots if most)
    return replace(supplier, pool=replace(supplier.pool, lots=lots)) if most else supplier


def _in_order(portfolio: Portfolio) -> Iterator[int]:
    """Yield the numbers of jobs so that what is waited for comes first."""
    numbers, done = list(range(len(portfolio.jobs))), set[str]()
    while numbers:
        at = next(number for number in numbers if done.issuperset(portfolio.jobs[number].after))
        numbers.remove(at)
        done.add(portfolio.jobs[at].name)
        yield at


def _instances(portfolio: Portfolio, asked: PortfolioJob) -> Iterator[tuple[int | None, datetime]]:
    """Yield every instance of a job: its number, and when it is released."""
    alone = asked.every is None and not asked.count
    for number, release in enumerate(releases(portfolio.horizon, asked.release, asked.every, asked.count), 1):
        yield (None if alone else number), release


def _task(portfolio: Portfolio, asked: PortfolioJob, release: datetime, options: Sequence[Option],
          after: tuple[int, ...]) -> Task:
    start = portfolio.horizon.start
    due = asked.due(release)
    deadline = None if due is None else math.floor((due - start).total_seconds())
    hard = asked.late is None
    return Task(tuple(options), math.ceil((release - start).total_seconds()), deadline if hard else None,
                None if hard else deadline, 0 if asked.late is None else math.ceil(round(asked.late * 100, 3)),
                None if asked.worth is None else math.ceil(round(asked.worth * 100, 3)) * CENT, after, asked.may_pause)


def _loads(portfolio: Portfolio, asked: PortfolioJob, demand: Demand,
           blocks: Sequence[tuple[NodeBlock, ReplicaColumn, int]], suppliers: Sequence[Supplier]
           ) -> tuple[tuple[Load, ...], tuple[Turn, ...]]:
    """Return what a service needs, of periods that need the same where as many nodes are there; and when that turns."""
    horizon, start = portfolio.horizon, asked.from_ or portfolio.horizon.start
    day = demand.day or (1.0,) * 24
    spare = spare_of(demand, [(block, replicas) for block, _, replicas in blocks])
    alike: dict[Alike, list[int]] = {}
    hours: list[tuple[int, tuple[Alike, int]]] = []
    for period in range(horizon.periods):
        begin = horizon.start + timedelta(seconds=period * horizon.period)
        end = begin + timedelta(seconds=horizon.period)
        if end <= start:
            continue
        factor = max((1 + (asked.growth or 0.0)) ** max(0, months_since(start, moment))
                     for moment in (begin, end - timedelta(seconds=1)))
        needs = [math.ceil(demand.needed * factor * day[(begin + timedelta(hours=hour)).hour] * MICRO) + spare
                 for hour in range(round(horizon.period / HOUR_SECONDS)) if begin + timedelta(hours=hour + 1) > start]
        there = tuple(supplier.pool.capacity[period] for supplier in suppliers if supplier.pool.capacity is not None)
        key = tuple(sorted(Counter(needs).items())), there
        alike.setdefault(key, []).append(period)
        hours += [(period, (key, need)) for need in needs]
    loads = tuple(Load(tuple(periods), key[0]) for key, periods in alike.items())
    place = {(key, need): (at, number) for at, key in enumerate(alike)
             for number, (need, _) in enumerate(key[0])}
    turns: dict[tuple[tuple[int, int], tuple[int, int]], list[int]] = {}
    for (_, before), (period, then) in pairwise(hours if demand.changing else ()):
        if before != then:
            turns.setdefault((place[before], place[then]), []).append(period)
    return loads, tuple(Turn(before, then, tuple(periods)) for (before, then), periods in turns.items())


def spare_of(demand: Demand, blocks: Sequence[tuple[NodeBlock, int]]) -> int:
    """Return the micro-requests/s on top of what is asked: as much as the strongest replicas answer that may fail."""
    return demand.spares * max(((block.micro_rate // (min(block.nodes, replicas) if demand.whole_nodes else replicas))
                                for block, replicas in blocks), default=0)


def _ceilings(portfolio: Portfolio, suppliers: Sequence[Supplier]) -> Iterator[tuple[str, Ceiling]]:
    """Yield what all pools together take at most, by name."""
    limits, rent = portfolio.limits, portfolio.sourcing.rent
    for node, most in sorted(rent.quota.items()) if rent else ():
        weights = tuple(int(supplier.is_rented and supplier.node == node) for supplier in suppliers)
        if any(weights):
            yield f"quota.{node}", Ceiling(weights, most, held=True)
    if limits.max_nodes is not None:
        yield "max_nodes", Ceiling((1,) * len(suppliers), limits.max_nodes)
    if limits.max_gpus is not None:
        yield "max_gpus", Ceiling(tuple(supplier.pool.gpus for supplier in suppliers), limits.max_gpus)
    if limits.max_power is not None:
        yield "max_power", Ceiling(tuple(supplier.pool.watts for supplier in suppliers), math.floor(limits.max_power))
    if limits.site_power is not None:
        yield "site_power", Ceiling(tuple(supplier.pool.watts * (not supplier.is_rented) for supplier in suppliers),
                                    math.floor(limits.site_power))


def _quarters(portfolio: Portfolio, periods: int) -> Iterator[tuple[str, Purse]]:
    """Yield every calendar quarter that has a budget, with the limit that this is."""
    start, by_quarter = portfolio.horizon.start, portfolio.limits.budget_by_quarter
    end = start + timedelta(seconds=periods * portfolio.horizon.period)
    begin = start
    while by_quarter is not None and begin < end:
        then, quarter = quarter_after(begin), quarter_of(begin)
        usd = by_quarter.get(quarter) if isinstance(by_quarter, dict) else by_quarter
        if usd is not None:
            yield QUARTER if not isinstance(by_quarter, dict) else f"{QUARTER}.{quarter}", Purse(
                round((begin - start).total_seconds()), round((min(then, end) - start).total_seconds()),
                math.floor(usd * MICRO))
        begin = then
