"""A replica whose prompts wait until every copy of attention has one, as engines can be told: they are then worked on
at once, and hold up what decodes once and not one after the other.

A prompt waits a number of steps at most, and only while enough decodes: otherwise nothing is held up.
"""

from __future__ import annotations

from itertools import islice

from planner.simulate.replica import InFlight, Log
from planner.simulate.slotted import SlottedReplica
from planner.simulate.steps import PromptDelay, ReplicaKind, StepMemo

FIRST = 8
"""Times the copies, of the requests that wait: those of a longer queue are on all of them."""


class DelayedReplica(SlottedReplica):
    """A replica of several copies of attention, in no pipeline, on which prompts wait for each other."""

    def __init__(self, kind: ReplicaKind, times: StepMemo, log: Log,
                 hashes: tuple[tuple[int, ...], ...] | None = None, prefix_block: int = 1, *, index: int = 0,
                 group: int = 0, loads: list[int] | None = None) -> None:
        super().__init__(kind, times, log, hashes, prefix_block, index=index, group=group, loads=loads)
        assert kind.delay is not None
        self.delay: PromptDelay = kind.delay
        self.there = [0] * self.copies
        """Requests on each copy."""
        self.waits = False
        """Whether prompts wait for others in the steps under way."""
        self.waited = 0
        """Steps for which they have, until now."""

    def arrive(self, job: InFlight, now: float) -> bool:
        """Queue a request on a copy; the last one that is waited for cuts the run of steps short."""
        job.copy = self.turn if self.delay.in_turn else self.there.index(min(self.there))
        self.turn = (self.turn + 1) % self.copies
        self.there[job.copy] += 1
        cuts = super().arrive(job, now)
        if self.waits and self.run > 1 and self._all_have() and (steps := self._steps_by(now)) < self.run:
            self.run, self.end = steps, self._after(steps)
            return True
        return cuts

    def complete(self) -> list[InFlight]:
        """End the steps under way; return the requests that got their last token here."""
        self.waited += max(self.run, 1) if self.waits else 0
        ended = super().complete()
        for job in ended:
            self.there[job.copy] -= 1
        return ended

    def start(self, now: float) -> None:
        """Begin the next steps, as many as run alike, and no more than prompts still wait."""
        left = self.delay.steps - 1 - self.waited
        self.waits = bool(self.waiting) and left > 0 and self.pool.decoding >= self.delay.decoding and (
            not self._all_have())
        if not self.waits:
            self.waited = 0
        super().start(now)
        if self.waits and not self.reads and self.run > left:
            self.run, self.end = left, self._after(left)

    def _all_have(self) -> bool:
        """Say whether a prompt waits on every copy."""
        return len(self.waiting) >= self.copies and len(
            {job.copy for job in islice(self.waiting, FIRST * self.copies)}) == self.copies

    def _admit(self, now: float) -> None:
        if not self.waits:
            super()._admit(now)
