"""A replica simulated the plain way, one step and one sequence at a time: what the fast one must agree with."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


class Affine:
    """Step times of a made-up engine, without round numbers."""

    def empty(self):
        return 0.0071

    def fixed(self, sequences):
        return 0.0113 + 0.00037 * sequences

    def per_token(self, sequences):
        return 1.9e-6 + 1.3e-8 * sequences

    def prefill(self, tokens, context):
        return 6.1e-5 * tokens + 1.7e-8 * tokens * (context + tokens / 2)


@dataclass
class Seq:
    request: int
    input: int
    output: int
    generated: int = 0
    cached: int = 0
    target: int = 0
    """Tokens to compute before the next is generated."""
    first: float = math.nan
    last: float = math.nan
    preempted: int = 0
    queued: float = 0.0


@dataclass
class NaiveReplica:
    kind: object
    waiting: list = field(default_factory=list)
    running: list = field(default_factory=list)
    busy_until: float | None = None
    plan: tuple = ()
    chosen: float = math.inf
    """When the batch of the next step was chosen: where it is ahead, when the step before began."""

    @property
    def outstanding(self):
        return len(self.waiting) + len(self.running)

    def blocks(self, tokens):
        return math.ceil((tokens + self.kind.apart) / self.kind.block)

    def free(self):
        held = sum(self.blocks(max(s.cached, s.target)) for s in self.running)
        return self.kind.kv_tokens // self.kind.block - held

    def decoding(self):
        return [s for s in self.running if s.cached >= s.target]

    def needed(self):
        return sum(self.blocks(s.cached + 1) - self.blocks(s.cached) for s in self.decoding())

    def start(self, now):
        kind = self.kind
        prefilling = [s for s in self.running if s.cached < s.target]
        if kind.mode == "mixed" or not prefilling:
            while self.needed() > self.free():
                dropped = self.running.pop()
                dropped.cached = dropped.target = 0
                dropped.preempted += 1
                dropped.queued = now
                self.waiting.insert(0, dropped)
        self.admit()
        prefilling = [s for s in self.running if s.cached < s.target]
        decoding = self.decoding() if kind.mode == "mixed" or not prefilling else []
        left, chunks = kind.chunk or math.inf, []
        for sequence in prefilling:
            take = min(left, sequence.target - sequence.cached)
            if take:
                chunks.append((sequence, int(take)))
                left -= take
        if not chunks and not decoding:
            self.busy_until = None
            return
        seconds = kind.steps.empty()
        if decoding:
            context = sum(s.cached for s in decoding)
            seconds = kind.steps.fixed(len(decoding)) + kind.steps.per_token(len(decoding)) * context
        if chunks:
            seconds += kind.steps.prefill(sum(take for _, take in chunks), sum(s.cached for s, _ in chunks))
        self.plan, self.busy_until = (chunks, decoding), now + seconds
        self.chosen = now if kind.ahead else math.inf

    def admit(self):
        if not self.running:
            self.chosen = math.inf
        while self.waiting and len(self.running) < self.kind.max_batch and self.waiting[0].queued <= self.chosen:
            tokens = self.waiting[0].input + self.waiting[0].generated
            if self.blocks(tokens) > self.free() - self.needed():
                break
            sequence = self.waiting.pop(0)
            sequence.target = tokens
            sequence.cached = min(int(self.kind.hit_rate * sequence.input), tokens - 1)
            self.running.append(sequence)

    def complete(self):
        now = self.busy_until
        chunks, decoding = self.plan
        for sequence in decoding:
            sequence.cached += 1
            sequence.target = sequence.cached
            sequence.generated += 1
        for sequence, take in chunks:
            sequence.cached += take
            if sequence.cached == sequence.target:
                sequence.generated += 1
                if sequence.generated == 1:
                    sequence.first = now
        for sequence in [s for s in self.running if s.generated == s.output]:
            sequence.last = now
            self.running.remove(sequence)
        self.busy_until = None


def naive_fleet(trace, kinds, choose):
    """Return every request after it ran; `choose(replicas, request)` is the router."""
    replicas = [NaiveReplica(kind) for kind in kinds]
    rows = zip(trace.input.tolist(), trace.output.tolist(), strict=True)
    todo = [Seq(i, prompt, answer) for i, (prompt, answer) in enumerate(rows)]
    arrivals, at = [*trace.arrival.tolist(), math.inf], 0
    while True:
        ends = [r.busy_until for r in replicas if r.busy_until is not None]
        now = min([*ends, arrivals[at]])
        if now == math.inf:
            return todo
        for replica in replicas:
            if replica.busy_until == now:
                replica.complete()
        while arrivals[at] == now:
            todo[at].queued = now
            choose(replicas, at).waiting.append(todo[at])
            at += 1
        for replica in replicas:
            if replica.busy_until is None:
                replica.start(now)
