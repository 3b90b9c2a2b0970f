"""What replicas hold by replay: whether they keep every target on requests of several seeds, and at what load they do.

Requests at the start and the end of a replay find the replicas emptier than in the steady state, and do not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from planner.catalog.load import Catalog
from planner.jobs.columns import Pick, Role
from planner.jobs.job import Tried
from planner.jobs.serving.answers import at_load, loads
from planner.jobs.serving.replay import (
    MOST_REQUESTS,
    REQUESTS,
    filling,
    groups_of,
    outside,
    replay,
    requests_of,
    run,
    transfer_of,
)
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats, Ints
from planner.simulate.fleet import ReplicaGroup, Transfer
from planner.simulate.outcome import Latency, Outcome
from planner.simulate.trace import Trace

SEEDS = (0, 1, 2)
"""Of the requests drawn; the first are those that the plan shows."""
MANY = 8000
"""Requests from which on one seed says as much as several."""
OF_AN_HOUR = 1500
"""Requests of an hour of the day that is not the busiest."""
SAMPLE = 24
"""Replicas of a larger fleet that are replayed at least, with their share of the load, where all are too many."""
STEPS_OF_A_DAY = (0.99, 0.97, 0.94, 0.9, 0.8)
"""Shares of a day's load that are tried in turn where all of it is too much."""
STEPS = (0.95, 0.85, 0.7, 0.5, 0.3, 0.15, 0.05)
"""Shares of the load that are tried in turn where all of it is too much."""
SURE, SLACK = 2.0, 0.01
"""Standard deviations of replays by which they keep a target, of which a hundredth may be missed so."""
PARTS = 4
"""Of a replay that stands alone, whose latencies tell how they spread."""
BORDER = 0.3
"""Share of the requests at the start, and at the end, that are left out at most."""


@dataclass(frozen=True, slots=True)
class _TriedFleet:
    """Replicas that are replayed, or of many a sample."""

    service: Service
    groups: tuple[ReplicaGroup, ...]
    transfer: Transfer | None
    delay: Callable[[Ints], Floats]
    """Seconds before a first token outside the steps, by the tokens of prompts."""
    part: float
    """Of the load, what these replicas get."""

    def excess(self, trace: Trace, load: float, apart: list[float] | None = None) -> dict[Role, float]:
        """Return the latency over its target of each kind of replica, the worst, with arrivals so many times faster,
        or as many times the users. `apart` is told the same, the worst of all, of parts of the time alone.
        """
        faster = replace(trace, arrival=trace.arrival / (load * self.part))
        outcome = run(self.service, self.groups, faster, transfer=self.transfer, share=load * self.part)
        outcome = outcome.delayed(self.delay(outcome.input))
        drawn = self.service.trace is None and self.service.asked.clients is None
        inner = _inner(outcome) if drawn else slice(None)
        worst: dict[Role, float] = {group.role: 0.0 for group in self.groups}
        # a class of prompts may miss its targets in more of its requests than all of them together
        levels: dict[Latency, tuple[float, float | None] | None] = {
            "ttft": self.service.level.ttft, "tpot": self.service.level.tpot, "e2e": self.service.level.e2e}
        for name, level in levels.items():
            if level is None:
                continue
            # a plan shows all of them
            over = max(_at(outcome, name, level[1], part) for part in (inner, slice(None))) / level[0]
            if apart is not None and drawn and over > max(worst.values()):
                rows = np.arange(len(outcome.arrival))[inner]
                apart[:] = [_at(outcome, name, level[1], slice(int(part[0]), int(part[-1]) + 1)) / level[0]
                            for part in np.array_split(rows, PARTS) if len(part)]
            worst |= {role: max(most, over) for role, most in worst.items()
                      if (role, name) not in (("prefill", "tpot"), ("decode", "ttft"))}
        return worst


def tried(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick], factor: float,
          given: Trace | None = None) -> Tried:
    """Return what replays of the picks of one service show, at its rate times a factor, with headroom and spares.

    given: a trace that must be held besides.
    """
    service = replace(service, rate=(service.rate or 0.0) * factor)
    asked_of, load = service.asked, 1 + service.asked.headroom
    left = _without_nodes(picks, candidates, asked_of.spare_nodes) if asked_of.spare_nodes else _without_spares(
        picks, asked_of.spare_replicas)
    if {pick.column.role for pick in picks} != {pick.column.role for pick in left}:
        return Tried(False, (1.0,) * len(picks), (0.0,) * len(picks), 0)
    rates = dict(zip(map(_kind, left), loads(service, left), strict=True))
    asked = tuple(rates.get(_kind(pick), 0.0) * load for pick in picks)
    fleet = _fleet(catalog, service, candidates, at_load(catalog, service, candidates, left))
    traces = _traces(service, factor)
    if service.trace is None:
        # a sample of the replicas fills with as large a part of the requests
        traces = [trace.first(max(REQUESTS, int(filling(service) * fleet.part))) for trace in traces]
    if given is not None:
        traces.append(requests_of(service, given))
    over: list[dict[Role, float]] = []
    apart: list[float] = []
    for trace in traces:
        over.append(fleet.excess(trace, load, apart))
        if max(over[-1].values()) > 1:
            break
    requests, worst = sum(map(len, traces[:len(over)])), [max(excess.values()) for excess in over]
    # other requests are within two deviations of these; the mean of parts varies by less than each does
    seen, several = (worst, 1) if len(worst) == len(SEEDS) else (apart, len(apart))
    deviation = float(np.std(seen, ddof=1)) / math.sqrt(several) if len(seen) > 1 and np.isfinite(seen).all() else 0.0
    spread = max(SURE * deviation - SLACK, 0.0)
    if worst[-1] <= 1 and float(np.mean(worst)) + spread <= 1:
        return Tried(True, asked, asked, requests)
    missed = {role: max(excess[role] for excess in over) + spread for role in over[0]}
    shares, more = _sustained(fleet, traces[len(over) - 1], load, missed)
    return Tried(False, asked, tuple(rate * shares[pick.column.role] for pick, rate in zip(picks, asked, strict=True)),
                 requests + more)


