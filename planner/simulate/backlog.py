"""A log of jobs replayed on a fleet, event by event: first come first served, with backfill.

The first job that waits has a reservation at the earliest moment that what runs leaves it room (EASY backfill: Lifka,
JSSPP 1995). A later job may start before it where that does not delay it. A job of fewer GPUs than a node has is on
one node and takes the fullest that has room; a larger one takes whole nodes.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from planner.layouts.table import Floats
from planner.simulate.joblog import JobLog

DEPTH = 100
"""Waiting jobs that backfill looks at, in their order: Slurm's default_queue_depth."""
SLACK = 1e-6
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Waited:
    """What a replay showed. Jobs that never started because it was stopped waited for ever."""

    seconds: Floats
    """Of each job, from its submission to its start."""
    burst: Floats
    """GPU-seconds of each job that ran elsewhere; 0 where it ran here."""
    stopped: bool
    """Whether so many waited too long that the rest was not replayed."""


@dataclass(slots=True)
class NodePool:
    """Nodes by how many of their GPUs are free."""

    nodes: int
    gpus: int
    free: list[int] = field(init=False)
    by_free: list[list[int]] = field(init=False)
    """Nodes that have had so many free GPUs; those that no longer do are dropped when they come up."""
    count: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Start with every node empty."""
        self.free = [self.gpus] * self.nodes
        self.by_free = [[] for _ in range(self.gpus + 1)]
        self.by_free[self.gpus] = list(range(self.nodes - 1, -1, -1))
        self.count = [0] * self.gpus + [self.nodes]

    def whole(self, gpus: int) -> int:
        """Return the nodes that a job takes whole; 0 where it shares one."""
        return -(-gpus // self.gpus) if gpus >= self.gpus else 0

    def place(self, gpus: int, but: Collection[int] = ()) -> list[int] | None:
        """Take GPUs, and return the nodes that they are on; none where there is no room beside the nodes of `but`."""
        whole = self.whole(gpus)
        if whole:
            return self._whole(whole, but)
        for room in range(gpus, self.gpus + 1):
            if self.count[room] and (node := self._one(room, but)) is not None:
                self._set(node, room - gpus)
                return [node]
        return None

    def _whole(self, whole: int, but: Collection[int]) -> list[int] | None:
        if self.count[self.gpus] < whole:
            return None
        taken: list[int] = []
        while len(taken) < whole and (node := self._one(self.gpus, but)) is not None:
            self._set(node, 0)
            taken.append(node)
        if len(taken) == whole:
            return taken
        for node in taken:
            self._set(node, self.gpus)
        return None

    def _one(self, room: int, but: Collection[int]) -> int | None:
        """Return a node with exactly so many free GPUs that is not among `but`."""
        stack, passed = self.by_free[room], []
        chosen = None
        while stack:
            node = stack.pop()
            if self.free[node] != room:
                continue
            if node not in but:
                chosen = node
                break
            passed.append(node)
        stack.extend(dict.fromkeys(reversed(passed)))
        return chosen

    def _set(self, node: int, free: int) -> None:
        self.count[self.free[node]] -= 1
        self.count[free] += 1
        self.free[node] = free
        self.by_free[free].append(node)

    def give(self, nodes: list[int], gpus: int) -> None:
        """Free what a job had."""
        for node in nodes:
            self._set(node, self.gpus if self.whole(gpus) else self.free[node] + gpus)


class _Replay:
    def __init__(self, log: JobLog, fleet: NodePool) -> None:
        self.fleet = fleet
        self.submit, self.seconds = log.submit.tolist(), log.seconds.tolist()
        self.planned, self.gpus = log.planned.tolist(), log.gpus.tolist()
        self.ends: list[tuple[float, int]] = []
        self.running: dict[int, tuple[float, list[int]]] = {}
        """Job -> when it is planned to end, and its nodes."""
        self.queue: OrderedDict[int, None] = OrderedDict()
        self.reserved: tuple[int, float, frozenset[int]] | None = None
        """The first job that waits, when it can start at the latest, and on which nodes."""
        self.waits = np.full(len(self.submit), np.inf)
        self.burst = np.zeros(len(self.submit))
        self.judged, self.late = 0, 0
        """Jobs that have waited as long as they may, in the order of the log; those of them that waited longer."""

    def start(self, job: int, now: float, nodes: list[int]) -> None:
        self.waits[job] = now - self.submit[job]
        heapq.heappush(self.ends, (now + self.seconds[job], job))
        self.running[job] = (now + self.planned[job], nodes)

    def end_until(self, now: float) -> None:
        while self.ends and self.ends[0][0] <= now + SLACK:
            at, job = heapq.heappop(self.ends)
            planned, nodes = self.running.pop(job)
            self.fleet.give(nodes, self.gpus[job])
            if planned > at + SLACK:
                self.reserved = None  # room came sooner than was planned

    def take_up(self, now: float) -> None:
        """Start what may start."""
        while self.queue:
            head = next(iter(self.queue))
            nodes = self.fleet.place(self.gpus[head])
            if nodes is None:
                break
            del self.queue[head]
            self.start(head, now, nodes)
            self.reserved = None
        if len(self.queue) < 2 or self.fleet.count[0] == self.fleet.nodes:
            return
        head, started = next(iter(self.queue)), []
        for job in islice(self.queue, 1, DEPTH + 1):
            if self.reserved is None or self.reserved[0] != head:
                self.reserved = (head, *self._room_for(self.gpus[head]))
            _, shadow, kept = self.reserved
            is_brief = now + self.planned[job] <= shadow + SLACK
            nodes = self.fleet.place(self.gpus[job], () if is_brief else kept)
            if nodes is not None:
                self.start(job, now, nodes)
                started.append(job)
                if is_brief and not kept.issuperset(nodes):
                    self.reserved = None  # it is over by then: its nodes may be kept instead of others
                if self.fleet.count[0] == self.fleet.nodes:
                    break
        for job in started:
            del self.queue[job]

    def moments(self, arrived: int, patience: float | None) -> Iterator[float]:
        """Yield when something may happen next."""
        if arrived < len(self.submit):
            yield self.submit[arrived]
        if self.ends:
            yield self.ends[0][0]
        if patience is not None and self.judged < arrived:
            yield self.submit[self.judged] + patience

    def send_away(self, now: float, arrived: int, patience: float) -> None:
        """Let what has waited too long run elsewhere."""
        while self.judged < arrived and self.submit[self.judged] + patience <= now + SLACK:
            job = self.judged
            self.judged += 1
            if job in self.queue:
                was_first = next(iter(self.queue)) == job
                del self.queue[job]
                self.waits[job], self.burst[job] = patience, self.gpus[job] * self.seconds[job]
                if was_first:
                    self.take_up(now)

    def too_many_late(self, now: float, arrived: int, seconds: float, most: int) -> bool:
        """Say whether more than so many jobs waited longer than so many seconds."""
        while self.late <= most and self.judged < arrived and self.submit[self.judged] + seconds < now:
            self.late += bool(self.waits[self.judged] > seconds)
            self.judged += 1
        return self.late > most

    def _room_for(self, gpus: int) -> tuple[float, frozenset[int]]:
        """Return when what runs leaves room for a job, if all takes as long as planned, and the nodes of that room."""
        fleet, whole, freed = self.fleet, self.fleet.whole(gpus), dict[int, int]()
        empty = [node for node, free in enumerate(fleet.free) if free == fleet.gpus] if whole else []
        shadow = np.inf
        for planned, job, nodes in sorted((end, job, nodes) for job, (end, nodes) in self.running.items()):
            if planned > shadow:
                break
            for node in nodes:
                more = fleet.gpus if fleet.whole(self.gpus[job]) else self.gpus[job]
                freed[node] = freed.get(node, 0) + more
                room = fleet.free[node] + freed[node]
                if not whole and room >= gpus:
                    return planned, frozenset((node,))
                if whole and room == fleet.gpus:
                    empty.append(node)
            if whole and len(empty) >= whole:
                shadow = planned
        # those that are free already are left to others
        return shadow, frozenset(empty[-whole:] if whole and shadow < np.inf else ())


def replay(log: JobLog, nodes: int, gpus_of_node: int, *, patience: float | None = None,
           most_late: tuple[float, int] | None = None) -> Waited:
    """Return how long every job waits on `nodes` nodes, in the order of the log.

    patience: seconds after which a job that still waits runs elsewhere. most_late: stop once more than so many jobs
    waited longer than so many seconds.
    """
    state, arrived = _Replay(log, NodePool(nodes, gpus_of_node)), 0
    if patience is None and max(map(state.fleet.whole, state.gpus)) > nodes:
        return Waited(state.waits, state.burst, stopped=True)
    while arrived < len(state.submit) or state.queue:
        now = min(state.moments(arrived, patience))
        state.end_until(now)
        while arrived < len(state.submit) and state.submit[arrived] <= now + SLACK:
            state.queue[arrived] = None
            arrived += 1
        state.take_up(now)
        if patience is not None:
            state.send_away(now, arrived, patience)
        elif most_late is not None and state.too_many_late(now, arrived, *most_late):
            return Waited(state.waits, state.burst, stopped=True)
    return Waited(state.waits, state.burst, stopped=False)
