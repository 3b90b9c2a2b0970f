"""The replay has the last word on services of a portfolio: replicas that miss a target answer less, and all is planned
again, until what is planned meets every target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from planner.jobs.agenda import Agenda, spare_of
from planner.jobs.columns import MICRO, Columns, Pick, ReplicaColumn
from planner.jobs.job import Replayable, Tried
from planner.jobs.missed import LEAST_CUT, left_of
from planner.solver.fleet.schedule import Schedule
from planner.solver.settings import Effort

ROUNDS = 12
"""Plans whose services are replayed, at most."""
Solve = Callable[[Agenda, Effort], Schedule]


@dataclass(frozen=True, slots=True)
class _Fleet:
    """Replicas of a service that some load is answered with, and its largest load as a factor of its rate."""

    service: int
    row: tuple[int, ...]
    factor: float


def replayed(agenda: Agenda, effort: Effort, solve: Solve) -> tuple[Agenda, Schedule]:
    """Return the question as replays leave it, and its schedule; what still misses then is said in the question."""
    known: dict[object, Tried] = {}
    found = solve(agenda, effort)
    for number in range(ROUNDS):
        fleets = list(_fleets(agenda, found))
        if not fleets:
            return agenda, found
        shown = [(fleet, picks, _tried(agenda, fleet, picks, known)) for fleet in fleets
                 if (picks := _picks(agenda, fleet))]
        missing = [one for one in shown if not one[2].meets]
        agenda = replace(agenda, missed=tuple(dict.fromkeys(
            f"{agenda.jobs[agenda.services[fleet.service].job].name} {tried.missed}" for fleet, _, tried in missing)))
        if not missing:
            return agenda, found
        if found.interrupted or effort.is_over or number == ROUNDS - 1:
            break
        columns = list(agenda.columns)
        for fleet, picks, tried in missing:
            job = agenda.services[fleet.service].job
            columns[job] = _cut(columns[job], picks, tried)
        again = agenda.answering(columns)
        solved = solve(again, effort) if not again.empty else Schedule("infeasible")
        if solved.value is None:
            break
        agenda, found = again, solved
    return agenda, replace(found, status="feasible")


def _fleets(agenda: Agenda, found: Schedule) -> Iterator[_Fleet]:
    """Yield the different fleets of every service that has targets, each at its largest load."""
    for number, (standing, counts) in enumerate(zip(agenda.services, found.services, strict=False)):
        job = agenda.jobs[standing.job]
        if not isinstance(job, Replayable) or not job.can_miss:
            continue
        service, demand = agenda.problem.services[number], agenda.columns[standing.job].demands[0]
        spare = spare_of(demand, [(block, replicas) for block, (_, replicas) in zip(
            service.blocks, standing.columns, strict=True)])
        most: dict[tuple[int, ...], float] = {}
        for load, rows in zip(service.loads, counts, strict=True):
            for (need, _), row in zip(load.needs, rows, strict=True):
                factor = (need - spare) / (demand.needed * MICRO)
                most[row] = max(most.get(row, 0.0), factor)
        for row, factor in most.items():
            if factor > 0:
                yield _Fleet(number, row, factor)


def _picks(agenda: Agenda, fleet: _Fleet) -> list[Pick]:
    """Return the replicas of a fleet on their offers."""
    service, standing = agenda.problem.services[fleet.service], agenda.services[fleet.service]
    made = []
    for block, (column, replicas), count in zip(service.blocks, standing.columns, fleet.row, strict=True):
        if count:
            nodes = count * block.nodes
            made.append(Pick(0, 0, column, replace(agenda.suppliers[block.pool].offer, commitment=0.0),
                             count * replicas, nodes, (nodes,), together=nodes))
    return made


def _tried(agenda: Agenda, fleet: _Fleet, picks: list[Pick], known: dict[object, Tried]) -> Tried:
    """Return what a replay shows of a fleet, which the rates that are computed for its replicas do not change."""
    job = agenda.jobs[agenda.services[fleet.service].job]
    assert isinstance(job, Replayable)
    key = (fleet.service, fleet.factor, tuple((replace(pick.column, rate=0.0), pick.offer.label, pick.replicas)
                                              for pick in picks), tuple(pick.column.rate for pick in picks)
           if len(picks) > 1 else ())
    if key not in known:
        known[key] = job.tried(picks, fleet.factor, None)
    return known[key]


def _cut(columns: Columns, picks: list[Pick], tried: Tried) -> Columns:
    """Return the columns of a service with less rate for the replicas that missed."""
    left: dict[ReplicaColumn, float] = {
        pick.column: part for pick, part in zip(picks, left_of(picks, tried), strict=True) if part < 1}
    less = left or dict.fromkeys((pick.column for pick in picks), LEAST_CUT)
    kept = ((at, replace(column, rate=column.rate * less.get(column, 1.0))) for at, column in columns.replicas)
    return replace(columns, replicas=tuple((at, column) for at, column in kept if column.rate > 0))
