"""What replicas hold by replay: whether they keep every target on requests of several seeds, and at what load."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from planner.catalog.load import Catalog
from planner.jobs.columns import Pick, Role
from planner.jobs.job import Tried
from planner.jobs.serving.answers import at_load, loads
from planner.jobs.serving.replay import MOST_REQUESTS, REQUESTS, filling, replay, requests_of
from planner.jobs.serving.service import Service
from planner.jobs.serving.tried_fleet import Seen, TriedFleet, beside, fleet_of, latency_of
from planner.layouts.candidate import Candidate
from planner.simulate.outcome import Latency, Outcome
from planner.simulate.trace import Trace

SEEDS = (0, 1, 2)
"""Of the requests drawn; the first are those that the plan shows."""
MANY = 8000
"""Requests from which on one seed says as much as several."""
OF_AN_HOUR = 1500
"""Requests of an hour of the day that is not the busiest, at least."""
STEPS_OF_A_DAY = (0.99, 0.97, 0.94, 0.9, 0.8)
"""Shares of a day's load that are tried in turn where all of it is too much."""
STEPS = (0.95, 0.85, 0.7, 0.5, 0.3, 0.15, 0.05)
"""Shares of the load that are tried in turn where all of it is too much."""
SURE, SLACK = 2.0, 0.01
"""Standard deviations of replays by which they keep a target, of which a hundredth may be missed so."""
NEARBY = 1.01
"""Times the load at which a trace must be held too: it is one draw, and half a percent of it may lie at a limit."""
NEVER_EMPTIED = "a cache that a burst has filled is never worked off at this load"


def tried(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick], factor: float,
          given: Trace | None = None, least: float = 0.0) -> Tried:
    """Return what replays of the picks of one service show, at its rate times a factor, with headroom and spares.

    given: a trace that must be held besides. least: the share up to which it is of no interest how much is held.
    """
    service = replace(service, rate=(service.rate or 0.0) * factor)
    asked_of, load = service.asked, 1 + service.asked.headroom
    left = _without_nodes(picks, candidates, asked_of.spare_nodes) if asked_of.spare_nodes else _without_spares(
        picks, asked_of.spare_replicas)
    if {pick.column.role for pick in picks} != {pick.column.role for pick in left}:
        return Tried(False, (1.0,) * len(picks), (0.0,) * len(picks), 0)
    rates = dict(zip(map(_kind, left), loads(service, left), strict=True))
    asked = tuple(rates.get(_kind(pick), 0.0) * load for pick in picks)
    fleet = fleet_of(catalog, service, candidates, at_load(catalog, service, candidates, left))
    traces = _traces(service, factor)
    if service.trace is None:
        # a sample of the replicas fills with as large a part of the requests
        traces = [trace.first(max(REQUESTS, int(filling(service) * fleet.part))) for trace in traces]
    if given is not None:
        traces.append(requests_of(service, given))
    if service.trace is not None:
        traces += [replace(trace, arrival=trace.arrival / NEARBY) for trace in traces]
    shown = _replayed(fleet, traces, load)
    if not shown.lost and shown.worst[-1] <= 1 and float(np.mean(shown.worst)) + shown.spread <= 1:
        drawn = service.trace is None and asked_of.clients is None
        short = filling(service) * fleet.part > MOST_REQUESTS
        # without a target all that can be too much is what replicas never work off
        crowded = drawn and (short or not asked_of.levels or any(one.preempted for one in shown.seen))
        full = fleet.rates_when_full() if crowded else [math.inf] * len(left)
        most_of = dict(zip(map(_kind, left), full, strict=True))
        held = tuple(min(rate, most_of.get(_kind(pick), math.inf)) for pick, rate in zip(picks, asked, strict=True))
        return Tried(held == asked, asked, held, shown.requests, lambda: "" if held == asked else NEVER_EMPTIED)
    shares, more = _sustained(shown, least)
    return Tried(False, asked, tuple(rate * shares[pick.column.role] for pick, rate in zip(picks, asked, strict=True)),
                 shown.requests + more, partial(_missed, shown, drawn=service.trace is None),
                 unsure=not shown.lost and max(shown.worst) <= 1)


