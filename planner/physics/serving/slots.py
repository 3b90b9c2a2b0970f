"""Who waits for a prompt where attention is copied or stages hold batches: everybody, as long as it is worked on.

Copies of attention share their experts and so go in lockstep: a step takes as long as on the copy that has a prompt.
Batches in a pipeline do not overtake each other: behind one that takes each stage longer, all others do. So a sequence
waits for all of a prompt's pass, not for a part of it. What copies and stages gain is that several prompts pass at
once, on a *slot* each: dp copies in each of pp batches. Chunks of one prompt follow each other through the stages.
    passes of a prompt of n chunks    1 + (n - 1) / pp, with n chunks in them
    slots at work of K, c chunks      K (1 - exp(-c / K)), as they come at random
Copies without stages are given prompts in turn, so that as many are at work as there are chunks. Where all prompts
begin together, all slots are at work or none.

Engines can have prompts wait until every copy has one, for N steps at most (*delay*). Those there when the wait begins
(a) are joined by those that come meanwhile, up to n: as many as there are copies where they are dealt in turn, else
more, of which some copies then have several:
    prompts that then pass at once    g = max(a, 1 + E min(n - 1, Poisson(a - 1 + N X T)))
    seconds of the wait               U = (g - a) / X, all of it for those that came before, half for the others
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from planner.catalog.speed import EngineSpeed
from planner.layouts.table import Floats, Ints
from planner.physics.serving.crowding import STEEPEST
from planner.physics.serving.deployment import Delay, Deployment, Replicas
from planner.physics.serving.settings import can_wait

JOINS = 5
"""Rounds of the number of prompts that share a step, which depends on how long it takes."""

RANDOM = 1 / 4
"""How far dealing to the copy with fewest requests is from in turn, on the way to at random."""


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
    held: Floats
    """Steps that a prompt waits at most for those on other copies; zero where it does not."""
    needed: Floats
    """Prompts until each copy has one."""

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
        at_random = (self.batches > 1) | (self.needed > self.count)
        on = np.where(at_random, self.count * -np.expm1(-chunks / self.count), chunks)
        return chunks * self.each, np.clip(on, np.maximum(self.least, chunks / self.most), self.count)

    def added(self, engine: EngineSpeed, prompts: Floats, on: Floats, mixed: Floats, plain: Floats) -> Floats:
        """Return seconds that a prompt adds, of so many in steps of `mixed` seconds and on so many slots.

        Where prompts go first, what decodes on their slots waits; what decodes on others goes on.
        """
        gone_on = plain * (1 - on / self.count) if engine.prefill_first else plain
        added: Floats = self.passes / prompts * (mixed - gone_on)
        return added

    def gathered(self, together: Floats) -> Slots:
        """Return these where prompts that wait for each other pass so many at once, and never fewer."""
        least = np.clip(together * self.chunks / self.passes, self.least, self.count)
        return replace(self, least=np.where(self.held > 0, least, self.least))

    def beside_others(self, engine: EngineSpeed, on: Floats, mixed: Floats, plain: Floats) -> Floats:
        """Return seconds of a step of prompts: where they go first, other slots decode, which may take longer."""
        return np.where(on < self.count, np.maximum(mixed, plain), mixed) if engine.prefill_first else mixed


def slots_of(d: Deployment, rows: Replicas, prompt: Floats | float, batch: Floats, *, in_step: bool = False) -> Slots:
    """Return the slots of replicas whose prompts have so many tokens while `batch` sequences decode.

    in_step: whether the prompts of these begin together.
    """
    chunk, none = float(d.engine.chunk), np.zeros(len(rows))
    each, count = np.minimum(prompt, chunk), (rows.dp * rows.pp).astype(np.float64)
    chunks = none + prompt / each
    passes = 1 + (chunks - 1) / rows.pp
    if in_step:
        # all have a chunk at the same time, one after the other
        return Slots(count, chunks, each, chunk / each, chunks, np.clip(batch, 1.0, count), none + 1, none, count)
    held = _held(d.delay, rows, batch)
    dealt = count if d.delay is None or d.delay.in_turn else np.where(held > 0, _until_all(rows.dp), count)
    return Slots(count, chunks, each, chunk / each, passes, chunks / passes, rows.pp.astype(np.float64), held, dealt)


def _held(delay: Delay | None, rows: Replicas, batch: Floats) -> Floats:
    """Return the steps that prompts wait for each other at most, of those in which enough decodes that they wait."""
    if delay is None:
        return np.zeros(len(rows))
    enough = rows.dp if delay.all_decode else np.ones_like(rows.dp)
    return np.where(can_wait(rows.dp, rows.pp), (delay.steps - 1) * _at_least(enough, np.maximum(batch, 0.0)), 0.0)


def _until_all(copies: Ints) -> Floats:
    """Return how many are dealt until each of several has one, where each goes to the one with fewest requests.

    That may be the one that got the last, as others of its end: by replay it takes between as many as in turn and those
    at random, which are 1 + 1/2 + ... + 1/n times as many (coupon collector's problem), and nearer to the former.
    """
    random = np.array([sum(1 / part for part in range(1, count + 1)) for count in copies.tolist()])
    until: Floats = copies * (1 + RANDOM * (random - 1))
    return until


@dataclass(frozen=True, slots=True)
class Joined:
    """Prompts that share a step, for each row."""

    prompts: Floats
    """On average, of the steps that have some."""
    wait: Floats
    """Seconds that one has waited for the others, on average, with the step that it met."""
    least: Floats
    """What of it each has, as the first waits as long as any may."""


def joined(slots: Slots, engine: EngineSpeed, plain: Floats, known: Sequence[tuple[Floats, Floats]],
           rate: Callable[[Floats], Floats]) -> Joined:
    """Return how many prompts share a step that has some, on average: those that came in the step before, and while
    these waited for others.

    plain: seconds of a step without prompts; known: those of steps that so many share, fewest first, on a line between;
    rate: of prompts, by the seconds that one adds to steps.
    """
    together = slots.fewest
    for _ in range(JOINS):
        first = _came(slots, engine, plain, known, rate, together).prompts
        second = _came(slots, engine, plain, known, rate, first).prompts
        together = np.clip(_further(together, first, second), slots.fewest, slots.at_once)
    if not slots.held.any():
        return Joined(together, np.zeros(len(together)), np.zeros(len(together)))
    return replace(_came(slots, engine, plain, known, rate, together), prompts=together)


def _came(slots: Slots, engine: EngineSpeed, plain: Floats, known: Sequence[tuple[Floats, Floats]],
          rate: Callable[[Floats], Floats], together: Floats) -> Joined:
    """Return how many come in a step, those with some being shared by `together`, where at least one did."""
    mixed = known[0][1] + sum((after - before) * np.clip((together - few) / np.maximum(many - few, 1e-9), 0.0, 1.0)
                              for (few, before), (many, after) in pairwise(known))
    _, on = slots.filled(together)
    each = rate(slots.added(engine, together, on, mixed, plain))
    drawn = each * slots.passes / slots.fewest
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
    if not slots.held.any():
        none = np.zeros(len(shared))
        return Joined(np.clip(shared * slots.fewest, slots.fewest, slots.at_once), none, none)
    # who waits is joined by those that come meanwhile, until each copy has one
    waiting = each * plain * slots.held
    filled = 1 + _fewer(slots.needed - 1, np.maximum(shared - 1, 0.0) + waiting)
    shared = np.where(slots.held > 0, np.maximum(shared, filled), shared)
    clipped = np.clip(shared * slots.fewest, slots.fewest, slots.at_once)
    lasts = np.clip((clipped - np.maximum(stepwise, 1.0)) / np.maximum(each, 1e-9), 0.0, slots.held * plain)
    # some come while others are worked on, and wait for the rest of that; without them one comes to begin the wait
    before, first = more * (slots.passes * mixed / 2 + lasts), np.exp(-more) * lasts
    wait = (before + first + each * lasts**2 / 2) / np.maximum(clipped, 1.0)
    return Joined(clipped, *(np.where(slots.held > 0, seconds, 0.0) for seconds in (wait, first / clipped)))


def _at_least(count: Ints, mean: Floats) -> Floats:
    """Return the chance that a number drawn at random (Poisson) is at least `count`."""
    chance, below = np.exp(-mean), np.zeros(len(mean))
    for drawn in range(int(count.max(initial=0))):
        below = below + np.where(drawn < count, chance, 0.0)
        chance = chance * mean / (drawn + 1)
    return np.maximum(1 - below, 0.0)


def _fewer(most: Floats, mean: Floats) -> Floats:
    """Return the mean of a number drawn at random (Poisson), or of `most` where that is fewer."""
    fewer, chance, below = np.zeros(len(mean)), np.exp(-mean), np.zeros(len(mean))
    for drawn in range(int(most.max(initial=0))):
        below = below + chance
        fewer = fewer + np.where(drawn < most, 1 - below, 0.0)
        chance = chance * mean / (drawn + 1)
    return fewer


def _further(before: Floats, now: Floats, after: Floats) -> Floats:
    """Return where three that come nearer and nearer to each other lead, by factors (Aitken)."""
    first, second = np.log(now / before), np.log(after / now)
    left = np.clip(second / np.where(first == 0, 1.0, first), 0.0, STEEPEST)
    further: Floats = after * np.exp(second * left / (1 - left))
    return further
