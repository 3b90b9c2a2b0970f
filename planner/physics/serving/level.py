"""The service level of a replica under an open stream of requests: percentiles of TTFT and TPOT by its load.

A replica that decodes D sequences on average answers X requests/s, and the other way round:
    TPOT = T(D) / (1 - X W)        D = X (output - 1) TPOT        so X = D / ((output - 1) T(D) + D W)
T(D) a step of D sequences, W what a prompt adds to steps. A prompt waits for the rest of a step, long ones being met
more often, where the engine chooses batches ahead for all of the next one, and then for others. Those that came in the
same step share the next with it: a step of L draws X L prompts, so that steps of T / (1 - X W) on average vary by
W^2 X L (spread of gaps and lengths) / (1 - (X W)^2). Those that a step has no room for are a queue: rho = X S of the
time prompts are at work, S the share of a step full of prompt tokens that one takes, with the mean wait of Kingman
(1961). The longer of both waits counts, and exceeds t with probability
p exp(-p t / mean). TPOT varies with how many decode beside a request (about D, averaged over the time it takes) and
with the prompts that come meanwhile (`pace.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from planner.layouts.table import Floats
from planner.physics.serving.crowding import STEEPEST, crowding
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.pace import Pace, Prompts, disturbed
from planner.physics.serving.points import least, over_all, points_of
from planner.physics.serving.rates import rates_of
from planner.physics.serving.slots import Joined, joined, slots_of
from planner.physics.serving.step import StepLoad, step_times

LOADS = 32
"""Loads looked at in a round of the search for the one that answers a rate."""
ROUNDS = 2
"""Of how many prompts share a step, and of how long that takes."""
THREE = ((1 / 6, -3**0.5), (2 / 3, 0.0), (1 / 6, 3**0.5))
"""Shares and deviations of three points that stand for a normal distribution (Gauss and Hermite)."""
SHARED = 1 / 2
"""Power of the replicas by which the squared variation of the gaps of one falls: 1 in turn, by replay half of that."""
ROOM = 0.99
"""Share of time in which the cache must hold all who are there."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests: mean tokens, lengths at the points of `points.py`, how uneven lengths and gaps are, cached share."""

    input: float
    output: float
    inputs: tuple[float, ...]
    outputs: tuple[float, ...]
    input_cv: float
    output_cv: float
    gap_cv: float
    hits: float = 0.0
    drafts: int = 0
    """Tokens proposed ahead in a step by speculative decoding."""
    accepted: float = 0.0
    """Probability that a proposed token is right, those before it being so."""
    think: float | None = None
    """Seconds from an answer to the next question of the same user, in a closed loop; none is an open one."""

    @property
    def tokens_per_step(self) -> float:
        """Output tokens of a sequence in a step."""
        a = self.accepted
        return 1.0 if not self.drafts else (1 - a ** (self.drafts + 1)) / (1 - a)

    @property
    def only_reads(self) -> bool:
        """Whether a request ends with its prompt, or with the token that comes of it."""
        return self.output <= 1

    @property
    def in_step(self) -> bool:
        """Whether those who began together also end together, and their prompts begin so, where all are there at once.
        """
        return not self.input_cv and not self.output_cv

    @property
    def context(self) -> float:
        """Tokens in the cache of a sequence that decodes: half way through an answer, long ones being there longer."""
        return self.input + self.output * (1 + self.output_cv**2) / 2

    @property
    def behind(self) -> float:
        """Tokens before one of a prompt that is computed, on average."""
        return self.input * (1 + self.hits) / 2

    @property
    def prompt(self) -> float:
        """Prompt tokens that no cache holds."""
        return max(1.0, self.input * (1 - self.hits))


def stream_of(inputs: Callable[[float], float], outputs: Callable[[float], float], *, input: float, output: float,
              input_cv: float, output_cv: float, gap_cv: float, hits: float, drafts: int, accepted: float,
              think: float | None = None) -> Stream:
    """Return a stream whose lengths have those quantiles; `input` and `output` are means, which long tails draw up."""
    return Stream(input, output, points_of(inputs), points_of(outputs), input_cv, output_cv, gap_cv, hits, drafts,
                  accepted, think)