@dataclass(frozen=True)
class _Shown:
    """Replays of a fleet on several traces, up to the first that misses."""

    fleet: TriedFleet
    traces: Sequence[Trace]
    load: float
    seen: Sequence[Seen]
    """Of those that were run to their end."""
    lost: bool
    """Whether there was one more, which ended as every kind of replica was certain to miss."""

    @property
    def last(self) -> int:
        """The number of the last trace."""
        return len(self.seen) - (not self.lost)

    @property
    def requests(self) -> int:
        """Of the traces in all."""
        return sum(map(len, self.traces[:self.last + 1]))

    @cached_property
    def whole(self) -> Sequence[Seen]:
        """All, each run to its end."""
        return [*self.seen, self.fleet.seen(self.traces[self.last], self.load, self.last)] if self.lost else self.seen

    @property
    def worst(self) -> list[float]:
        """The most over its target in each."""
        return [one.most for one in self.whole]

    @property
    def spread(self) -> float:
        """By how much other requests may be over these, two deviations: the mean of parts, and a longer replay, vary by
        less.
        """
        worst, apart = self.worst, self.whole[-1].apart
        return (_spread(worst, max(1.0, REQUESTS / len(self.traces[0]))) if len(worst) == len(SEEDS)
                else _spread(apart, len(apart)))

    @property
    def over(self) -> Mapping[Role, float]:
        """The most of each kind of replica over its target, with what other requests may add."""
        return {role: max(one.over[role] for one in self.whole) + self.spread for role in self.fleet.roles}


def _replayed(fleet: TriedFleet, traces: Sequence[Trace], load: float) -> _Shown:
    """Replay traces up to the first that misses."""
    seen: list[Seen] = []
    for seed, trace in enumerate(traces):
        one = fleet.seen_hoping(trace, load, seed, fleet.roles)
        if one is None:
            return _Shown(fleet, traces, load, seen, lost=True)
        seen.append(one)
        if one.most > 1:
            break
    return _Shown(fleet, traces, load, seen, lost=False)


def _missed(shown: _Shown, *, drawn: bool) -> str:
    """Say by how much which latency misses its target in the worst of the replays."""
    at, most = max(enumerate(shown.whole), key=lambda pair: pair[1].most)
    assert most.worst is not None
    of = f" on the requests of seed {SEEDS[at]}" if drawn and at < len(SEEDS) else ""
    return most.worst + of + ("" if most.most > 1 else ", which other requests may miss")


def tried_day(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick]) -> Tried:
    """Return what a replay of the whole day shows of its busiest hours, with the fleet of each hour.

    A fleet that is a little too busy for hours builds up what no replay of one hour shows.
    """
    asked, there = tuple(loads(service, picks)), at_load(catalog, service, candidates, picks)
    share, requests, missed, whole = 1.0, 0, "", ""
    for share in (1.0, *STEPS_OF_A_DAY):
        over, missed = list[float](), ""
        for seed in SEEDS:
            busiest, day = replay(catalog, service, candidates, there, load=share, seed=seed)
            requests += 0 if day is None else len(day.arrival)
            worst, at = _over(service, busiest)
            over.append(worst)
            if worst > 1:
                missed = f"{at} in the busiest hours of the day, on the requests of seed {seed}"
                break
        if not missed and float(np.mean(over)) + _spread(over) > 1:
            missed = f"{at} in the busiest hours of the day, which other requests may miss"
        whole = whole or missed
        if not missed:
            break
    return Tried(not missed and share == 1, asked, tuple(rate * share for rate in asked), requests, lambda: whole)


def _over(service: Service, outcome: Outcome) -> tuple[float, str]:
    """Return the latency that is the most over its target, over it, and what it is."""
    worst, said = 0.0, ""
    levels: tuple[tuple[Latency, tuple[float, float | None] | None], ...] = (
        ("ttft", service.level.ttft), ("tpot", service.level.tpot), ("e2e", service.level.e2e))
    for name, level in levels:
        if level is not None and (seconds := latency_of(outcome, name, level[1], slice(None))) > worst * level[0]:
            worst = seconds / level[0]
            said = beside(name, level, seconds)
    return worst, said


