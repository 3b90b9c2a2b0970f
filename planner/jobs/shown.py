"""What replays have shown of fleets of services, and the best fleet by that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from planner.jobs.columns import Columns, Demand, Pick, ReplicaColumn
from planner.jobs.fleet import Owner
from planner.jobs.job import Replayable, Tried
from planner.jobs.missed import LEAST_CUT, ROUNDED, left_of
from planner.jobs.one_kind import node_of
from planner.jobs.same import Key, chunked, owner_of, replica_of
from planner.jobs.solved import Solved
from planner.simulate.trace import Trace

MARGIN = 1.12
"""By how much what was not replayed may answer more than computed, or than a replay showed."""
FEW = 8
"""Replicas of an hour, of which one less is not tried by the margin: each would do 1 / 7 more or above."""
BARELY = 1 + 1e-4
"""Over what is needed, as rates are rounded down."""
NOTHING_RAISED: Mapping[Key, float] = {}


@dataclass
class Trials:
    """What replays have shown so far."""

    start: Solved
    given: Trace | None
    rates: dict[Key, float] = field(default_factory=dict)
    """Of the columns that missed."""
    needs: dict[tuple[Owner, int], float] = field(default_factory=dict)
    """By what the need of an hour is raised, as its requests are harder to answer than those of the busiest."""
    known: dict[object, Tried] = field(default_factory=dict)
    blamed: set[str] = field(default_factory=set)
    """Node types whose replicas missed beside those of others: on their own they may do with less."""
    last: set[Key] = field(default_factory=set)
    """Those that missed where fleets cheaper than one that meets the targets were tried: they get no margin."""
    too_few: dict[tuple[Key, frozenset[tuple[Key, int]]], int] = field(default_factory=dict)
    """Replicas of a kind that missed, the most, beside those of other kinds."""
    unsure: set[tuple[Key, int]] = field(default_factory=set)
    """Replicas of a kind whose replays hold but vary: they say nothing of fewer, which may vary less."""
    asked: set[tuple[Key, int]] = field(default_factory=set)
    """Replicas of a kind by which a fleet was asked for that has fewer."""
    out: set[tuple[Key, frozenset[tuple[Key, int]]]] = field(default_factory=set)
    """Replicas of a kind that a fleet was asked for with one less of, all others answering more."""
    caps: dict[tuple[object, ...], float] = field(default_factory=dict)
    """What layouts were shown to answer then with some settings, over the most by formula with targets that are eased:
    others of their settings with as large a chunk get no more of theirs.
    """
    requests: int = 0
    changing: bool = True
    """Whether what a day's changes cost counts."""
    enough: float = 0.0
    """Below which value of the objective a fleet that meets the targets will do; none at it or above is of interest."""

    @cached_property
    def jobs(self) -> dict[int, Replayable]:
        """The services, by their place among the jobs."""
        return {at: job for at, job in enumerate(self.start.question.jobs) if isinstance(job, Replayable)}

    def job(self, owner: Owner) -> Replayable:
        """Return the service of a demand."""
        return self.jobs[owner[0]]

    def key(self, owner: Owner, column: ReplicaColumn) -> Key:
        """Return what is the same replica."""
        return owner, *replica_of(column, self.start.question.terms.market.candidates)

    @cached_property
    def computed(self) -> dict[Key, float]:
        """The rates of columns as they were computed."""
        return {self.key((job, at), column): column.rate for job, mine in enumerate(self.start.columns)
                for at, column in mine.replicas}

    @cached_property
    def most(self) -> dict[Key, float]:
        """The rates up to which replays may keep the targets though the formula does not."""
        most = dict(self.computed)
        for key, column in self._doubtful:
            most[key] = max(column.rate, most.get(key, 0.0))
        return most

    @property
    def further(self) -> float:
        """How many times what is computed of a column replays may show of it at most."""
        return max([MARGIN, *(self.most[key] / rate for key, rate in self.computed.items() if rate)])

    @cached_property
    def _doubtful(self) -> list[tuple[Key, ReplicaColumn]]:
        return [(self.key((job, at), column), column) for job in self.jobs
                for at, column in self.start.columns[job].doubtful()]

    def will_do(self, solved: Solved) -> bool:
        """Say whether a fleet is below what is enough."""
        return (math.inf if (value := solved.objective.value) is None else value) < self.enough

    def is_over(self, solved: Solved) -> bool:
        """Say whether time is, or no fleet is below what is enough, whatever replays may still show."""
        in_vain = 0 < self.enough < math.inf and not self.will_do(solved) and not self.will_do(self.solve(self.further))
        return in_vain or self.start.effort.is_over

    def solve(self, margin: float = 1.0, raised: Mapping[Key, float] = NOTHING_RAISED) -> Solved:
        """Return the best fleet by what is known, with columns that did not miss at `margin` times their rate, and
        those `raised` at the rates told.
        """
        columns = tuple(self._columns(job, mine, margin, raised) for job, mine in enumerate(self.start.columns))
        fleet = replace(self.start.fleet, columns=columns)
        return replace(self.start, columns=columns, fleet=fleet, solution=fleet.solve())

    def _columns(self, job: int, mine: Columns, margin: float, raised: Mapping[Key, float]) -> Columns:
        columns, can_miss = [], job in self.jobs and self.jobs[job].can_miss
        beside = [] if margin == 1.0 and not self.rates else [
            (key[0][1], replace(column, rate=0.0)) for key, column in self._doubtful
            if key[0][0] == job and key not in self.computed]
        for at, column in (*mine.replicas, *beside):
            key = self.key((job, at), column)
            rate = self.rates.get(key, column.rate)
            if margin > 1.0 and can_miss and key not in self.last:
                rate = self._more(key, rate, margin)
            columns.append((at, replace(column, rate=raised.get(key, rate))))
        demands = tuple(self._demand(job, at, mine) for at in range(len(mine.demands)))
        return replace(mine, replicas=tuple(pair for pair in columns if pair[1].rate > 0), demands=demands)

    def _more(self, key: Key, rate: float, margin: float) -> float:
        """Return what a column may answer above its rate at most."""
        # what a replay has shown is tried further by one margin at a time; and what missed as one of several kinds, or
        # among few users that ask in step, may alone or among many still answer all that is hoped of it
        further, most = rate * (min(margin, MARGIN) if key in self.rates else margin), self.most[key]
        return max(rate, min(max(further, most), most * self.caps.get(chunked(key), math.inf)))

    def fewer(self, best: Solved) -> dict[Key, float]:
        """Return the rates at which fewer replicas of each kind would do: one less, or half way to what missed.

        What was asked for so before is left out, and so is a day, whose hours have replicas of their own.
        """
        raised: dict[Key, float] = {}
        counts = self._counts(best)
        for pick in best.picks:
            if not isinstance(pick, Pick) or pick.hourly or not self.job(owner_of(pick)).can_miss:
                continue
            key = self.key(owner_of(pick), pick.column)
            missed = self.too_few.get((key, counts - {(key, pick.replicas)}), 0)
            less = (missed + pick.replicas) // 2 if missed else pick.replicas - 1
            while missed < less and (key, less) in self.unsure:
                less -= 1
            if missed < less and (key, less) not in self.asked:
                self.asked.add((key, less))
                raised[key] = self._enough(best, pick, less)
        return raised or self._one_out(best)

    def _enough(self, best: Solved, pick: Pick, less: int) -> float:
        """Return the rate at which so many replicas would do in place of those of a pick, and no fewer."""
        owner, rate = owner_of(pick), pick.column.rate
        demand, most = self.start.fleet.demands[owner], rate * pick.replicas / less * ROUNDED
        if demand.spares:
            return most
        others = math.fsum(other.replicas * other.column.rate for other in best.picks
                           if isinstance(other, Pick) and other is not pick and owner_of(other) == owner
                           and other.column.role == pick.column.role)
        left = demand.needed * self.needs.get((owner, 0), 1.0) - others
        return max(rate, min(most, left / less * BARELY))

    def _one_out(self, best: Solved) -> dict[Key, float]:
        """Return the rates at which a fleet of several kinds does with one replica less of one, which the others share;
        none where each was asked for so.
        """
        counts = self._counts(best)
        picks = [pick for pick in best.picks if isinstance(pick, Pick)]
        for pick in sorted(picks, key=lambda pick: pick.column.rate):
            owner, role = owner_of(pick), pick.column.role
            mine = [other for other in picks if owner_of(other) == owner and other.column.role == role]
            place = self.key(owner, pick.column), counts
            if len(mine) < 2 or pick.hourly or not self.job(owner).can_miss or place in self.out:
                continue
            self.out.add(place)
            whole = sum(other.replicas * other.column.rate for other in mine)
            more = whole / (whole - pick.column.rate) * ROUNDED
            return {self.key(owner, other.column): other.column.rate * more for other in mine}
        return {}

    def note(self, missed: Solved, owner: Owner, short: list[Pick], *, unsure: bool) -> None:
        """Note that so many replicas of some kinds were too few, or may be."""
        counts = self._counts(missed)
        for pick in short:
            key = self.key(owner, pick.column)
            if unsure:
                self.unsure.add((key, pick.replicas))
                continue
            place = key, counts - {(key, pick.replicas)}
            self.too_few[place] = max(pick.replicas, self.too_few.get(place, 0))

    def _counts(self, solved: Solved) -> frozenset[tuple[Key, int]]:
        return frozenset((self.key(owner_of(pick), pick.column), pick.replicas) for pick in solved.picks
                         if isinstance(pick, Pick))

    def _demand(self, job: int, at: int, mine: Columns) -> Demand:
        demand = mine.demands[at] if self.changing else replace(mine.demands[at], changing=0)
        more = {hour: factor for (owner, hour), factor in self.needs.items() if owner == (job, at)}
        if demand.day is None:
            return replace(demand, needed=demand.needed * more.get(0, 1.0))
        return replace(demand, day=tuple(factor * more.get(hour, 1.0) for hour, factor in enumerate(demand.day)))

    def misses(self, solved: Solved) -> Iterator[tuple[Owner, int, list[Pick], Tried]]:
        """Replay a fleet hour by hour, the busiest first; yield what misses a target."""
        seen: set[object] = set()
        for owner, hours in self.hours().items():
            for hour in hours:
                picks = [pick for pick in solved.fleet.picks_at(solved.solution, hour) if owner_of(pick) == owner]
                if not picks:
                    continue
                factor = self._factor(owner, hour)
                least = self._hoped(owner, picks)
                key = owner, factor, tuple((self.key(owner, pick.column), pick.replicas) for pick in picks), least < 1
                if key not in self.known:
                    self.known[key] = self.job(owner).tried(picks, factor, self.given, least if least < 1 else 0.0)
                    self.requests += self.known[key].requests
                if not self.known[key].meets and key not in seen:
                    seen.add(key)
                    yield owner, hour, picks, self.known[key]
                    if hour == hours[0]:
                        # what it takes from the busiest hour changes the others
                        break

    def _hoped(self, owner: Owner, picks: Sequence[Pick]) -> float:
        """Return the least share of what is hoped of replicas that was known of them; 1 where that is all."""
        return min(1.0, *(self._known(owner, pick) / pick.column.rate for pick in picks))

    def _known(self, owner: Owner, pick: Pick) -> float:
        """Return the rate of a replica by formula or by what was replayed; zero where it never keeps the targets."""
        return self.rates.get(key := self.key(owner, pick.column), self.computed.get(key, 0.0))

    def misses_of_day(self, solved: Solved) -> Iterator[tuple[Owner, int, list[Pick], Tried]]:
        """Replay whole days, which the plan shows; yield what misses a target in the busiest hours."""
        for owner, demand in self.start.fleet.demands.items():
            picks = [pick for pick in solved.picks if isinstance(pick, Pick) and owner_of(pick) == owner]
            if demand.day is None or not picks:
                continue
            shown = self.job(owner).tried_day(picks)
            self.requests += shown.requests
            if not shown.meets:
                yield owner, self.hours()[owner][0], picks, shown

    @property
    def counts_changes(self) -> bool:
        """Whether fleets are chosen with what a day's changes cost."""
        return self.changing and any(demand.changing for demand in self.start.fleet.demands.values())

    def hours(self) -> dict[Owner, list[int]]:
        """Return the hours of each demand in which anybody asks, the busiest first."""
        return {owner: sorted((hour for hour, factor in enumerate(day) if factor), key=lambda hour: -day[hour])
                for owner, day in ((at, each.day or (1.0,)) for at, each in self.start.fleet.demands.items())}

    def _factor(self, owner: Owner, hour: int) -> float:
        day = self.start.fleet.demands[owner].day
        return 1.0 if day is None else day[hour]

    def cut(self, owner: Owner, hour: int, picks: list[Pick], shown: Tried, *, whole: bool) -> None:
        """Take from the replicas that missed what they do not hold; `whole`: of all that could be in their place."""
        day = self.start.fleet.demands[owner].day
        left = left_of(picks, shown)
        self._blame(picks)
        busiest = day is None or day[hour] == max(day)
        if min(left) > 0 and (whole or not busiest):
            alike = [at for at, factor in enumerate(day or (1.0,)) if day is None or factor == day[hour]]
            for place in alike:
                self.needs[owner, place] = max(1 / min(left), self.needs.get((owner, place), 1.0) / LEAST_CUT)
            return
        for pick, part in zip(picks, left, strict=True):
            if part < 1:
                self.rates[self.key(owner, pick.column)] = pick.column.rate * part

    def _blame(self, picks: Sequence[Pick]) -> None:
        nodes = {node_of(self.start, pick.column) for pick in picks}
        self.blamed |= nodes if len(nodes) > 1 else set()

    def hold(self, key: Key, rate: float) -> None:
        """Note what a replica was shown to answer."""
        self.rates[key] = max(rate, self.rates.get(key, 0.0))

    def refute(self, missed: Solved, owner: Owner, picks: list[Pick], shown: Tried) -> None:
        """Take from the replicas of a fleet that holds less than was hoped for what they do not hold, once for all."""
        self._blame(picks)
        # of prefill and decode apart, one may have missed alone
        short = [pick for pick, asked, held in zip(picks, shown.asked, shown.held, strict=True) if held < asked]
        if not any(pick.hourly for pick in picks):
            self.note(missed, owner, short or picks, unsure=shown.unsure)
        parts = dict(zip(map(id, picks), left_of(picks, shown), strict=True))
        for pick in short or picks:
            key = self.key(owner, pick.column)
            # what was hoped for in vain says nothing of what was known
            known, left = self._known(owner, pick), pick.column.rate * parts[id(pick)]
            self.rates[key] = max(left, known) if known < pick.column.rate else left
            self.last.add(key)
            part = self.rates[key] / self.most[key]
            self.caps[chunked(key)] = max(part, self.caps.get(chunked(key), 0.0))
