"""A portfolio as the fleet model sees it: tasks and services from the columns of its jobs, on the pools there are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from planner.catalog.calibration import Reliability
from planner.errors import Unsupported
from planner.jobs.columns import MICRO, Columns, Demand, ReplicaColumn
from planner.jobs.job import Job
from planner.jobs.market import Market
from planner.jobs.pools import Supplier
from planner.scenario.moment import months_since
from planner.scenario.portfolio import Portfolio, PortfolioJob
from planner.solver.column import Column
from planner.solver.fleet.schedule import (
    CENT,
    HOUR_SECONDS,
    Block,
    Ceiling,
    Load,
    Option,
    Problem,
    Purse,
    Service,
    Task,
)
from planner.solver.quantize import DURATION_QUANTUM, cost_cents, duration_limit, price

MOST_OPTIONS = 8
"""Columns of a job offered on one pool, evenly over the numbers of nodes; the plan counts those left out."""
MOST_ENDLESS = 12
"""The same over all pools whose nodes are taken as needed."""
MONTHS_OF_QUARTER = 3


@dataclass(frozen=True, slots=True)
class Item:
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


@dataclass(frozen=True)
class Agenda:
    """A portfolio with its columns, pools and problem."""

    portfolio: Portfolio
    jobs: tuple[Job, ...]
    columns: tuple[Columns, ...]
    market: Market
    suppliers: tuple[Supplier, ...]
    problem: Problem
    items: tuple[Item, ...]
    services: tuple[Standing, ...]
    left_out: int = 0
    """Columns that were not offered."""
    empty: tuple[int, ...] = field(default=())
    """Jobs without any column on any pool."""

    def label(self, item: Item) -> str:
        """Return what an instance is called."""
        name = self.portfolio.jobs[item.job].name
        return name if item.number is None else f"{name} {item.number}"

    def moment(self, second: int) -> datetime:
        """Return the date of a second of the horizon."""
        return self.portfolio.horizon.start + timedelta(seconds=second)

    def without(self, job: int) -> Agenda:
        """Return the agenda of one job alone: what waits for others does no longer."""
        kept = [at for at, item in enumerate(self.items) if item.job == job]
        problem = replace(self.problem, tasks=tuple(replace(self.problem.tasks[at], after=()) for at in kept),
                          services=tuple(one for one, mine in zip(self.problem.services, self.services, strict=True)
                                         if mine.job == job))
        return replace(self, problem=problem, items=tuple(self.items[at] for at in kept),
                       services=tuple(one for one in self.services if one.job == job))


def agenda_of(portfolio: Portfolio, jobs: Sequence[Job], columns: Sequence[Columns], market: Market,
              suppliers: Sequence[Supplier], reliability: Reliability) -> Agenda:
    """Return the whole question in the solver's integers. Raises Unsupported for a service it cannot hold."""
    items: list[Item] = []
    tasks: list[Task] = []
    standing: list[Standing] = []
    services: list[Service] = []
    left_out, empty = 0, []
    instances: dict[str, range] = {}
    offering = _Offering(portfolio, suppliers, reliability)
    for at in _in_order(portfolio):
        asked, mine = portfolio.jobs[at], columns[at]
        if mine.demands:
            found = offering.blocks(asked, mine)
            standing.append(Standing(at, tuple((column, replicas) for _, column, replicas in found)))
            services.append(Service(tuple(block for block, _, _ in found),
                                    tuple(_loads(portfolio, asked, mine.demands[0], found, suppliers))))
            empty += [] if found else [at]
            continue
        options = offering.options(mine)
        kept = _spread(options, suppliers)
        left_out += len(options) - len(kept)
        empty += [] if kept else [at]
        first = len(tasks)
        for number, release in _instances(portfolio, asked):
            items.append(Item(at, number, tuple(column for _, column in kept)))
            tasks.append(_task(portfolio, asked, release, [option for option, _ in kept],
                               tuple(other for name in asked.after for other in instances[name])))
        instances[asked.name] = range(first, len(tasks))
    horizon, limits = portfolio.horizon, portfolio.limits
    last = max([horizon.periods, *(lot.end for one in suppliers for lot in one.pool.lots)])
    problem = Problem(
        horizon.periods, round(horizon.period), tuple(one.pool for one in suppliers), tuple(tasks), tuple(services),
        tuple(_ceilings(portfolio, suppliers)), None if limits.budget is None else math.floor(limits.budget * MICRO),
        () if limits.budget_by_quarter is None else tuple(_quarters(portfolio, last, limits.budget_by_quarter)))
    return Agenda(portfolio, tuple(jobs), tuple(columns), market, tuple(suppliers), problem, tuple(items),
                  tuple(standing), left_out, tuple(empty))


