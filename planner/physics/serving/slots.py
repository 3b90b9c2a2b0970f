"""Who waits for a prompt where attention is copied or stages hold batches: everybody, as long as it is worked on.

Copies of attention share their experts and so go in lockstep: a step takes as long as on the copy that has a prompt.
Batches in a pipeline do not overtake each other: behind one that takes each stage longer, all others do. So a sequence
waits for all of a prompt's pass, not for a part of it. What copies and stages gain is that several prompts pass at
once, on a *slot* each: dp copies in each of pp batches. Chunks of one prompt follow each other through the stages.
    passes of a prompt of n chunks    1 + (n - 1) / pp, with n chunks in them
    slots at work of K, c chunks      K (1 - exp(-c / K)), as they come at random
Copies without stages are given prompts in turn, so that as many are at work as there are chunks. Where all prompts
begin together, all slots are at work or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.catalog.speed import EngineSpeed
from planner.layouts.table import Floats
from planner.physics.serving.crowding import STEEPEST
from planner.physics.serving.deployment import Replicas

JOINS = 5
"""Rounds of the number of prompts that share a step, which depends on how long it takes."""


@dataclass(frozen=True, slots=True)
class Slots:
    """What takes prompts in a step, for each row."""

    count: Floats
    chunks: Floats
    """Of a prompt, at least one."""
    each: Floats | float
    """Tokens of one of them."""
    most: Floats | float
    """How many share a slot at most."""
    passes: Floats
    """Steps in which a prompt is worked on."""
    least: Floats
    """Slots at work where there is any prompt at all."""
    batches: Floats
    """In a pipeline that prompts enter as they come."""

    @property
    def fewest(self) -> Floats:
        """Return the prompts that pass at once where there is any at all."""
        fewest: Floats = self.least * self.passes / self.chunks
        return fewest

    @property
    def at_once(self) -> Floats:
        """Return the prompts that pass at once at most."""
        at_once: Floats = self.count * self.most * self.passes / self.chunks
        return at_once

    def filled(self, prompts: Floats | float) -> tuple[Floats, Floats]:
        """Return prompt tokens of a step in which so many prompts pass at once, and the slots that they are on."""
        chunks = np.clip(prompts * self.chunks / self.passes, self.least, self.count * self.most)
        on = np.where(self.batches > 1, self.count * -np.expm1(-chunks / self.count), chunks)
        return chunks * self.each, np.clip(on, np.maximum(self.least, chunks / self.most), self.count)

    def added(self, engine: EngineSpeed, prompts: Floats, on: Floats, mixed: Floats, plain: Floats) -> Floats:
        """Return seconds that a prompt adds, of so many in steps of `mixed` seconds and on so many slots.

        Where prompts go first, what decodes on their slots waits; what decodes on others goes on.
        """
        gone_on = plain * (1 - on / self.count) if engine.prefill_first else plain
        added: Floats = self.passes / prompts * (mixed - gone_on)
        return added

    def beside_others(self, engine: EngineSpeed, on: Floats, mixed: Floats, plain: Floats) -> Floats:
        """Return seconds of a step of prompts: where they go first, other slots decode, which may take longer."""
        return np.where(on < self.count, np.maximum(mixed, plain), mixed) if engine.prefill_first else mixed


def slots_of(rows: Replicas, prompt: Floats | float, chunk: float, in_step: Floats | None = None) -> Slots:
    """Return the slots of replicas whose prompts have so many tokens, a chunk of them a step at most.

    in_step: sequences whose prompts begin together, where they do.
    """
    each, count = np.minimum(prompt, float(chunk)), (rows.dp * rows.pp).astype(np.float64)
    chunks = np.zeros(len(rows)) + prompt / each
    passes = 1 + (chunks - 1) / rows.pp
    if in_step is None:
        return Slots(count, chunks, each, chunk / each, passes, chunks / passes, rows.pp.astype(np.float64))
    # all have a chunk at the same time, one after the other
    return Slots(count, chunks, each, chunk / each, chunks, np.clip(in_step, 1.0, count), np.ones(len(rows)))


def joined(slots: Slots, engine: EngineSpeed, plain: Floats, known: Sequence[tuple[Floats, Floats]],
           rate: Callable[[Floats], Floats]) -> Floats:
    """Return how many prompts share a step that has some, on average: those that came in the step before.

    plain: seconds of a step without prompts; known: those of steps that so many share, fewest first, on a line between;
    rate: of prompts, by the seconds that one adds to steps.
    """
    together = slots.fewest
    for _ in range(JOINS):
        first = _came(slots, engine, plain, known, rate, together)
        second = _came(slots, engine, plain, known, rate, first)
        together = np.clip(_further(together, first, second), slots.fewest, slots.at_once)
    return together


def _came(slots: Slots, engine: EngineSpeed, plain: Floats, known: Sequence[tuple[Floats, Floats]],
          rate: Callable[[Floats], Floats], together: Floats) -> Floats:
    """Return how many come in a step, those with some being shared by `together`, where at least one did."""
    mixed = known[0][1] + sum((after - before) * np.clip((together - few) / np.maximum(many - few, 1e-9), 0.0, 1.0)
                              for (few, before), (many, after) in pairwise(known))
    _, on = slots.filled(together)
    drawn = rate(slots.added(engine, together, on, mixed, plain)) * slots.passes / slots.fewest
    came, more = np.maximum(drawn * plain, 1e-9), np.maximum(drawn * mixed, 1e-9)
    # steps with prompts come after either kind
    stepwise = more + came * np.exp(-more) / -np.expm1(-came)
    # into a pipeline others come while one passes; none does where the first stage is free, as after the last of an
    # M/G/1 queue, and none has come since in the time of the other stages
    together_at_most = slots.count / slots.batches * slots.most
    taken = more * slots.chunks / slots.passes / slots.batches
    free = np.maximum(1 - taken / together_at_most, 1 - STEEPEST) ** together_at_most
    passing = more / (1 - free * np.exp(-more * (1 - 1 / slots.batches) / slots.passes))
    shared = np.where(slots.batches > 1, passing, stepwise)
    clipped: Floats = np.clip(shared * slots.fewest, slots.fewest, slots.at_once)
    return clipped


def _further(before: Floats, now: Floats, after: Floats) -> Floats:
    """Return where three that come nearer and nearer to each other lead, by factors (Aitken)."""
    first, second = np.log(now / before), np.log(after / now)
    left = np.clip(second / np.where(first == 0, 1.0, first), 0.0, STEEPEST)
    further: Floats = after * np.exp(second * left / (1 - left))
    return further
