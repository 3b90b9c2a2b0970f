"""One replica: continuous batching over a pool of cache, jumping over runs of steps in which nothing happens.

    seconds of j decode steps of D sequences over C cached tokens = j (fixed + per_token C) + per_token D j (j - 1) / 2

SimPy schedules about 1e5 events a second, too slow for a million requests; here a run of decode steps is one event.
First come, first served: a request is admitted when a slot and cache for its prompt are free. When the cache runs out,
the youngest sequence is dropped and computed again later, prompt and answer so far, as vLLM does.
Left out: time on the host between steps (part of the step times), and speculative decoding.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush

from planner.simulate.pool import CachePool, PrefixCache
from planner.simulate.steps import ReplicaKind, StepMemo


class Log:
    """What the replicas write down of each request, by its row in the trace. Seconds."""

    __slots__ = ("first", "preempted", "waited")

    def __init__(self, requests: int) -> None:
        self.first = [math.nan] * requests
        self.waited = [0.0] * requests
        self.preempted = [0] * requests


class InFlight:
    """A request on one replica. Counts are tokens."""

    __slots__ = ("ahead", "batch", "copy", "dropped", "finish", "generated", "input", "left", "output", "queued",
                 "received", "request")

    def __init__(self, request: int, prompt: int, output: int, generated: int = 0) -> None:
        self.request, self.input, self.output = request, prompt, output
        self.generated = generated
        """When it was last admitted or left prefill."""
        self.received = generated > 0
        """Whether its cache comes with it, from a prefill replica."""
        self.left = 0
        """Prompt tokens still to compute."""
        self.finish = -1
        """The step counter at its last token; -1 unless it decodes."""
        self.dropped = 0
        """How often it lost its cache while it decoded."""
        self.queued = 0.0
        self.copy, self.batch, self.ahead = -1, 0, 0.0
        """Of several, those that its prompt is on; a copy is given when it begins, and how much sooner than a step."""


class Replica:
    """An engine instance between two step boundaries. Its caller moves it: arrive, and at `end` complete and start."""

    def __init__(self, kind: ReplicaKind, times: StepMemo, log: Log,
                 hashes: tuple[tuple[int, ...], ...] | None = None, prefix_block: int = 1, *, index: int = 0,
                 group: int = 0, loads: list[int] | None = None) -> None:
        """loads: where the replicas of a fleet keep how many requests wait and run on them, each at its index."""
        self.kind, self.times, self.log, self.index, self.group = kind, times, log, index, group
        self.loads = [0] * (index + 1) if loads is None else loads
        self.mixed, self.batch, self.grain = kind.mode == "mixed", kind.max_batch, kind.context_grain
        self.chunk = math.inf if kind.chunk is None else kind.chunk
        self.hashes, self.prefix_block, self.hit_rate = hashes, prefix_block, kind.hit_rate
        self.ahead, self.chosen = kind.ahead, math.inf
        """Whether a step's batch is chosen when the step before begins, and when that of the next one was."""
        self.finds = hashes is not None or kind.hit_rate > 0
        """Whether some of a prompt may be cached before it comes."""
        kept = kind.kv_tokens if kind.prefix_tokens is None else kind.prefix_tokens
        self.prefixes = PrefixCache(kept // prefix_block)
        self.pool = CachePool(kind.kv_tokens, kind.block, kind.apart)
        self.waiting: deque[InFlight] = deque()
        self.running: dict[int, InFlight] = {}
        """Admitted, oldest first."""
        self.prefilling: deque[InFlight] = deque()
        self.prefilled: list[InFlight] = []
        """Whose prompts end with the step under way."""
        self.finishing: list[tuple[int, int, int, InFlight]] = []
        """A heap of the decoding sequences, by the step counter at their last token. Those that were dropped since stay
        in it, and are passed over.
        """
        self.counter = self.context = 0
        self.asked = 0
        """Blocks that waiting requests will take."""
        self.run = 0
        """Decode steps under way."""
        self.began = self.busy = self.first_step = self.slope = 0.0
        self.end = math.inf

    def arrive(self, job: InFlight, now: float) -> bool:
        """Queue a request. True where it cuts the run of steps short, to be admitted at the next boundary, or at that
        behind it where the next step's batch is chosen.
        """
        blocks = self.pool.blocks(job.input + job.generated)
        cuts = (self.run > 1 and not self.waiting and len(self.running) < self.batch and blocks <= self.pool.free)
        self.asked += blocks
        job.queued = now
        self.waiting.append(job)
        self.loads[self.index] += 1
        if cuts and (steps := self._steps_by(now) + self.ahead) < self.run:
            self.run, self.end = steps, self._after(steps)
            return True
        return False

    def complete(self) -> list[InFlight]:
        """End the steps under way; return the requests that got their last token here."""
        ended: list[InFlight] = []
        self.busy += self.end - self.began
        if self.ahead:
            self.chosen = self._after(self.run - 1) if self.run > 1 else self.began
        if self.run:
            run, finishing, pool = self.run, self.finishing, self.pool
            pool.free -= pool.growth(run, self.counter)
            counter = self.counter = self.counter + run
            self.context += run * pool.decoding
            self.run = 0
            while finishing and finishing[0][0] <= counter:
                _, _, dropped, job = heappop(finishing)
                if dropped != job.dropped:
                    continue
                cached = job.input + job.output - 1
                self.context -= cached
                pool.leave(cached, counter)
                ended.append(job)
        if self.prefilled:
            for job in self.prefilled:
                self._answer(job, ended)
            self.prefilled.clear()
        if ended:
            for job in ended:
                del self.running[job.request]
            self.loads[self.index] -= len(ended)
        self.end = math.inf
        return ended

    def start(self, now: float) -> None:
        """Begin the next steps, as many as run alike; `end` is inf where there is nothing to do."""
        pool, times = self.pool, self.times
        if pool.decoding > pool.free and (self.mixed or not self.prefilling):
            self._make_room(now)
        if not self.running:
            # an engine that has nothing to do takes what there is
            self.chosen = math.inf
        if self.waiting:
            self._admit(now)
        decoding = pool.decoding
        self.began = now
        if self.prefilling:
            self.end = now + self._chunk(now, decoding)
        elif decoding:
            more = times.per_token[decoding]
            self.first_step, self.slope = times.fixed[decoding] + more * self.context, more * decoding
            finishing = self.finishing
            while finishing[0][2] != finishing[0][3].dropped:
                heappop(finishing)
            self.run = 1 if self._comes_next() else pool.lasting(finishing[0][0] - self.counter, self.counter)
            self.end = self._after(self.run)
        else:
            self.end = math.inf

    def used(self, now: float) -> float:
        """Return the share of the pool in use or asked for at a moment of the steps under way; above 1 with a queue."""
        grown = self.pool.growth(self._steps_by(now) - 1, self.counter) if self.run > 1 else 0
        return (self.held + grown) / self.pool.size

    @property
    def outstanding(self) -> int:
        """Requests that wait and run."""
        return self.loads[self.index]

    @property
    def held(self) -> int:
        """The blocks in use or asked for when the steps under way began."""
        return self.pool.size - self.pool.free + self.asked

    def matched(self, job: InFlight) -> int:
        """Return the blocks at the front of the prompt that are cached here."""
        return self.prefixes.match(self.hashes[job.request]) if self.hashes else 0

    def _after(self, steps: int) -> float:
        return self.began + (steps * self.first_step + self.slope * (steps * (steps - 1) // 2))

    def _steps_by(self, now: float) -> int:
        """Return the first of the decode steps under way to end at `now` or after."""
        b, x = self.slope, now - self.began
        p = self.first_step - b / 2
        root = p + math.sqrt(max(p * p + 2 * b * x, 0.0))
        steps = min(max(math.ceil(2 * x / root), 1), self.run) if root > 0 else 1
        while steps < self.run and self._after(steps) < now:
            steps += 1
        while steps > 1 and self._after(steps - 1) >= now:
            steps -= 1
        return steps

    def _make_room(self, now: float) -> None:
        """Drop the youngest sequences until the next decode step has room."""
        pool = self.pool
        while not pool.grows(self.counter):
            job = self.running.popitem()[1]
            if job.finish < 0:
                self.prefilling.pop()
                pool.free += pool.blocks(job.input + job.generated)
            else:
                job.generated = job.output - (job.finish - self.counter)
                cached = job.input + job.generated - 1
                self.context -= cached
                pool.leave(cached, self.counter)
                job.dropped += 1
            job.finish, job.queued = -1, now
            self.log.preempted[job.request] += 1
            self.waiting.appendleft(job)
            self.asked += pool.blocks(job.input + job.generated)

    def _admit(self, now: float) -> None:
        pool, waiting, running = self.pool, self.waiting, self.running
        while waiting and len(running) < self.batch:
            job = waiting[0]
            if job.queued > self.chosen:
                return
            tokens = job.input + job.generated
            blocks = pool.blocks(tokens)
            if pool.decoding > pool.free - blocks and not pool.grows(self.counter, beside=blocks):
                return
            self.asked -= blocks
            waiting.popleft()
            running[job.request] = job
            self.log.waited[job.request] += now - job.queued
            if job.received:
                job.received = False
                pool.free -= pool.blocks(tokens - 1)
                self._decode(job, tokens - 1)
            else:
                pool.free -= blocks
                job.left = tokens - min(self._hit(job), tokens - 1) if self.finds else tokens
                self.prefilling.append(job)

    def _comes_next(self) -> bool:
        """Say whether a request waits only because it came after the batch of this step was chosen."""
        return bool(self.waiting) and self.waiting[0].queued > self.chosen and len(self.running) < self.batch

    def _hit(self, job: InFlight) -> int:
        if self.hashes is None:
            return int(self.hit_rate * job.input)
        hashes = self.hashes[job.request]
        matched = self.prefixes.match(hashes)
        self.prefixes.keep(hashes[:matched])
        return min(matched * self.prefix_block, job.input)

    def _chunk(self, now: float, decoding: int) -> float:
        """Take the next prompt tokens, oldest prompt first; return the seconds of their step, begun now."""
        left, context, taken, prefilling = self.chunk, 0, 0, self.prefilling
        while prefilling and left > 0:
            job = prefilling[0]
            context += job.input + job.generated - job.left
            if job.left > left:
                job.left -= int(left)
                taken += int(left)
                break
            left -= job.left
            taken += job.left
            self.prefilled.append(prefilling.popleft())
        self.run = 1 if decoding and self.mixed else 0
        return self._plain(decoding if self.mixed else 0) + self.times.prefill[taken, self._rounded(context)]

    def _plain(self, decoding: int) -> float:
        """Return the seconds of a step of so many sequences without prompts, or of one in which nothing is done."""
        times = self.times
        return times.fixed[decoding] + times.per_token[decoding] * self.context if decoding else times.empty

    def _rounded(self, context: int) -> int:
        grain = self.grain
        return (context + grain // 2) // grain * grain if context else 0

    def _answer(self, job: InFlight, ended: list[InFlight]) -> None:
        """Give a request the token that ends its prefill."""
        cached = job.input + job.generated
        if self.hashes:
            self.prefixes.keep(self.hashes[job.request])
        if not job.generated:
            self.log.first[job.request] = self.end + (self.kind.stages - 1) * (self.end - self.began)
        job.generated += 1
        if job.generated < job.output:
            self._decode(job, cached)
        else:
            self.pool.free += self.pool.blocks(cached)
            ended.append(job)

    def _decode(self, job: InFlight, cached: int) -> None:
        job.finish = self.counter + job.output - job.generated
        heappush(self.finishing, (job.finish, job.request, job.dropped, job))
        self.context += cached
        self.pool.join(cached, self.counter)
