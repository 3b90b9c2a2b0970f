"""A replica of several copies of attention, or batches in a pipeline: all of them wait for one that has a prompt.

A step is a round in which every sequence decodes a token. Copies go in lockstep: with prompts it takes as long as on
the fullest. Of n stages, n batches enter the pipeline in a round, one after the other, each when the one before leaves
the first stage, and none overtakes another: all stages take as long as the slowest batch among the last n to enter. A
prompt goes with the batch that enters next when it arrives, and its further chunks with those behind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from planner.simulate.replica import InFlight, Log, Replica
from planner.simulate.steps import ReplicaKind, StepMemo


class SlottedReplica(Replica):
    """A replica whose prompts are each on one copy and in one batch."""

    def __init__(self, kind: ReplicaKind, times: StepMemo, log: Log,
                 hashes: tuple[tuple[int, ...], ...] | None = None, prefix_block: int = 1, *, index: int = 0,
                 group: int = 0, loads: list[int] | None = None) -> None:
        super().__init__(kind, times, log, hashes, prefix_block, index=index, group=group, loads=loads)
        self.copies, self.batches = kind.copies, kind.batches
        self.turn = 0
        """Of the copies, whose the next prompt is."""
        self.none = [0.0] * self.batches
        self.before = self.longer = self.none
        """Seconds more that each batch of the last round but one takes in a stage, and of the last one."""
        self.plain = 0.0
        """Seconds of the round without prompts."""
        self.tokens: list[list[int]] = []
        """Prompt tokens of the round, of each batch and copy."""
        self.cached: list[int] = []
        """Of each batch, how many lie before each of them, in all."""
        self.went_on = 0.0
        """Of a token of what does not decode in every step, as prompts go first on its copy and in its batch."""
        self.step = 0.0
        """Seconds of the last step."""
        self.reads = self.read = False
        """Whether the step under way has prompts, and whether the one before had."""

    def complete(self) -> list[InFlight]:
        """End the steps under way; return the requests that got their last token here."""
        self.step = self.end - (self._after(self.run - 1) if self.run > 1 else self.began)
        self.read, self.reads = self.reads, False
        return super().complete()

    def arrive(self, job: InFlight, now: float) -> bool:
        """Queue a request; while others pass the stages of a pipeline, its prompt goes behind them."""
        cuts = super().arrive(job, now)
        entered = int(self.batches * (now - self.began) / (self.end - self.began)) + 1 if self.reads else self.batches
        if entered >= self.batches or not self.waiting:
            return cuts
        self._admit(now)
        self._take(now, entered)
        end = self.began + self._seconds()
        changed, self.end = end != self.end, end
        return changed

    def start(self, now: float) -> None:
        """Begin the next steps, as many as run alike; the first is longer where prompts are still on their way."""
        self.before, self.longer = self.longer, self.none
        super().start(now)
        if not self.reads and self.run and (more := _slowest(self.none, self.before)):
            self.run, self.end = 1, self._after(1) + more

    def _chunk(self, now: float, decoding: int) -> float:
        self.reads, self.plain = True, self._plain(decoding)
        self.tokens, self.cached = [[0] * self.copies for _ in range(self.batches)], [0] * self.batches
        self._take(now, 0)
        if self.mixed:
            self.run = 1 if decoding else 0
        else:
            # a step of prompts is one of its own; sequences that are not where they are decode beside it
            self.went_on += 1 - self._at_work() if decoding else 0
            self.run = int(self.went_on)
            self.went_on -= self.run
        return self._seconds()

    def _at_work(self) -> float:
        """Return the share of copies and batches that have a prompt."""
        return sum(count > 0 for row in self.tokens for count in row) / (self.copies * self.batches)

    def _seconds(self) -> float:
        """Return the seconds of the round."""
        took = [self._prompts(*pair) if any(pair[0]) else 0.0 for pair in zip(self.tokens, self.cached, strict=True)]
        if not self.mixed:
            waits, plain = self._at_work() == 1, self.plain
            took = [seconds - plain if waits or seconds > plain else 0.0 for seconds in took]
        self.longer = [seconds / self.batches for seconds in took]
        return self.plain + _slowest(self.longer, self.before)

    def _prompts(self, tokens: Sequence[int], cached: int) -> float:
        """Return the seconds that prompt tokens of each copy add to a batch, all of whose are behind so many."""
        return self.times.prefill[max(tokens), self._rounded(cached // sum(tokens)), sum(tokens) / max(tokens)]

    def _take(self, now: float, entered: int) -> None:
        """Take the next prompt tokens, oldest prompt first, into the batches behind those that entered."""
        tokens, cached, still = self.tokens, self.cached, deque[InFlight]()
        left = self.copies * (self.batches - entered) * self.chunk
        while self.prefilling and left > 0:
            job = self.prefilling.popleft()
            waited, job.batch = now - job.queued, entered
            begins = job.copy < 0 and 0 < waited < self.step and not self.read
            if begins:
                job.batch = int(self.batches * (1 - waited / self.step))
            if job.copy < 0:
                job.copy, self.turn = self.turn, (self.turn + 1) % self.copies
            for batch in range(job.batch, self.batches):
                part = int(min(job.left, self.chunk - tokens[batch][job.copy]))
                if part > 0:
                    cached[batch] += part * (job.input + job.generated - job.left)
                    tokens[batch][job.copy] += part
                    job.left -= part
                    left -= part
                    job.batch = batch
                if not job.left:
                    break
            if begins and self.batches > 1:
                # it went with the next batch, and not only after the last of the round in which it came
                job.ahead = self.step * (1 - (job.batch + 1) / self.batches)
            if job.left:
                still.append(job)
            else:
                self.prefilled.append(job)
        self.prefilling.extendleft(reversed(still))

    def _answer(self, job: InFlight, ended: list[InFlight]) -> None:
        before = job.generated
        super()._answer(job, ended)
        if not before:
            # its batch has still to pass as many stages as batches entered before it
            self.log.first[job.request] += _slowest(self.none[:job.batch], self.longer) - job.ahead


def _slowest(entering: Sequence[float], before: Sequence[float]) -> float:
    """Return by how much a round is longer: the slowest of the last to enter, as each of `entering` does; `before` are
    those of the round before.
    """
    return sum(max(*entering[:at + 1], *before[at + 1:]) if at + 1 < len(before) or at else entering[0]
               for at in range(len(entering)))