def _in_order(portfolio: Portfolio) -> Iterator[int]:
    """Yield the numbers of jobs so that what is waited for comes first."""
    numbers, done = list(range(len(portfolio.jobs))), set[str]()
    while numbers:
        at = next(number for number in numbers if done.issuperset(portfolio.jobs[number].after))
        numbers.remove(at)
        done.add(portfolio.jobs[at].name)
        yield at


@dataclass(frozen=True, slots=True)
class _Offering:
    """Turns columns into options and blocks, on every pool of their hardware."""

    portfolio: Portfolio
    suppliers: Sequence[Supplier]
    reliability: Reliability

    def options(self, columns: Columns) -> list[tuple[Option, Column]]:
        """Return every run on every pool that has as many nodes, none as good as another in all that counts."""
        found = []
        for column in columns.runs:
            for at, supplier in enumerate(self.suppliers):
                if supplier.offer.candidate != column.candidate:
                    continue
                most = supplier.most
                if most is None or column.rented_nodes <= most:
                    found.append((self._option(at, supplier, column), column))
        return [one for number, one in enumerate(found) if not any(
            self._stands_for(other[0], one[0], first=at < number) for at, other in enumerate(found) if at != number)]

    def _option(self, at: int, supplier: Supplier, column: Column) -> Option:
        each, nodes = supplier.pool.micro_usd_per_node_hour, column.rented_nodes
        seconds = math.ceil(column.duration_us * DURATION_QUANTUM - DURATION_QUANTUM / 2)
        write = column.checkpoint_bytes / (self.reliability.checkpoint_write_per_node * column.nodes)
        pause = math.ceil(write + self.reliability.restart)
        paid = max(column.duration_us, duration_limit(supplier.offer.commitment))
        cents = 0 if supplier.pool.lots else cost_cents(nodes, price(supplier.offer.usd_per_node_hour), paid)
        return Option(at, nodes, max(1, seconds), cents * CENT, pause, -(-nodes * each * pause // HOUR_SECONDS))

    def _stands_for(self, other: Option, one: Option, *, first: bool) -> bool:
        """Say whether `other` is as good in all that counts; of equals the first."""
        pools = [self.suppliers[option.pool] for option in (other, one)]
        if other.pool != one.pool and not all(pool.pool.is_endless for pool in pools):
            return False
        limits, quota = self.portfolio.limits, self.portfolio.sourcing.rent.quota if self.portfolio.sourcing.rent else {}
        shared = [pool.node if pool.node in quota else "" for pool in pools]
        if shared[0] not in ("", shared[1]):
            return False
        counts = other.pool == one.pool and not pools[0].pool.is_endless or bool(
            shared[0]) or limits.max_nodes is not None
        mine, theirs = [(option.micro_usd, option.seconds, option.nodes if counts else 0,
                         option.nodes * pool.pool.watts if limits.max_power is not None else 0,
                         option.nodes * pool.pool.gpus if limits.max_gpus is not None else 0)
                        for option, pool in ((one, pools[1]), (other, pools[0]))]
        return all(a <= b for a, b in zip(theirs, mine, strict=True)) and (theirs != mine or first)

    def blocks(self, asked: PortfolioJob, columns: Columns) -> list[tuple[Block, ReplicaColumn, int]]:
        """Return whole nodes filled with replicas of one layout, on every pool; with the replicas of each block.

        Raises Unsupported for a service without replicas that answer whole requests.
        """
        whole = [column for demand, column in columns.replicas if demand == 0 and column.role == "whole"]
        if columns.replicas and not whole:
            raise Unsupported(f"prefill and decode on separate replicas in a portfolio ({asked.name}): leave "
                              "disaggregated out")
        found: list[tuple[Block, ReplicaColumn, int]] = []
        for at, supplier in enumerate(self.suppliers):
            best: dict[int, tuple[Block, ReplicaColumn, int]] = {}
            for column in sorted(whole, key=lambda one: one.plainness):
                if column.candidate != supplier.offer.candidate:
                    continue
                nodes, each = -(-column.gpus // supplier.pool.gpus), max(1, supplier.pool.gpus // column.gpus)
                rate = each * math.floor(column.rate * MICRO)
                if rate > (best[nodes][0].micro_rate if nodes in best else 0):
                    best[nodes] = Block(at, nodes, rate), column, each
            found += [one for nodes, one in sorted(best.items()) if not any(
                fewer < nodes and other[0].micro_rate * nodes >= one[0].micro_rate * fewer
                for fewer, other in best.items())]
        return [one for number, one in enumerate(found) if not any(
            self._cheaper(other[0], one[0], first=at < number) for at, other in enumerate(found) if at != number)]

    def _cheaper(self, other: Block, one: Block, *, first: bool) -> bool:
        """Say whether a block can always stand for another: on nodes taken as needed, no dearer and as strong."""
        pools = [self.suppliers[block.pool].pool for block in (other, one)]
        limits = self.portfolio.limits
        limited = any((limits.max_gpus, limits.max_nodes, limits.max_power)) or bool(
            self.portfolio.sourcing.rent and self.portfolio.sourcing.rent.quota)
        if limited or not all(pool.is_endless for pool in pools):
            return False
        theirs, mine = [(block.nodes * pool.micro_usd_per_node_hour, -block.micro_rate)
                        for block, pool in zip((other, one), pools, strict=True)]
        return theirs[0] <= mine[0] and theirs[1] <= mine[1] and (theirs != mine or first)


def _spread(options: Sequence[tuple[Option, Column]], suppliers: Sequence[Supplier]) -> list[tuple[Option, Column]]:
    """Return few options of every pool: the cheapest, the fastest, the smallest, and some evenly between."""
    groups: dict[int, list[tuple[Option, Column]]] = {}
    for one in options:
        pool = one[0].pool
        groups.setdefault(-1 if suppliers[pool].pool.is_endless else pool, []).append(one)
    kept = []
    for pool, mine in sorted(groups.items()):
        most = MOST_ENDLESS if pool < 0 else MOST_OPTIONS
        mine.sort(key=lambda one: (one[0].seconds, one[0].nodes, one[0].pool, one[1].key))
        cheapest = min(range(len(mine)), key=lambda at: (mine[at][0].micro_usd, mine[at][0].seconds))
        smallest = min(range(len(mine)), key=lambda at: (mine[at][0].nodes, mine[at][0].seconds))
        chosen = {0, cheapest, smallest, len(mine) - 1}
        steps = [math.log(max(1, one[0].seconds)) for one in mine]
        for number in range(1, most - 1):
            wanted = steps[0] + (steps[-1] - steps[0]) * number / (most - 1)
            if len(chosen) < most:
                chosen.add(min(range(len(mine)), key=lambda at: abs(steps[at] - wanted)))
        kept += [one for at, one in enumerate(mine) if len(mine) <= most or at in chosen]
    return kept


def _instances(portfolio: Portfolio, asked: PortfolioJob) -> Iterator[tuple[int | None, datetime]]:
    """Yield every instance of a job: its number, and when it is released."""
    release, horizon = asked.release or portfolio.horizon.start, portfolio.horizon
    if asked.every is None:
        for number in range(asked.count or 1):
            yield (number + 1 if asked.count else None), release
        return
    every, number = timedelta(seconds=asked.every), 0
    while release + every <= horizon.end and (asked.count is None or number < asked.count):
        number += 1
        yield number, release
        release += every


def _task(portfolio: Portfolio, asked: PortfolioJob, release: datetime, options: Sequence[Option],
          after: tuple[int, ...]) -> Task:
    start = portfolio.horizon.start
    deadline = None if asked.deadline is None else math.floor((asked.deadline - start).total_seconds())
    hard = asked.late is None
    return Task(tuple(options), math.ceil((release - start).total_seconds()), deadline if hard else None,
                None if hard else deadline, 0 if asked.late is None else math.ceil(round(asked.late * 100, 3)),
                None if asked.worth is None else math.ceil(round(asked.worth * 100, 3)) * CENT, after, asked.may_pause)


def _loads(portfolio: Portfolio, asked: PortfolioJob, demand: Demand,
           blocks: Sequence[tuple[Block, ReplicaColumn, int]], suppliers: Sequence[Supplier]) -> list[Load]:
    """Return what a service needs: periods that need the same where as many nodes are there."""
    horizon, start = portfolio.horizon, asked.from_ or portfolio.horizon.start
    day = demand.day or (1.0,) * 24
    # replicas that may fail are no help: as much as the strongest ones answer comes on top
    spare = demand.spares * max((block.micro_rate // replicas for block, _, replicas in blocks), default=0)
    alike: dict[object, list[int]] = {}
    needs: dict[object, tuple[tuple[int, int], ...]] = {}
    for period in range(horizon.periods):
        begin = horizon.start + timedelta(seconds=period * horizon.period)
        end = begin + timedelta(seconds=horizon.period)
        if end <= start:
            continue
        factor = max((1 + (asked.growth or 0.0)) ** max(0, months_since(start, moment))
                     for moment in (begin, end - timedelta(seconds=1)))
        hours = Counter(math.ceil(demand.needed * factor * day[(begin + timedelta(hours=hour)).hour] * MICRO) + spare
                        for hour in range(round(horizon.period / HOUR_SECONDS)))
        need = tuple(sorted((micro, count) for micro, count in hours.items()))
        there = tuple(one.pool.capacity[period] for one in suppliers if one.pool.capacity is not None)
        alike.setdefault((need, there), []).append(period)
        needs[need, there] = need
    return [Load(tuple(periods), needs[key]) for key, periods in alike.items()]


def _ceilings(portfolio: Portfolio, suppliers: Sequence[Supplier]) -> Iterator[Ceiling]:
    limits, rent = portfolio.limits, portfolio.sourcing.rent
    for node, most in sorted(rent.quota.items()) if rent else ():
        weights = tuple(int(one.is_rented and one.node == node) for one in suppliers)
        if any(weights):
            yield Ceiling(weights, most, held=True)
    if limits.max_nodes is not None:
        yield Ceiling((1,) * len(suppliers), limits.max_nodes)
    if limits.max_gpus is not None:
        yield Ceiling(tuple(one.pool.gpus for one in suppliers), limits.max_gpus)
    if limits.max_power is not None:
        yield Ceiling(tuple(one.pool.watts for one in suppliers), math.floor(limits.max_power))


def _quarters(portfolio: Portfolio, periods: int, usd: float) -> Iterator[Purse]:
    """Yield every calendar quarter that money may be spent in."""
    start, end = portfolio.horizon.start, portfolio.horizon.start + timedelta(seconds=periods * portfolio.horizon.period)
    begin = start
    while begin < end:
        month = (begin.month - 1) // MONTHS_OF_QUARTER * MONTHS_OF_QUARTER + MONTHS_OF_QUARTER + 1
        then = begin.replace(year=begin.year + month // 13, month=(month - 1) % 12 + 1, day=1, hour=0, minute=0)
        yield Purse(round((begin - start).total_seconds()), round((min(then, end) - start).total_seconds()),
                    math.floor(usd * MICRO))
        begin = then
