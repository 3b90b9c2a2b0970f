"""Replicas of a schedule's services, load by load, and what replays show of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from planner.jobs.agenda import Agenda, spare_of
from planner.jobs.columns import MICRO, Pick
from planner.jobs.job import Replayable, Tried
from planner.jobs.missed import left_of
from planner.jobs.same import replica_of
from planner.solver.fleet.schedule import Load, Schedule

NARROW = 0.98
"""What is left of a rate after a miss that may be chance."""
Need: TypeAlias = tuple[int, int]
"""Micro-requests/s of an hour, and of the busiest hour of its day."""


@dataclass(frozen=True, slots=True)
class Standby:
    """Replicas of a service, in blocks, and the needs that a schedule answers with them, the least first."""

    service: int
    row: tuple[int, ...]
    needs: tuple[Need, ...]

    def rate(self, agenda: Agenda) -> int:
        """Return the micro-requests/s that they answer, as computed."""
        blocks = agenda.problem.services[self.service].blocks
        return sum(count * block.micro_rate for count, block in zip(self.row, blocks, strict=True))


def standbys(agenda: Agenda, found: Schedule) -> Iterator[Standby]:
    """Yield the different replicas of every service that has targets; needs are those of the question."""
    for number, (standing, counts) in enumerate(zip(agenda.services, found.services, strict=False)):
        job = agenda.jobs[standing.job]
        if not isinstance(job, Replayable) or not job.can_miss:
            continue
        needs: dict[tuple[int, ...], set[Need]] = {}
        for load, rows in zip(agenda.problem.services[number].loads, counts, strict=True):
            for (need, _), row in zip(load.needs, rows, strict=True):
                if any(row) and _factor(agenda, number, need) > 0:
                    needs.setdefault(row, set()).add((need, busiest(load)))
        for row, mine in needs.items():
            yield Standby(number, row, tuple(sorted(mine)))


def busiest(load: Load) -> int:
    """Return the need of the busiest hour."""
    return max(need for need, _ in load.needs)


def eased(agenda: Agenda, less: Mapping[tuple[int, Need], int]) -> Agenda:
    """Return the question with other needs; less: what becomes of some, by service and need."""
    services = tuple(replace(service, loads=tuple(replace(load, needs=tuple(
        (less.get((number, (need, busiest(load))), need), hours) for need, hours in load.needs))
        for load in service.loads)) for number, service in enumerate(agenda.problem.services))
    return replace(agenda, problem=replace(agenda.problem, services=services)) if less else agenda


@dataclass(slots=True)
class Replays:
    """What replays have shown so far."""

    known: dict[object, Tried] = field(default_factory=dict)
    grown: dict[tuple[int, float], Replayable] = field(default_factory=dict)
    """Services by number of the job and growth of the load."""
    met: dict[object, list[tuple[int, float, bool, Tried]]] = field(default_factory=dict)
    """By service and kind: replicas of one kind that met every target, at which factor of the load, and whether that
    is a day's busiest hour, of which more is replayed.
    """
    requests: int = 0

    def of(self, agenda: Agenda, one: Standby) -> tuple[list[Pick], Tried] | None:
        """Return some replicas on their offers, and what a replay of their largest load shows; none without any."""
        picks = _picks(agenda, one)
        return (picks, self._tried(agenda, one.service, one.needs[-1], picks)) if picks else None

    def held(self, agenda: Agenda, one: Standby, needs: Sequence[Need]) -> set[Need]:
        """Return those of some needs that replicas hold by replay: more load on the same day is no easier."""
        picks, found = _picks(agenda, one), set[Need]()
        for day in sorted({day for _, day in needs}, reverse=True):
            mine = sorted(need for need in needs if need[1] == day)
            low, high = 0, len(mine)
            while low < high:
                middle = (low + high) // 2
                if self._meets(agenda, one.service, mine[middle], picks):
                    low = middle + 1
                else:
                    high = middle
            found.update(mine[:low])
        return found

    def _meets(self, agenda: Agenda, service: int, need: Need, picks: list[Pick]) -> bool:
        """Say whether replicas hold a need; a narrow miss of theirs may be chance, which one replica less tells."""
        shown = self._tried(agenda, service, need, picks)
        if shown.meets or len(picks) > 1 or picks[0].replicas < 2 or min(left_of(picks, shown)) < NARROW:
            return shown.meets
        return self._tried(agenda, service, need, [replace(picks[0], replicas=picks[0].replicas - 1)]).meets

    def _tried(self, agenda: Agenda, service: int, need: Need, picks: list[Pick]) -> Tried:
        """Return what a replay shows, which the rates that are computed for replicas of one kind do not change.

        What fewer replicas held, or the same at a higher load, is no longer tried.
        """
        kinds = [replica_of(pick.column, agenda.market.candidates) for pick in picks]
        factor, day = (_factor(agenda, service, one) for one in need)
        met = self.met.setdefault((service, kinds[0]), []) if len(picks) == 1 else []
        for replicas, most, whole, shown in met:
            if replicas <= picks[0].replicas and most >= factor and (whole or factor < day):
                return shown
        key = (service, factor, day, tuple(zip(kinds, (pick.replicas for pick in picks), strict=True)),
               tuple(pick.column.rate for pick in picks) if len(picks) > 1 else ())
        if key not in self.known:
            self.known[key] = shown = self._replayed(agenda, agenda.services[service].job, factor, day, picks)
            self.requests += shown.requests
            if shown.meets:
                met.append((picks[0].replicas, factor, factor == day, shown))
        return self.known[key]

    def _replayed(self, agenda: Agenda, number: int, factor: float, day: float, picks: list[Pick]) -> Tried:
        """Replay a load; a busiest hour that asks for more is as much growth, whose requests are drawn for it."""
        job = agenda.jobs[number]
        assert isinstance(job, Replayable)
        if job.has_trace:
            # its arrivals are brought closer by any factor
            return job.tried(picks, factor, None)
        peak = max(agenda.columns[number].demands[0].day or (1.0,))
        growth = day / peak
        if (number, growth) not in self.grown:
            self.grown[number, growth] = job if growth == 1 else job.times(growth)
        return self.grown[number, growth].tried(picks, factor / day * peak, None)


def _factor(agenda: Agenda, service: int, need: int) -> float:
    """Return a need as a factor of the rate that is asked, without what is spare."""
    standing = agenda.services[service]
    demand = agenda.columns[standing.job].demands[0]
    spare = spare_of(demand, [(block, replicas) for block, (_, replicas) in zip(
        agenda.problem.services[service].blocks, standing.columns, strict=True)])
    return (need - spare) / (demand.needed * MICRO)


def _picks(agenda: Agenda, one: Standby) -> list[Pick]:
    """Return replicas on their offers."""
    service, standing = agenda.problem.services[one.service], agenda.services[one.service]
    made = []
    for block, (column, replicas), count in zip(service.blocks, standing.columns, one.row, strict=True):
        if count:
            nodes = count * block.nodes
            made.append(Pick(0, 0, column, replace(agenda.suppliers[block.pool].offer, commitment=0.0),
                             count * replicas, nodes, (nodes,), together=nodes))
    return made
