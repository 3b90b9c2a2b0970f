"""What a service would cost on every other pool, with all jobs where they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.answer.portfolio import OtherWay
from planner.ask.portfolio.elsewhere import NODES, Rest
from planner.ask.portfolio.limited import asked_limit
from planner.jobs.agenda import Agenda
from planner.jobs.columns import MICRO
from planner.scenario.moment import iso
from planner.solver.fleet.schedule import Endless, NodeBlock, Schedule
from planner.units import show_usd


def standing_elsewhere(agenda: Agenda, schedule: Schedule, number: int) -> Iterator[OtherWay]:
    """Yield for every pool what all of a service would cost more on it alone, or what is missing there."""
    problem, service = agenda.problem, agenda.problem.services[number]
    rest = Rest(agenda, schedule, None, number)
    blocks = agenda.offering.every_block(agenda.columns[agenda.services[number].job])
    counts = schedule.services[number]
    now = rest.saved + sum(len(load.periods) * hours * count * block.nodes * _price(agenda, block)
                           for load, rows in zip(service.loads, counts, strict=True)
                           for (_, hours), row in zip(load.needs, rows, strict=True)
                           for block, count in zip(service.blocks, row, strict=True))
    on = {block.pool for at, block in enumerate(service.blocks) if any(row[at] for rows in counts for row in rows)}
    first = min(period for load in service.loads for period in load.periods)
    then = max(period for load in service.loads for period in load.periods) + 1
    for (how, node), kind in kinds_of(agenda).items():
        if on & set(kind):
            continue
        ways = []
        for block in (one for one, _, _ in blocks if one.pool in kind):
            nodes, usd, within = _needed(agenda, service, block)
            # as many nodes all the time as in the busiest period: a schedule that can be had
            room = rest.room(block.pool, np.array([first]), np.array([then]), np.array([max(nodes)], dtype=np.int64))
            paid = usd + int(room.usd[0])
            money = rest.money(np.array([paid]), [mine + more for mine, more in zip(within, room.within, strict=True)])
            lacking = {name: int(lack[0]) for name, lack in {NODES: room.missing, **room.lacks, **money}.items()
                       if lack[0]}
            ways.append((len(lacking), paid - now, max(nodes), block.pool, lacking))
        if not ways:
            yield OtherWay(pool=f"{how} {node}", because="no layout of it meets the targets there")
            continue
        against, more, most, pool, lacking = min(ways, key=lambda way: way[:4])
        yield OtherWay(pool=agenda.suppliers[pool].name, nodes=most, usd=None if against else more / MICRO,
                       start=iso(agenda.moment(first * problem.period_seconds)),
                       end=iso(agenda.moment(then * problem.period_seconds)),
                       because=_said(agenda, most, lacking) if against else
                       f"{show_usd(abs(more) / MICRO)} {'less' if more < 0 else 'more'}")


def kinds_of(agenda: Agenda) -> dict[tuple[str, str], list[int]]:
    """Return the pools of each node type, by how its nodes are had."""
    kinds: dict[tuple[str, str], list[int]] = {}
    for at, supplier in enumerate(agenda.suppliers):
        kinds.setdefault((supplier.how, supplier.node), []).append(at)
    return kinds


def _price(agenda: Agenda, block: NodeBlock) -> int:
    return agenda.problem.pools[block.pool].micro_usd_per_node_hour


def _needed(agenda: Agenda, service: Endless, block: NodeBlock) -> tuple[list[int], int, list[int]]:
    """Return the nodes of each load at its busiest, the micro-USD of all of them, and those of each quarter."""
    size = agenda.problem.period_seconds
    nodes = [max(-(-need // block.micro_rate) for need, _ in load.needs) * block.nodes for load in service.loads]
    usd = [sum(hours * -(-need // block.micro_rate) for need, hours in load.needs) * block.nodes * _price(agenda, block)
           for load in service.loads]
    within = [sum(-(-each * max(0, min((period + 1) * size, purse.end) - max(period * size, purse.start)) // size)
                  for each, load in zip(usd, service.loads, strict=True) for period in load.periods)
              for purse in agenda.problem.purses]
    return nodes, sum(each * len(load.periods) for each, load in zip(usd, service.loads, strict=True)), within


def _said(agenda: Agenda, nodes: int, lacking: dict[str, int]) -> str:
    return "; ".join(f"{lack:,} of its {nodes:,} nodes at the busiest are missing" if name == NODES
                     else f"above {name} {asked_limit(agenda, name)}" for name, lack in lacking.items())
