"""Replicas as replays try them, many by a sample: how far latencies are over targets, and what a full cache holds.

Requests at the start and the end of a replay find the replicas emptier than in the steady state, and do not count.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.answer.level import Asked, name_of
from planner.catalog.load import Catalog
from planner.jobs.columns import Pick, Role
from planner.jobs.serving.replay import MOST_REQUESTS, filling, groups_of, outside, requests_of, transfer_of
from planner.jobs.serving.running import run, run_hoping
from planner.jobs.serving.service import LONGEST, Service
from planner.layouts.candidate import Candidate
from planner.simulate.fleet import ReplicaGroup, Transfer
from planner.simulate.hopes import Bar, Limited
from planner.simulate.outcome import Latency, Outcome
from planner.simulate.trace import Trace

SAMPLE = 24
"""Replicas that are replayed at least, or half of them, with their share of the load, where all are too many."""
FULL = 10
"""Times the sequences that a cache holds, of requests that wait for it at once."""
PARTS = 4
"""Of a replay that stands alone, whose latencies tell how they spread."""
BORDER = 0.3
"""Share of the requests at the start, and at the end, that are left out at most."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one replay showed."""

    over: dict[Role, float]
    """The latency over its target of each kind of replica, the worst."""
    worst: str | None
    """That of all, in words; none without targets."""
    apart: list[float]
    """The same over its target, of parts of the time alone; empty where the requests are not drawn."""
    preempted: bool
    """Whether a cache ran out."""

    @property
    def most(self) -> float:
        """The worst of all over its target."""
        return max(self.over.values())


