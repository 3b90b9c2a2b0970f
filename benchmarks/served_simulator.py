"""A second simulator of replicas, by which plans of services are checked: it shares step times and sizes of caches with
the planner, and nothing else.

Each rank (copy of attention) takes whole prompts in turn as long as its cache holds them, and computes them in chunks
beside what decodes, or before it where the engine does so. Ranks go in lockstep: attention takes as long as on the
fullest, experts as long as for all; where the engine is told so, none takes a new prompt for some steps while another
has none. Stages of a pipeline hold a batch each, which enters a stage when the batch before
it has left. Where an engine schedules ahead, prompts come through a door that closes for a step as the one before
begins.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.rates import rates_of
from planner.physics.serving.step import StepLoad, StepTimes, step_times

CONTEXT, PROMPT, EXACT = 256, 32, 24
"""Tokens to which contexts and prompts of a step are rounded, and the sequences up to which they are counted."""


@dataclass(slots=True)
class Request:
    """Tokens of a request, and when what of it was there."""

    arrival: float
    prompt: int
    answer: int
    first: float = 0.0
    end: float = 0.0
    made: int = 0
    computed: int = 0
    """Tokens of the prompt, and of what was answered before its cache was taken."""
    owed: int = 0
    """Tokens to compute before the next one is answered."""
    sent: bool = False
    """Whether its cache was computed elsewhere."""
    think: float = 0.0
    """Seconds for which a user thinks before asking."""
    came: float = 0.0
    """When its replica got it."""
    whole: int = 0
    """Tokens of the answer, where replicas that prefill make the first one."""

    @property
    def held(self) -> int:
        """Tokens in the cache."""
        return self.prompt + self.made


@dataclass(frozen=True, slots=True)
class Chunk:
    """Prompt tokens of a step, those before them, and whether the prompt is computed with them."""

    request: Request
    tokens: int
    behind: int
    is_last: bool


Work = list[tuple[list[Request], list[Chunk]]]
"""Of each rank what decodes, and the chunks of prompts."""


@dataclass
class Kind:
    """What replicas of one kind run."""

    d: Deployment
    rows: Replicas
    cache: int
    """Tokens that the cache of a rank holds."""
    sequences: int
    """Of a rank and stage at most."""
    hits: float
    replicas: int
    role: str
    weight: float
    """By which requests are shared out."""
    known: dict[object, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.copies, self.stages = int(self.rows.dp[0]), int(self.rows.pp[0])
        self.chunk, self.first = self.d.engine.chunk, self.d.engine.prefill_first
        self.doors = self.d.ahead and self.stages == 1 and self.role == "whole"
        self.on = rates_of(self.d, self.rows)

    def seconds(self, ranks: list[tuple[int, float, int, float]]) -> float:
        """Return seconds in which a batch passes all stages: of each rank sequences, their context, prompt tokens, and
        what lies before these.
        """
        many, tokens = sum(rank[0] for rank in ranks), sum(rank[2] for rank in ranks)
        context = sum(rank[0] * rank[1] for rank in ranks) / many if many else 0.0
        behind = sum(rank[2] * rank[3] for rank in ranks) / tokens if tokens else 0.0
        fullest = max(rank[0] for rank in ranks) * len(ranks), max(rank[2] for rank in ranks) * len(ranks)
        key = (_rounded(many), _rounded(fullest[0]), _near(tokens, PROMPT), _near(fullest[1], PROMPT),
               _near(context, CONTEXT), _near(behind, CONTEXT))
        if key not in self.known:
            mean, full = (self._step(key[at], key[4], key[2 + at], key[5]) for at in (0, 1))
            self.known[key] = float((mean.experts + mean.exchange + full.products + full.cache + full.attention
                                     + full.other + full.host)[0])
        return self.known[key]

    def _step(self, many: int, context: int, tokens: int, behind: int) -> StepTimes:
        # the other stages work on as much at the same time
        times, one = float(self.stages), np.ones(1)
        return step_times(self.d, self.rows, StepLoad(one * many * times, one * max(context, 1), one * tokens * times,
                                                      one * behind), self.on)


class Rank:
    """What waits, is computed and decodes on one copy of attention."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.waiting: deque[Request] = deque()
        self.reading: list[Request] = []
        self.decoding: list[Request] = []
        self.used = self.there = self.busy = 0
        self.door = np.inf
        """Until when a prompt must have come to be in the next step."""

    @property
    def may_read(self) -> bool:
        """Whether it has a prompt to begin with, and room for it."""
        return bool(self.waiting) and self.waiting[0].came <= self.door and (
            self.used + self.waiting[0].held + 1 <= self.kind.cache or not self.used) and (
            self.busy + len(self.decoding) + len(self.reading) < self.kind.sequences)

    def taken(self, *, waits: bool) -> tuple[list[Request], list[Chunk]]:
        """Return what decodes in the next step, which is taken out until it ends, and the chunks of prompts.

        waits: whether no new prompt is begun with. Chunks of one follow each other through the stages of a pipeline.
        """
        kind, chunks = self.kind, list[Chunk]()
        room = kind.chunk if kind.first else max(kind.chunk - len(self.decoding), 0)
        for request in self.reading:
            room -= self._read(request, room, chunks)
        while not waits and room > 0 and self.may_read:
            request = self.waiting.popleft()
            self.used += request.held
            if request.sent:
                request.sent = False
                self.decoding.append(request)
                continue
            request.owed = max(1, request.held - int(request.prompt * kind.hits))
            request.computed = request.held - request.owed
            self.reading.append(request)
            room -= self._read(request, room, chunks)
        self.reading = [request for request in self.reading if request.owed]
        while len(self.decoding) > 1 and self.used + len(self.decoding) > kind.cache:
            # the youngest gives way, and is computed again
            request = self.decoding.pop()
            self.used -= request.held
            self.waiting.appendleft(request)
        # as many decode in each batch of a pipeline
        share = 0 if kind.first and chunks else -(-(self.busy + len(self.decoding)) // kind.stages)
        decoding, self.decoding = self.decoding[:share], self.decoding[share:]
        self.busy += len(decoding) + sum(chunk.is_last for chunk in chunks)
        return decoding, chunks

    def _read(self, request: Request, room: int, chunks: list[Chunk]) -> int:
        tokens = min(room, request.owed)
        if tokens > 0:
            chunks.append(Chunk(request, tokens, request.computed, tokens == request.owed))
            request.owed -= tokens
            request.computed += tokens
        return max(tokens, 0)

    def done(self, now: float, decoding: list[Request], chunks: list[Chunk]) -> list[Request]:
        """Return the requests that end with a step."""
        read = [chunk.request for chunk in chunks if chunk.is_last]
        self.busy -= len(decoding) + len(read)
        ended = list[Request]()
        for request in read:
            request.first = request.first or now
        for request in (*read, *decoding):
            self._answered(request, now, ended)
        self.there -= len(ended)
        return ended

    def _answered(self, request: Request, now: float, ended: list[Request]) -> None:
        request.made += 1
        self.used += 1
        if request.made >= request.answer:
            request.end = now
            self.used -= request.held
            ended.append(request)
        else:
            self.decoding.append(request)


class Engine:
    """A replica: ranks in lockstep, and stages that hold a batch each."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.ranks = kind, [Rank(kind) for _ in range(kind.copies)]
        self.free = [0.0] * kind.stages
        """When each stage is."""
        self.outstanding = self.running = self.turn = self.waited = self.dealt = 0
        self.closed = np.inf
        """When the step after the last one to begin was chosen."""

    def _waits(self) -> bool:
        """Say whether prompts wait for those of other ranks in the next step."""
        delay, may = self.kind.d.delay, [rank.may_read for rank in self.ranks]
        if delay is None or self.kind.stages > 1 or self.kind.role != "whole":
            return False
        decodes = (bool(rank.decoding) for rank in self.ranks)
        waits = any(may) and not all(may) and self.waited < delay.steps - 1 and (
            all(decodes) if delay.all_decode else any(decodes))
        self.waited = self.waited + 1 if waits else 0
        return waits

    def put(self, request: Request, now: float) -> None:
        """Queue a request on the rank with fewest, or on each in turn where the engine is known to deal so."""
        request.came = now
        delay, self.dealt = self.kind.d.delay, (self.dealt + 1) % len(self.ranks)
        rank = self.ranks[self.dealt] if delay and delay.in_turn else min(self.ranks, key=lambda one: one.there)
        rank.there += 1
        rank.waiting.append(request)
        self.outstanding += 1

    def begin(self, now: float) -> tuple[float, float, Work] | None:
        """Return when the next batch leaves the first stage and the last, and what it is; none if there is none."""
        if self.running >= self.kind.stages or self.free[0] > now + 1e-12:
            return None
        idle = not any(rank.reading or rank.decoding for rank in self.ranks)
        for rank in self.ranks:
            # nothing was chosen while there was nothing to choose from
            rank.door = np.inf if idle else self.closed
        waits = self._waits()
        work = [rank.taken(waits=waits) for rank in self.ranks]
        if not any(decoding or chunks for decoding, chunks in work):
            return None
        loads = []
        for decoding, chunks in work:
            tokens = sum(chunk.tokens for chunk in chunks)
            behind = sum((one.behind + one.tokens / 2) * one.tokens for one in chunks) / tokens if tokens else 0
            context = sum(request.held for request in decoding) / len(decoding) if decoding else 0
            loads.append((len(decoding), context, tokens, behind))
        each, at = self.kind.seconds(loads) / self.kind.stages, now
        for stage in range(self.kind.stages):
            at = max(at, self.free[stage]) + each
            self.free[stage] = at
        self.running += 1
        self.closed = now if self.kind.doors else np.inf
        return self.free[0], at, work


class Fleet:
    """Replicas, of one role or of two, behind a router that goes by how many requests each has."""

    def __init__(self, kinds: Iterable[Kind], sending: float = 0.0) -> None:
        """sending: seconds for each token of a cache that goes from one replica to another."""
        engines = [Engine(kind) for kind in kinds for _ in range(kind.replicas)]
        self.readers = [engine for engine in engines if engine.kind.role == "prefill"]
        self.others = [engine for engine in engines if engine.kind.role != "prefill"]
        self.sending = sending
        self.queue: list[tuple[float, int, Request | Engine | tuple[Engine, Work]]] = []
        self.order = count()
        self.next: Iterator[Request] = iter(())

    def replay(self, requests: Sequence[Request], users: int = 0) -> None:
        """Answer requests; users: as many ask them in turn, each when answered and having thought."""
        self.next = iter(requests)
        for _ in range(users or len(requests)):
            self._ask(0.0, closed=users > 0)
        while self.queue:
            now, _, whom = heapq.heappop(self.queue)
            if isinstance(whom, Request):
                self._come(whom, now)
            elif isinstance(whom, Engine):
                self._go(whom, now)
            else:
                engine, work = whom
                engine.running -= 1
                for rank, (decoding, chunks) in zip(engine.ranks, work, strict=True):
                    for request in rank.done(now, decoding, chunks):
                        engine.outstanding -= 1
                        self._ended(request, now, closed=users > 0)
                self._go(engine, now)

    def _at(self, moment: float, whom: Request | Engine | tuple[Engine, Work]) -> None:
        heapq.heappush(self.queue, (moment, next(self.order), whom))

    def _ask(self, now: float, *, closed: bool) -> None:
        if (request := next(self.next, None)) is not None:
            if closed:
                request.arrival = now + request.think
            self._at(request.arrival, request)

    def _come(self, request: Request, now: float) -> None:
        among = self.others
        if self.readers and not request.sent:
            # the first token is the reader's, the others come when its cache is there
            among, request.whole, request.answer = self.readers, request.answer, 1
        # among equals in turn
        among.sort(key=lambda one: one.turn)
        engine = min(among, key=lambda one: (one.outstanding + 1) / one.kind.weight)
        engine.turn = next(self.order)
        engine.put(request, now)
        self._go(engine, now)

    def _ended(self, request: Request, now: float, *, closed: bool) -> None:
        if request.answer < request.whole:
            request.answer, request.sent = request.whole, True
            self._at(now + self.sending * request.prompt, request)
        elif closed:
            self._ask(now, closed=True)

    def _go(self, engine: Engine, now: float) -> None:
        while (step := engine.begin(now)) is not None:
            if engine.kind.stages > 1:
                self._at(step[0], engine)
            self._at(step[1], (engine, step[2]))


def _rounded(many: int) -> int:
    return many if many <= EXACT else round(many / 8) * 8


def _near(tokens: float, grain: int) -> int:
    return round(tokens) if tokens < 2 * grain else round(tokens / grain) * grain