@dataclass(frozen=True, slots=True)
class Served:
    """What a replica does at a load, for each row: rates a second, shares of time, seconds."""

    batch: Floats
    """Sequences that decode on average."""
    rate: Floats
    step: Floats
    prompts: Floats
    """Share of the time that prompts are at work."""
    rest: Floats
    """Seconds of the step that a prompt meets on its arrival; it waits for a part of it."""
    waits: Floats
    """Share of prompts that wait for others."""
    wait: Floats
    """Mean wait for other prompts."""
    own: Floats
    """Seconds of a mean prompt's own steps, with what a request takes before."""
    each: Floats
    """The same of each of the stream's lengths, one column each."""
    pace: Pace
    crowd: Floats
    """Sequences there at once in all but a hundredth of the time."""
    think: float | None = None
    """Of the users of a closed loop."""

    @property
    def carried(self) -> Floats:
        """What the load is counted in: requests/s, or of a closed loop its users (Little's law)."""
        return self.rate if self.think is None else self.rate * (self.e2e_at(None) + self.think)

    @property
    def tpot(self) -> Floats:
        """Mean seconds between tokens."""
        return self.pace.mean

    def ttft_at(self, quantile: float | None) -> Floats:
        """Return seconds to the first token that a share of requests stay within; the mean for None."""
        if quantile is None:
            return self.wait + self.own + self.rest / 2
        return least(self.within, quantile, 20 * (self.wait + self.rest) / (1 - quantile) + self.each.max(axis=1))

    def within(self, seconds: Floats) -> Floats:
        """Return the share of requests that have their first token within so many seconds."""
        tail = np.maximum(self.wait / np.maximum(self.waits, 1e-9), 1e-9)[:, None]
        rest, share = np.maximum(self.rest, 1e-9)[:, None], self.waits[:, None]
        # a part of the step, even over all of it, and a wait that falls off exponentially
        past = np.maximum(seconds[:, None] - self.each, 0.0)
        met = np.minimum(past, rest)
        missed = share * tail * (np.exp((met - past) / tail) - np.exp(-past / tail))
        return over_all((met - missed) / rest)

    def whole_within(self, seconds: Floats) -> Floats:
        """Return the share of requests whose last token is there within so many seconds."""
        mean, deviation = self.pace.answer
        parts = [share * self.within_each(seconds[:, None] - mean - at * deviation) for share, at in THREE]
        within: Floats = over_all(np.sum(parts, axis=0))
        return within

    def within_each(self, seconds: Floats) -> Floats:
        """Return the share with their first token within seconds that have a column for each length of answers."""
        return np.stack([self.within(column) for column in seconds.T], axis=1)

    def e2e_at(self, quantile: float | None) -> Floats:
        """Return seconds to the last token that a share of requests stay within; the mean for None."""
        mean, deviation = self.pace.answer
        if quantile is None:
            return self.ttft_at(None) + over_all(mean)
        most = self.ttft_at(quantile) + (mean + 20 * deviation).max(axis=1)
        return least(self.whole_within, quantile, 2 * most)

    def tpot_at(self, quantile: float | None) -> Floats:
        """Return seconds between tokens that a share of requests stay within; the mean for None."""
        return self.tpot if quantile is None else self.pace.at(quantile)