@dataclass(frozen=True, slots=True)
class TriedFleet:
    """Replicas that are replayed, or of many a sample."""

    service: Service
    groups: tuple[ReplicaGroup, ...]
    transfer: Transfer | None
    delay: float
    """Seconds before a first token outside the steps."""
    part: float
    """Of the load, what these replicas get."""

    @property
    def roles(self) -> list[Role]:
        """The kinds of replicas."""
        return list(dict.fromkeys(group.role for group in self.groups))

    def seen(self, trace: Trace, load: float, seed: int = 0) -> Seen:
        """Replay a trace with arrivals so many times faster, or as many times the users; seed: of how long they think.
        """
        faster = replace(trace, arrival=trace.arrival / (load * self.part))
        return self._seen(run(self.service, self.groups, faster, transfer=self.transfer, share=load * self.part,
                              seed=seed, host=self.delay))

    def seen_hoping(self, trace: Trace, load: float, seed: int, roles: Collection[Role]) -> Seen | None:
        """Replay likewise while one of these kinds of replicas may keep its targets; none where it ended before."""
        faster = replace(trace, arrival=trace.arrival / (load * self.part))
        bars = [[Bar(name, *level) for name, level in self._levels() if _decides(role, name)] for role in roles]
        outcome = run_hoping(self.service, self.groups, faster, bars, np.full(len(trace), self.delay), self.transfer,
                             load * self.part, seed)
        return None if outcome is None else self._seen(outcome)

    def _levels(self) -> list[tuple[Limited, tuple[float, float | None]]]:
        """Return the targets: a class of prompts may miss its own in more of its requests than all of them together."""
        level = self.service.level
        levels: list[tuple[Limited, tuple[float, float | None] | None]] = [
            ("ttft", level.ttft), ("tpot", level.tpot), ("e2e", level.e2e)]
        return [(name, asked) for name, asked in levels if asked is not None]

    def _seen(self, outcome: Outcome) -> Seen:
        """Return what a replay showed."""
        outcome = outcome.delayed(self.delay)
        drawn = self.service.trace is None and self.service.asked.clients is None
        inner = _inner(outcome) if drawn else slice(None)
        over = dict.fromkeys(self.roles, 0.0)
        apart: list[float] = []
        worst: str | None = None
        for name, level in self._levels():
            # a plan shows all of them
            seconds = max(latency_of(outcome, name, level[1], part) for part in (inner, slice(None)))
            ratio = seconds / level[0]
            if worst is None or ratio > max(over.values()):
                worst = beside(name, level, seconds)
                rows = np.arange(len(outcome.arrival))[inner]
                apart = [latency_of(outcome, name, level[1], slice(int(part[0]), int(part[-1]) + 1)) / level[0]
                         for part in np.array_split(rows, PARTS) if len(part)] if drawn else []
            over |= {role: max(most, ratio) for role, most in over.items() if _decides(role, name)}
        return Seen(over, worst, apart, bool(outcome.preemptions.any()))

    def rates_when_full(self) -> list[float]:
        """Return the requests/s of one replica of each kind while more wait than its cache holds.

        Sequences then lose their cache to others and are computed again, so that it may be fewer than before: a load
        above it is never worked off once a burst has filled the cache. Replicas that do a part of requests are left
        out, and endless.
        """
        rates = []
        for group in self.groups:
            held = self.service.mean_length + group.kind.apart
            together = min(group.kind.max_batch, -(-group.kind.kv_tokens // held))
            many = FULL * together
            if group.role != "whole" or self.service.stream.only_reads or many > MOST_REQUESTS:
                rates.append(math.inf)
                continue
            trace = requests_of(self.service, count=many)
            waiting = replace(trace, arrival=np.zeros(len(trace)))
            ends = np.sort(run(self.service, [replace(group, replicas=1)], waiting).e2e)
            inner = ends[together:-together]
            rates.append((len(inner) - 1) / max(float(inner[-1] - inner[0]), 1e-9) if len(inner) > 1 else math.inf)
        return rates


def beside(name: Latency, level: tuple[float, float | None], seconds: float) -> str:
    """Write a latency beside its target; it is endless where requests are refused that no replica holds."""
    if not math.isfinite(seconds):
        return f"{name.upper()}: requests longer than a replica holds are refused"
    return Asked(at=name_of(level[1]), seconds=seconds, target_seconds=level[0]).beside(name.upper())


def fleet_of(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick]) -> TriedFleet:
    """Return the picks of a service as replays try them."""
    many = sum(pick.replicas for pick in picks)
    share = max(min(SAMPLE / many, 1 / 2), MOST_REQUESTS / filling(service))
    groups = groups_of(catalog, service, candidates, picks)
    if share < 1 and service.trace is None:
        groups = [replace(group, replicas=max(1, round(group.replicas * share))) for group in groups]
    whole, sample = (min(sum(count * pick.column.rate for count, pick in zip(counts, picks, strict=True)
                             if (pick.column.role == "decode") == late)
                         for late in sorted({pick.column.role == "decode" for pick in picks}))
                     for counts in ([pick.replicas for pick in picks], [group.replicas for group in groups]))
    return TriedFleet(service, tuple(groups), transfer_of(catalog, service, candidates, picks),
                      outside(catalog, service, candidates, picks), sample / whole)


def _decides(role: Role, name: Latency) -> bool:
    """Say whether replicas of a kind decide a latency."""
    return (role, name) not in (("prefill", "tpot"), ("decode", "ttft"))


def _inner(outcome: Outcome) -> slice:
    """Return the requests that came when the replicas had filled, and before the last ones."""
    seconds = float(outcome.arrival[-1] - outcome.arrival[0])
    ended = outcome.e2e[~np.isnan(outcome.e2e)]
    border = min(BORDER, 2 * float(ended.mean()) / seconds) if len(ended) and seconds > 0 else 0.0
    cut = int(border * len(outcome.arrival))
    return slice(cut, len(outcome.arrival) - cut)


def latency_of(outcome: Outcome, name: Latency, share: float | None, inner: slice) -> float:
    """Return a latency at a share of the requests, or its mean; endless where more are rejected than may be longer than
    what is accepted.
    """
    if outcome.rejected.mean() > 1 - LONGEST:
        return math.inf
    value = replace(outcome, **{name: getattr(outcome, name)[inner]}).within(name, share)
    return 0.0 if math.isnan(value) else value
