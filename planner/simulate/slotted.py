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
        self.longer = self.none
        """Seconds more that each batch of the last round takes in a stage."""
        self.went_on = 0.0
        """Of a token of what does not decode in every step, as prompts go first on its copy and in its batch."""
        self.step = 0.0
        """Seconds of the last step."""
        self.reads = False
        """Whether the step under way has prompts."""

    def complete(self) -> list[InFlight]:
        """End the steps under way; return the requests that got their last token here."""
        self.step = self.end - (self._after(self.run - 1) if self.run > 1 else self.began)
        return super().complete()

    def start(self, now: float) -> None:
        """Begin the next steps, as many as run alike; the first is longer where prompts are still on their way."""
        self.reads = False
        super().start(now)
        if not self.reads:
            if self.run and (more := _slowest(self.none, self.longer)):
                self.run, self.end = 1, self._after(1) + more
            self.longer = self.none

    def _chunk(self, now: float, decoding: int) -> float:
        self.reads = True
        tokens, cached = self._taken(now)
        at_work = sum(count > 0 for row in tokens for count in row)
        plain, waits = self._plain(decoding), at_work == self.copies * self.batches
        took = [self._prompts(row, before) if any(row) else 0.0 for row, before in zip(tokens, cached, strict=True)]
        if self.mixed:
            self.run = 1 if decoding else 0
        else:
            # a step of prompts is one of its own; sequences that are not where they are decode beside it
            took = [seconds - plain if waits or seconds > plain else 0.0 for seconds in took]
            self.went_on += 0 if waits or not decoding else 1 - at_work / (self.copies * self.batches)
            self.run = int(self.went_on)
            self.went_on -= self.run
        longer = [seconds / self.batches for seconds in took]
        more, self.longer = _slowest(longer, self.longer), longer
        return plain + more

    def _prompts(self, tokens: Sequence[int], cached: int) -> float:
        """Return the seconds that prompt tokens of each copy add to a batch, all of whose are behind so many."""
        return self.times.prefill[max(tokens), self._rounded(cached // sum(tokens)), sum(tokens) / max(tokens)]

    def _taken(self, now: float) -> tuple[list[list[int]], list[int]]:
        """Take the next prompt tokens, oldest prompt first; return those of each batch and copy, and of each batch how
        many lie before each of them, in all.
        """
        tokens, cached = [[0] * self.copies for _ in range(self.batches)], [0] * self.batches
        left, still = self.copies * self.batches * self.chunk, deque[InFlight]()
        while self.prefilling and left > 0:
            job = self.prefilling.popleft()
            waited, job.batch = now - job.queued, 0
            begins = job.copy < 0 and 0 < waited < self.step
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
        return tokens, cached

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