def served(d: Deployment, rows: Replicas, stream: Stream, batch: Floats) -> Served:
    """Return what each row does while it decodes `batch` sequences on average."""
    zero, many = np.zeros(len(rows)), np.maximum(batch, 1.0)
    context, behind = (np.full(len(rows), tokens) for tokens in (stream.context, stream.behind))
    on, slots = rates_of(d, rows), slots_of(d, rows, stream.prompt, batch)

    def step(sequences: Floats, prompt: Floats, at_work: Floats | float = np.inf) -> Floats:
        load = StepLoad(sequences, context, prompt, behind, 1.0 + stream.drafts, at_work)
        return step_times(d, rows, load, on).total

    plain, gain, later = step(many, zero), stream.tokens_per_step, max(stream.output - 1, 1.0)
    beside = zero if d.engine.prefill_first else many
    base = zero if d.engine.prefill_first else plain

    def filled(prompts: Floats) -> tuple[Floats, Floats]:
        tokens, at_work = slots.filled(prompts)
        mixed = slots.beside_others(d.engine, at_work, step(beside, tokens, at_work), plain)
        return mixed, slots.added(d.engine, prompts, at_work, mixed, plain)

    def rate_at(added: Floats) -> Floats:
        return batch / (later * plain / gain + batch * added)

    full, (lone, cost) = step(beside, d.engine.chunk * slots.count), filled(slots.fewest)
    known, mixed, together = [(slots.fewest, lone), (slots.at_once, full)], lone, Joined(slots.fewest, zero, zero)
    for _ in range(ROUNDS):
        together = joined(slots, d.engine, plain, known, rate_at)
        mixed, cost = filled(together.prompts)
        known = [known[0], (together.prompts, mixed), known[-1]]
    # who waits for others is worked on with them
    slots, alone = slots.gathered(together.prompts), np.where(slots.held > 0, together.prompts, slots.fewest)
    lone, rate = filled(alone)[0] if slots.held.any() else lone, rate_at(cost)
    busy = np.minimum(rate * cost, STEEPEST)
    mean = np.minimum(plain * (1 - busy) + mixed * busy if d.engine.prefill_first else plain / (1 - busy), mixed)
    service = stream.prompt / (d.engine.chunk * slots.count) * full
    prompts = np.minimum(rate * service, 1 - 1e-6)
    # a step that has room for one prompt alone is met by none while it works: that wait is the queue's
    shared = 1 - 1 / slots.at_once
    rest = plain + shared * (mean - plain)
    longer = shared * (meeting(stream, rate, mean, cost, mixed) - mean)
    # where gaps are uneven, a prompt comes with others; who comes to another copy or stage is not before it
    came = np.maximum(rate * (rest + longer) + stream.gap_cv**2 - 1, 0.0)
    met, joint = came / slots.count, filled(np.maximum(1 + came, alone))[0]
    others, queue = joint - lone + longer / 2, waiting(stream.gap_cv, stream.input_cv, prompts, service)
    wait = np.maximum(queue, others)
    # the more uneven prompts are beside their gaps, the fewer wait, and the longer
    meets = np.maximum(-np.expm1(-met), busy) / (1 + stream.input_cv**2 / max(stream.gap_cv**2, 1.0))
    # those who wait for a step wait no longer than one takes
    meets = np.maximum(meets, others / joint)
    waits = (queue * prompts + others * meets) / np.maximum(queue + others, 1e-12)
    lengths = np.array(stream.inputs) * (1 - stream.hits)
    share = lengths[None, :] / stream.prompt
    chunks = np.maximum(1.0, np.ceil(lengths / d.engine.chunk))[None, :]
    own = d.engine.request + (1 + (chunks - 1) / rows.pp[:, None]) * base[:, None]
    own = own + share * (slots.passes * (lone - base))[:, None]
    # while others decode the next step may be chosen already, and one waits for that too
    left, chosen = np.maximum(1 - rate * cost, 1 - STEEPEST), d.steps_ahead(rows) * mean * -np.expm1(-batch)
    # users who wait for an answer ask no more until they have it
    answer = over_all(own) + chosen + wait + later * plain / gain / left
    asks = zero if stream.think is None else answer / max(stream.think, 1e-9)
    spread = crowding(stream.gap_cv, batch, lambda sequences: step(sequences, zero) / gain, left, asks)
    # prompts that come while a step has some go into the next together
    shared_cost = filled(np.clip(1 + rate * slots.passes * mixed, alone, slots.at_once))[1]
    others_prompts = Prompts(
        rate, cost, np.minimum(shared_cost, cost),
        # who comes before one's own step begins is taken into it, where it has room
        np.where(queue > others, queue, others * (1 - shared)), waits,
        over_all(own) - d.engine.request + (1 - shared) * rest / 2,
        None if d.engine.prefill_first else full / gain, stream.gap_cv**2, stream.input_cv**2)
    pace = disturbed(spread.token, spread.deviation, np.maximum(np.array(stream.outputs) - 1, 1.0), others_prompts)
    # prompts that came behind one's own draw out the answer
    extra = rate**2 * cost * (others_prompts.wait + others_prompts.work) / left
    crowd = batch + extra + NormalDist().inv_cdf(ROOM) * np.sqrt(spread.variance)
    extra = extra + spread.more
    # of those that wait for others each does as long as the first in part, and the rest of it evenly
    own, rest = own + (together.least + chosen)[:, None], np.maximum(rest, 2 * (together.wait - together.least))
    return Served(batch + extra, rate, plain, prompts, rest, waits, wait, over_all(own), own, pace, crowd, stream.think)


def meeting(stream: Stream, rate: Floats, mean: Floats, cost: Floats, most: Floats) -> Floats:
    """Return seconds of the step that a prompt meets on its arrival, of steps of `mean` seconds.

    cost: what a prompt adds; most: of a step as full as steps are.
    """
    busy, spread = np.minimum(rate * cost, STEEPEST), stream.gap_cv**2 + stream.input_cv**2
    met: Floats = np.clip(mean + cost**2 * rate * spread / (1 - busy**2), mean, np.maximum(most, mean))
    return met


def waiting(gap_cv: float, work_cv: float | Floats, busy: Floats, service: Floats) -> Floats:
    """Return the mean wait of a prompt for others that are at work a share `busy` of the time (Kingman 1961).

    By how uneven the gaps between them are, and the work of each. Of gaps more uneven than at random prompts come in
    bursts, and wait for each other however few they are in all: by replay in proportion to the root of that share.
    """
    gaps = gap_cv**2
    uneven = busy * (min(gaps, 1.0) + work_cv**2) + np.sqrt(busy) * max(gaps - 1, 0.0)
    mean: Floats = uneven / 2 / (1 - busy) * service
    return mean


def evened(gap_cv: float, replicas: float) -> float:
    """Return how uneven the gaps are between the requests of one of several replicas behind a router.

    Who gets every n-th request has n of their gaps between its own, whose squared variation is an n-th of theirs. A
    router that goes by how many are there sends several where several end together.
    """
    return float(gap_cv / max(replicas, 1.0) ** (SHARED / 2))


def at_rate(work: Callable[[Floats], Served], rate: float, low: float, high: float) -> Served:
    """Return what one layout does at a rate, or with so many users: `work` at the load, between two, of as many."""
    for _ in range(3):
        steps = np.geomspace(low, max(high, 1.001 * low), LOADS)
        at = int(np.clip(np.searchsorted(work(steps).carried, rate), 1, len(steps) - 1))
        low, high = float(steps[at - 1]), float(steps[at])
    return work(np.array([(low + high) / 2]))
