"""Portfolios drawn by a seed, with columns that are given: what the scheduler is asked at the sizes of its goals."""

from __future__ import annotations

import math
from random import Random

from planner.solver.fleet.schedule import CENT, DAY_SECONDS, HOUR_SECONDS, Lot, Option, Pool, Problem, Task

USD = 10**6
KINDS = ("own", "rent", "reserve", "buy")
"""How the nodes of one type are had; pool after pool, type after type."""
OWNED_SHARE = 0.6
"""Of the node-hours that all jobs take."""
STARTS = 13
"""Dates on which nodes may be reserved or delivered."""


def portfolio(jobs: int, pools: int, periods: int, seed: int, *, days: int = 365) -> Problem:
    """Return a question of so many jobs, pools and periods over so many days."""
    random = Random(f"{jobs} {pools} {periods} {seed}")
    size = days * DAY_SECONDS // periods // HOUR_SECONDS * HOUR_SECONDS
    kinds = [(at // len(KINDS), KINDS[at % len(KINDS)]) for at in range(pools)]
    types = kinds[-1][0] + 1
    speeds = [1.0 + 0.7 * at for at in range(types)]
    prices = [round(20 * USD * speed ** 0.9 * random.uniform(0.9, 1.1)) for speed in speeds]
    work = [math.exp(random.gauss(math.log(2_000), 1.0)) for _ in range(jobs)]
    each = OWNED_SHARE * sum(work) / types / (periods * size / HOUR_SECONDS)
    made = [_pool(random, how, periods, size, prices[of], max(4, round(each / speeds[of] * 1.4)))
            for of, how in kinds]
    horizon = periods * size
    tasks = []
    for at in range(jobs):
        release = random.randrange(0, round(horizon * 0.7), size) if random.random() < 0.7 else 0
        options = tuple(_options(random, work[at], kinds, made, speeds, prices, horizon - release))
        shortest = min(option.seconds for option in options)
        end = min(horizon, release + round(random.uniform(1.5, 8.0) * shortest) + 3 * size)
        hard, priced = random.random() < 0.5, random.random() < 0.4
        cheapest = min(one.micro_usd or one.nodes * one.seconds * 5 * USD // HOUR_SECONDS for one in options)
        tasks.append(Task(
            options, release, end if hard else None, end if not hard and priced else None,
            random.randrange(1_000, 100_000) if not hard and priced else 0,
            round(cheapest * random.uniform(0.5, 3.0)) // CENT * CENT if random.random() < 0.3 else None,
            (random.randrange(at),) if at and not hard and random.random() < 0.2 else (), random.random() < 0.2))
    return Problem(periods, size, tuple(made), tuple(tasks))


def _pool(random: Random, how: str, periods: int, size: int, price: int, nodes: int) -> Pool:
    hours, every = size // HOUR_SECONDS, max(1, -(-periods // STARTS))
    if how == "own":
        down = random.randrange(periods)
        return Pool(tuple(nodes // 2 if down <= at < down + 2 else nodes for at in range(periods)), price // 15)
    if how == "rent":
        return Pool(None, price)
    if how == "reserve":
        length = max(1, periods // 2)
        cost = price * 6 // 10 * hours * length // CENT * CENT
        return Pool(lots=tuple(Lot(at, at + length, (cost,), nodes) for at in range(0, periods, every)))
    first = periods // 6
    return Pool(lots=tuple(Lot(at, periods, tuple(
        round((count * price * 0.4 + price * 0.6) * hours * (periods - at)) // CENT * CENT if count else 0
        for count in range(nodes + 1)), nodes) for at in range(first, periods, every)))


def _options(random: Random, work: float, kinds: list[tuple[int, str]], pools: list[Pool], speeds: list[float],
             prices: list[int], left: int) -> list[Option]:
    made: list[Option] = []
    for pool, (of, how) in enumerate(kinds):
        most = max(pools[pool].capacity or ()) if how == "own" else pools[pool].lots[0].most if pools[pool].lots else 64
        nodes = 1
        while nodes <= most:
            hours = work / speeds[of] / nodes ** 0.93
            seconds = math.ceil(hours * HOUR_SECONDS)
            if seconds <= left:
                paid = 0 if pools[pool].lots else nodes * pools[pool].micro_usd_per_node_hour
                made.append(Option(pool, nodes, seconds, -(-paid * seconds // HOUR_SECONDS // CENT) * CENT, 1_800, 0))
            nodes *= 2
    random.shuffle(made)
    return sorted(made, key=lambda one: one.pool)
