"""Every job of a schedule in full: its layout and figures from its kind, its dates from the schedule."""

from __future__ import annotations

from dataclasses import replace

from planner.answer.assignment import Assignment
from planner.answer.portfolio import Segment
from planner.ask.portfolio.ledger import stretches
from planner.jobs.agenda import Agenda
from planner.jobs.columns import Pick, Run
from planner.jobs.job import Picked
from planner.jobs.pools import Supplier
from planner.scenario.moment import iso
from planner.solver.fleet.schedule import DAY_SECONDS, Counts, Endless, Placed, Schedule, lateness

DIGITS = 6
"""Decimals of a number of days: a tenth of a second."""


def assignments_of(agenda: Agenda, schedule: Schedule) -> tuple[Assignment, ...]:
    """Return all jobs in the order of the question; of a service one for every layout on every pool."""
    made: list[tuple[int, Assignment]] = []
    for at, placed in enumerate(schedule.tasks):
        made.append((agenda.items[at].job, _task(agenda, at, placed)))
    for number, counts in enumerate(schedule.services):
        made += [(agenda.services[number].job, assignment) for assignment in _service(agenda, number, counts)]
    return tuple(assignment for _, assignment in sorted(made, key=lambda pair: pair[0]))


def full(agenda: Agenda, job: int, supplier: Supplier, pick: Picked) -> Assignment:
    """Return what was picked for a job as its kind shows it, and check it. Raises RuntimeError for a defect."""
    mine, columns = agenda.jobs[job], agenda.columns[job]
    # the term of a reservation is paid for as supply; the least that a rental is paid for, by the job
    offer = replace(supplier.offer, commitment=0.0) if supplier.pool.lots else supplier.offer
    mine = mine.under(replace(mine.terms, market=agenda.market.only(offer)))
    if wrong := mine.faults(columns, [pick]):
        raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
    return mine.assignments(columns, [pick])[0]


def _task(agenda: Agenda, at: int, placed: Placed | None) -> Assignment:
    problem, task, item = agenda.problem, agenda.problem.tasks[at], agenda.items[at]
    number = placed.option if placed is not None else min(
        range(len(task.options)), key=lambda way: (task.options[way].micro_usd, task.options[way].seconds))
    supplier = agenda.suppliers[task.options[number].pool]
    shown = full(agenda, item.job, supplier, Run(0, item.columns[number], supplier.offer))
    update: dict[str, object] = {"workload": agenda.label(item), "job": agenda.portfolio.jobs[item.job].name,
                                 "status": "rejected" if placed is None else "planned"}
    if placed is None:
        return shown.model_copy(update={**update, "segments": ()})
    size, end, nodes = problem.period_seconds, placed.end(problem, task), task.options[number].nodes
    ends = [*(then * size for _, then in placed.runs[:-1]), end]
    segments = tuple(Segment(start=iso(agenda.moment(first * size)), end=iso(agenda.moment(then)), nodes=nodes)
                     for (first, _), then in zip(placed.runs, ends, strict=True))
    return shown.model_copy(update={
        **update, "pool": supplier.name, "start": segments[0].start, "end": segments[-1].end, "segments": segments,
        "late_days": round(lateness(problem, task, placed) / DAY_SECONDS, DIGITS)})


def _service(agenda: Agenda, number: int, counts: Counts) -> list[Assignment]:
    """Return every layout of a service on every pool, at its busiest hour."""
    problem, standing = agenda.problem, agenda.services[number]
    service: Endless = problem.services[number]
    made = []
    for at, (block, (column, replicas)) in enumerate(zip(service.blocks, standing.columns, strict=True)):
        nodes = [0] * problem.periods
        for load, rows in zip(service.loads, counts, strict=True):
            for period in load.periods:
                nodes[period] = max(row[at] for row in rows) * block.nodes
        busiest = max(nodes)
        if not busiest:
            continue
        supplier, size = agenda.suppliers[block.pool], problem.period_seconds
        pick = Pick(0, 0, column, replace(supplier.offer, commitment=0.0), busiest // block.nodes * replicas, busiest,
                    (busiest,), together=busiest)
        segments = tuple(Segment(start=iso(agenda.moment(max(first * size, standing.start))),
                                 end=iso(agenda.moment(then * size)), nodes=count)
                         for first, then, count in stretches(nodes) if count)
        made.append(full(agenda, standing.job, supplier, pick).model_copy(update={
            "job": agenda.portfolio.jobs[standing.job].name, "workload": agenda.portfolio.jobs[standing.job].name,
            "status": "planned", "pool": supplier.name, "start": segments[0].start, "end": segments[-1].end,
            "segments": segments, "late_days": 0.0}))
    return made