def tried_day(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick]) -> Tried:
    """Return what a replay of the whole day shows of its busiest hours, with the fleet of each hour.

    A fleet that is a little too busy for hours builds up what no replay of one hour shows.
    """
    asked, there = tuple(loads(service, picks)), at_load(catalog, service, candidates, picks)
    levels: tuple[tuple[Latency, tuple[float, float | None] | None], ...] = (
        ("ttft", service.level.ttft), ("tpot", service.level.tpot), ("e2e", service.level.e2e))
    share, requests, meets = 1.0, 0, False
    for share in (1.0, *STEPS_OF_A_DAY):
        busiest, day = replay(catalog, service, candidates, there, load=share)
        requests += 0 if day is None else len(day.arrival)
        meets = all(level is None or _at(busiest, name, level[1], slice(None)) <= level[0] for name, level in levels)
        if meets:
            break
    return Tried(meets and share == 1, asked, tuple(rate * share for rate in asked), requests)


def _kind(pick: Pick) -> tuple[object, str]:
    return pick.column, pick.offer.label


def _sustained(fleet: _TriedFleet, trace: Trace, load: float, at_one: Mapping[Role, float]) -> tuple[dict[Role, float],
                                                                                                     int]:
    """Return what share of the load each role holds, between the loads tried, and how many requests that took."""
    held: dict[Role, float] = {role: 1.0 for role, over in at_one.items() if over <= 1}
    before, last, requests = dict(at_one), 1.0, 0
    for step in STEPS:
        if len(held) == len(at_one):
            break
        excess = fleet.excess(trace, load * step)
        requests += len(trace)
        for role, over in excess.items():
            if role not in held and over <= 1:
                # latencies over load are near a power of it between two loads
                slope = math.log(before[role] / max(over, 1e-9)) / math.log(last / step)
                held[role] = step * max(over, 1e-9) ** (-1 / slope)
        before, last = excess, step
    return {role: held.get(role, 0.0) for role in at_one}, requests


def _traces(service: Service, factor: float) -> list[Trace]:
    """Return the requests to hold: those of a service's own trace, else some drawn by several seeds."""
    if service.trace is not None:
        trace = requests_of(service)
        return [replace(trace, arrival=trace.arrival / factor)]
    first = requests_of(service)
    if factor < max(service.asked.day or (factor,)):
        return [replace(first.first(OF_AN_HOUR), arrival=first.arrival[:OF_AN_HOUR] / factor)]
    seeds = SEEDS if len(first) < MANY else SEEDS[:1]
    drawn = (first if seed == SEEDS[0] else requests_of(service, seed=seed) for seed in seeds)
    return [replace(trace, arrival=trace.arrival / factor) for trace in drawn]


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


def _fleet(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick]) -> _TriedFleet:
    many = sum(pick.replicas for pick in picks)
    share = max(SAMPLE / many, MOST_REQUESTS / filling(service))
    groups = groups_of(catalog, service, candidates, picks)
    if many >= 2 * SAMPLE and share < 1 and service.trace is None:
        groups = [replace(group, replicas=max(1, round(group.replicas * share))) for group in groups]
    whole, sample = (min(sum(count * pick.column.rate for count, pick in zip(counts, picks, strict=True)
                             if (pick.column.role == "decode") == late)
                         for late in sorted({pick.column.role == "decode" for pick in picks}))
                     for counts in ([pick.replicas for pick in picks], [group.replicas for group in groups]))
    return _TriedFleet(service, tuple(groups), transfer_of(catalog, service, candidates, picks),
                  partial(outside, catalog, service, candidates, picks), sample / whole)


def _inner(outcome: Outcome) -> slice:
    """Return the requests that came when the replicas had filled, and before the last ones."""
    seconds = float(outcome.arrival[-1] - outcome.arrival[0])
    ended = outcome.e2e[~np.isnan(outcome.e2e)]
    border = min(BORDER, 2 * float(ended.mean()) / seconds) if len(ended) and seconds > 0 else 0.0
    cut = int(border * len(outcome.arrival))
    return slice(cut, len(outcome.arrival) - cut)


def _at(outcome: Outcome, name: Latency, share: float | None, inner: slice) -> float:
    """Return a latency at a share of the requests, or its mean; endless where some are rejected."""
    if outcome.rejected.any():
        return math.inf
    value = replace(outcome, **{name: getattr(outcome, name)[inner]}).within(name, share)
    return 0.0 if math.isnan(value) else value
