"""What stands against a way to do a job, in words: dates, nodes that others are on, quotas, power and money."""

from __future__ import annotations

from planner.ask.portfolio.elsewhere import AFTER, BEFORE, BUDGET, DEADLINE, NODES, RELEASE, Elsewhere, Rest
from planner.ask.portfolio.limited import asked_limit
from planner.jobs.agenda import POWER, Agenda
from planner.jobs.columns import MICRO
from planner.scenario.moment import written
from planner.units import plural, show_usd

LISTED = 3
"""Other jobs that are named."""


def lacking(agenda: Agenda, rest: Rest, known: Elsewhere, way: int, at: int) -> str:
    """Return all that stands against a way."""
    option = known.options[int(known.ways.option[way])]
    start, then = int(known.ways.start[way]), int(known.ways.end[way])
    return "; ".join(_said(agenda, rest, name, lack, at, option.pool, option.nodes, start, then,
                           int(known.end[way])) for name, lack in known.lacking(way).items())


def _said(agenda: Agenda, rest: Rest, name: str, lack: int, at: int, pool: int, nodes: int, start: int, then: int,
          end: int) -> str:
    problem, schedule, task = agenda.problem, rest.schedule, agenda.problem.tasks[at]
    first, last = (written(agenda.moment(second)) for second in (start * problem.period_seconds, end))
    if name == NODES:
        others = occupants(agenda, rest, pool, start, then)
        why = f", used by {others}" if others else ": not there then, or in maintenance" if (
            agenda.suppliers[pool].how == "own") else ": none is had then"
        short = plural(nodes, "node") if lack == nodes else f"{lack:,} of {plural(nodes, 'node')}"
        return (f"{short} of {agenda.suppliers[pool].name} missing between {first} and {last}{why}")
    if name == RELEASE:
        return f"it is released after {first}"
    if name == DEADLINE:
        until = task.deadline if task.due is None else task.due
        return f"it would end {last}, after " + ("the horizon" if until is None else "its deadline")
    if name in (AFTER, BEFORE):
        waits = [other for other in (task.after if name == AFTER else range(len(problem.tasks)))
                 if name == AFTER or at in problem.tasks[other].after]
        shown = ", ".join(dict.fromkeys(agenda.label(agenda.items[other]) for other in waits
                                        if name == AFTER or schedule.tasks[other] is not None))
        return f"it waits for {shown}" if name == AFTER else f"{shown} waits for it, and starts before it would end"
    asked = asked_limit(agenda, name)
    if name in (BUDGET, *agenda.purses):
        return f"{show_usd(lack / MICRO)} above {name} {asked}"
    return f"{lack:,} {'W ' if name in POWER else ''}above {name} {asked}"


def occupants(agenda: Agenda, rest: Rest, pool: int, start: int, end: int) -> str:
    """Return the names of the jobs that are on a pool between two periods; of many the first."""
    problem, schedule = agenda.problem, rest.schedule
    names = [agenda.label(item) for task, item, placed in zip(
        problem.tasks, agenda.items, schedule.tasks, strict=True)
        if placed is not None and task.options[placed.option].pool == pool
        and any(first < end and then > start for first, then in placed.runs)]
    names += [agenda.portfolio.jobs[standing.job].name for standing, service, counts in zip(
        agenda.services, problem.services, schedule.services, strict=False)
        if any(block.pool == pool and any(row[at] for load in counts for row in load)
               for at, block in enumerate(service.blocks))]
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
