"""A fleet replayed over a trace: the router sees every replica as it stands when a request arrives.

At one moment, steps end first, then requests arrive, then steps begin: what arrives at a boundary is in the next step.
A prefill group frees a prompt's cache with its first token, and the transfer takes no time of either replica: engines
send layer by layer. The time to first token is that of the prefill replica; the transfer counts in the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Literal, TypeAlias

import numpy as np

from planner.errors import InputError
from planner.simulate.delayed import DelayedReplica
from planner.simulate.hopes import Hopes, Hoping
from planner.simulate.outcome import Outcome
from planner.simulate.replica import InFlight, Log, Replica
from planner.simulate.router import Router
from planner.simulate.slotted import SlottedReplica
from planner.simulate.steps import ReplicaKind, StepMemo
from planner.simulate.trace import Trace, Users

Role: TypeAlias = Literal["whole", "prefill", "decode"]
"""What of a request a replica does."""
Transfer = Callable[[int], float]
"""Seconds to send the cache of that many tokens from a prefill to a decode replica."""


@dataclass(frozen=True, slots=True)
class ReplicaGroup:
    """Replicas of one kind."""

    kind: ReplicaKind
    replicas: int = 1
    role: Role = "whole"
    """Prefill and decode groups serve a request one after the other, whole ones alone."""
    lengths: tuple[int, int] | None = None
    """Prompt tokens of the requests it serves, from and up to and with; None serves all."""
    weight: float = 1.0
    """Requests of one replica in proportion to others, for the weighted policy."""


@dataclass(frozen=True, slots=True)
class Shift:
    """From when on how many replicas of each group take requests."""

    start: float
    """Seconds."""
    replicas: tuple[int, ...]


def simulate(trace: Trace, groups: Sequence[ReplicaGroup], policy: str = "least-outstanding",
             transfer: Transfer | None = None, progress: Callable[[float], None] | None = None,
             users: Users | None = None, phases: Sequence[Shift] = ()) -> Outcome:
    """Replay a trace on groups of replicas until the last token.

    users: who ask the requests of the trace in turn, each when answered; its arrivals then count for nothing. policy: a
    key of `router.POLICIES`. phases: what replicas take requests when, where not all always do; others end those that
    they have. progress is called about a hundred times with the share of requests that ended.
    Raises InputError.
    """
    _check(groups, transfer)
    replay = _Fleet(trace, groups, policy, transfer, progress or (lambda share: None), users, phases)
    replay.run()
    return replay.outcome()


def simulate_hoping(hopes: Hopes, trace: Trace, groups: Sequence[ReplicaGroup], policy: str = "least-outstanding",
                    transfer: Transfer | None = None, users: Users | None = None) -> Outcome | None:
    """Replay as `simulate` does until no hope is left; none where it ended so. Raises InputError."""
    _check(groups, transfer)
    replay = _Fleet(trace, groups, policy, transfer, lambda share: None, users, (), Hoping(hopes, trace))
    return replay.outcome() if replay.run() else None


def _check(groups: Sequence[ReplicaGroup], transfer: Transfer | None) -> None:
    roles = {group.role for group in groups}
    if not groups or any(group.replicas < 1 or not 0 < group.weight < math.inf for group in groups):
        raise InputError("a fleet has groups of at least one replica, each with a weight above zero")
    if ("prefill" in roles) != ("decode" in roles) or ("prefill" in roles) != (transfer is not None):
        raise InputError("prefill groups, decode groups and the seconds of a transfer between them come together, got "
                         f"{', '.join(sorted(roles))} with{'' if transfer else 'out'} a transfer")


class _Fleet:
    """The events of one replay."""

    def __init__(self, trace: Trace, groups: Sequence[ReplicaGroup], policy: str, transfer: Transfer | None,
                 progress: Callable[[float], None], users: Users | None, phases: Sequence[Shift],
                 hoping: Hoping | None = None) -> None:
        self.hoping, self.lost = hoping, False
        self.trace, self.transfer, self.progress = trace, transfer, progress
        self.think = None if users is None else users.think.tolist()
        self.asked = 0
        self.coming: list[float] = []
        """When requests of a closed loop are asked that somebody thinks about, earliest first."""
        for _ in range(0 if users is None else min(users.count, len(trace))):
            self._ask_after(0.0)
        self.arrival, self.input, self.output = trace.arrival.tolist(), trace.input.tolist(), trace.output.tolist()
        self.log, self.ended, self.told = Log(len(trace)), 0, 0
        self.last, self.served_by = [math.nan] * len(trace), [-1] * len(trace)
        self.roles = [group.role for group in groups]
        self.replicas: list[Replica] = []
        loads: list[int] = []
        self.idle = 0
        """Replicas beyond the number of requests: no policy ever comes to them, so that none is made."""
        for at, group in enumerate(groups):
            times, most = StepMemo(group.kind.steps), max(len(trace), 1)
            self.idle += max(group.replicas - most, 0)
            several = group.kind.copies * group.kind.batches > 1
            made = DelayedReplica if group.kind.delay else SlottedReplica if several else Replica
            self.replicas += [made(group.kind, times, self.log, trace.prefixes, trace.prefix_block, loads=loads,
                                   index=len(self.replicas) + i, group=at) for i in range(min(group.replicas, most))]
        loads += [0] * len(self.replicas)
        self.groups, self.policy, self.phases = groups, policy, list(phases)
        self.entry, self.decode = self._routers(tuple(group.replicas for group in groups))
        self.ends: list[tuple[float, int]] = []
        """Ends of steps; one that was cut short stays in the heap, and is passed over."""
        self.sent: list[tuple[float, int]] = []
        """Requests whose cache is on its way to a decode replica."""

    def _routers(self, counts: tuple[int, ...]) -> tuple[Router, Router]:
        """Return what sends requests to so many replicas of each group: to begin with, and to decode."""
        weights, lengths = [group.weight for group in self.groups], [group.lengths for group in self.groups]
        left, replicas = list(counts), []
        for replica in self.replicas:
            left[replica.group] -= 1
            if left[replica.group] >= 0:
                replicas.append(replica)
        entry, decode = (Router([other for other in replicas if (self.roles[other.group] == "decode") == late],
                                weights, lengths,
                                self.policy) for late in (False, True))
        return entry, decode

    def _turn(self, now: float) -> None:
        """Have the replicas of the phase that it is take requests."""
        while self.phases and self.phases[0].start <= now:
            self.entry, self.decode = self._routers(self.phases.pop(0).replicas)

    def run(self) -> bool:
        """Run until nothing is left to happen; false where it ended before, as no hope was left."""
        ends, sent, open_loop = self.ends, self.sent, self.think is None
        at, comes = 0, self._coming(0)
        while True:
            now = ends[0][0] if ends and ends[0][0] < comes else comes
            if sent and sent[0][0] < now:
                now = sent[0][0]
            if now == math.inf:
                return True
            if self.phases:
                self._turn(now)
            touched = self._end(now)
            if self.lost:
                return False
            if sent:
                self._receive(now, touched)
            if not open_loop:
                # who got an answer may ask again at once
                comes = self._coming(at)
            while comes == now:
                self._enter(at, now, touched)
                at += 1
                comes = self._coming(at)
            if touched:
                self._start(now, touched)

    def _end(self, now: float) -> list[Replica]:
        """End the steps that end now; return their replicas."""
        ends, touched = self.ends, []
        while ends and ends[0][0] == now:
            replica = self.replicas[heappop(ends)[1]]
            if replica.end == now:
                for job in replica.complete():
                    self._finish(job, replica, now)
                touched.append(replica)
        return touched

    def _start(self, now: float, touched: list[Replica]) -> None:
        for replica in touched:
            if replica.end == math.inf:
                replica.start(now)
                if replica.end < math.inf:
                    heappush(self.ends, (replica.end, replica.index))

    def _receive(self, now: float, touched: list[Replica]) -> None:
        """Have decode replicas take the requests whose cache has come."""
        sent = self.sent
        while sent and sent[0][0] == now:
            request = heappop(sent)[1]
            job = InFlight(request, self.input[request], self.output[request], 1)
            self._place(self.decode, self.decode.may(job.input, job.input + job.output - 1), job, now, touched)

    def _coming(self, at: int) -> float:
        """Return when request `at` comes; inf where none is left to come, or nobody is about to ask."""
        if self.think is None:
            return self.arrival[at] if at < len(self.arrival) else math.inf
        return self.coming[0] if self.coming else math.inf

    def _ask_after(self, now: float) -> None:
        """Have a user think, and ask the next request that nobody has asked."""
        if self.think is not None and self.asked < len(self.think):
            heappush(self.coming, now + self.think[self.asked])
            self.asked += 1

    def _enter(self, request: int, now: float, touched: list[Replica]) -> None:
        if self.think is not None:
            self.arrival[request] = heappop(self.coming)
        prompt, answer = self.input[request], self.output[request]
        whole = prompt + answer - 1
        groups = self.entry.may(prompt, whole)
        if self.transfer is not None:
            onward = answer == 1 or self.decode.may(prompt, whole)
            groups = tuple(group for group in self.entry.may(prompt, prompt)
                           if (onward if self.roles[group] == "prefill" else group in groups))
        if not groups:
            self._count(now)
            return
        self._place(self.entry, groups, InFlight(request, prompt, answer), now, touched)

    def _place(self, router: Router, groups: tuple[int, ...], job: InFlight, now: float, touched: list[Replica]
               ) -> None:
        replica = router.choose(groups, job, now)
        if self.roles[replica.group] == "prefill":
            job.output = 1
        if replica.arrive(job, now):
            heappush(self.ends, (replica.end, replica.index))
        elif replica.end == math.inf:
            touched.append(replica)

    def _finish(self, job: InFlight, replica: Replica, now: float) -> None:
        if self.transfer is not None and job.output < self.output[job.request]:
            seconds = self.transfer(job.input)
            if not 0 <= seconds < math.inf:
                raise InputError(f"a transfer takes seconds of 0 or more, got {seconds} for {job.input} tokens")
            heappush(self.sent, (self.log.first[job.request] + seconds, job.request))
        else:
            self.last[job.request] = now
            self.served_by[job.request] = replica.index
            if self.hoping is not None:
                request = job.request
                self.lost = self.hoping.ended(request, self.arrival[request], self.log.first[request], now)
            self._count(now)

    def _count(self, now: float) -> None:
        self.ended += 1
        if self.think is not None:
            self._ask_after(now)
        if self.ended * 100 >= (self.told + 1) * len(self.last):
            self.told = self.ended * 100 // len(self.last)
            self.progress(self.ended / len(self.last))

    def outcome(self) -> Outcome:
        """Return what was found."""
        trace = self.trace if self.think is None else replace(self.trace, arrival=np.array(self.arrival))
        return outcome(trace, self.log, self.last, self.served_by, self.replicas, self.idle)


def outcome(trace: Trace, log: Log, last: list[float], served_by: list[int], replicas: Sequence[Replica],
            idle: int = 0) -> Outcome:
    """Return what the replicas wrote down as columns; `last` are the seconds of last tokens, `idle` more replicas."""
    ends, first, rejected = np.array(last), np.array(log.first), np.array(served_by) < 0
    seconds = float(np.max(ends, initial=0.0, where=~rejected))
    tpot = np.where(trace.output > 1, (ends - first) / np.maximum(trace.output - 1, 1), np.nan)
    return Outcome(trace.arrival, trace.input, trace.output, first - trace.arrival, tpot, ends - trace.arrival,
                   np.where(rejected, np.nan, log.waited), np.array(log.preempted, np.int64), rejected,
                   np.array(served_by, np.int64),
                   np.array([replica.busy / seconds if seconds else 0.0 for replica in replicas]), idle, seconds)