def _spread(varied: Sequence[float], several: float = 1.0) -> float:
    """Return by how much other replays may be over these; several: how many of them each is as good as."""
    if len(varied) < 2 or not np.isfinite(varied).all():
        return 0.0
    return max(SURE * float(np.std(varied, ddof=1)) / math.sqrt(several) - SLACK, 0.0)


def _kind(pick: Pick) -> tuple[object, str]:
    return pick.column, pick.offer.label


def _sustained(shown: _Shown, least: float) -> tuple[dict[Role, float], int]:
    """Return what share of the load each role holds, between the loads tried, and how many requests that took.

    least: the share up to which that is of no interest.
    """
    fleet, trace, roles = shown.fleet, shown.traces[shown.last], shown.fleet.roles
    before = None if shown.lost else shown.over
    held: dict[Role, float] = {role: 1.0 for role, over in (before or {}).items() if over <= 1}
    last, requests = 1.0, 0
    for step in (max(step, least) for step in STEPS):
        if len(held) == len(roles) or last <= least:
            break
        seen = fleet.seen_hoping(trace, shown.load * step, shown.last, [role for role in roles if role not in held])
        requests += len(trace)
        for role, over in () if seen is None else seen.over.items():
            if role not in held and over <= 1:
                # by how much the load before was too much counts only now
                before = before or (shown.over if last == 1 else fleet.seen(trace, shown.load * last, shown.last).over)
                # latencies over load are near a power of it between two loads
                slope = math.log(before[role] / max(over, 1e-9)) / math.log(last / step)
                held[role] = step * max(over, 1e-9) ** (-1 / slope)
        before, last = None if seen is None else seen.over, step
    return {role: held.get(role, 0.0) for role in roles}, requests


def _traces(service: Service, factor: float) -> list[Trace]:
    """Return the requests to hold: those of a service's own trace, else some drawn by several seeds."""
    if service.trace is not None:
        trace = requests_of(service)
        return [replace(trace, arrival=trace.arrival / factor)]
    first, day = requests_of(service), service.asked.day or (factor,)
    many = int(filling(service, factor, OF_AN_HOUR)) if factor < max(day) else len(first)
    seeds = SEEDS if many < MANY else SEEDS[:1]
    drawn = (first if seed == SEEDS[0] else requests_of(service, seed=seed) for seed in seeds)
    return [replace(trace, arrival=trace.arrival / factor) for trace in (whole.first(many) for whole in drawn)]


def _without_spares(picks: Sequence[Pick], spares: int) -> list[Pick]:
    """Return the picks with the strongest replicas of each kind gone."""
    left: list[Pick] = []
    for role in dict.fromkeys(pick.column.role for pick in picks):
        gone = spares
        for pick in sorted((p for p in picks if p.column.role == role), key=lambda p: -p.column.rate):
            taken = min(gone, pick.replicas)
            gone -= taken
            if pick.replicas > taken:
                left.append(replace(pick, replicas=pick.replicas - taken))
    return left


def _without_nodes(picks: Sequence[Pick], candidates: Sequence[Candidate], nodes: int) -> list[Pick]:
    """Return the picks without so many nodes of each kind, full of the strongest replicas for their GPUs."""
    left: list[Pick] = []
    for role in dict.fromkeys(pick.column.role for pick in picks):
        gone = float(nodes)
        for pick in sorted((p for p in picks if p.column.role == role), key=lambda p: -p.column.rate / p.column.gpus):
            together = max(1, candidates[pick.column.candidate].node.gpus // pick.column.gpus)
            taken = min(math.ceil(gone * together), pick.replicas)
            gone -= taken / together
            if pick.replicas > taken:
                left.append(replace(pick, replicas=pick.replicas - taken))
    return left
