"""Steady states of continuous batching: a static batch, a closed loop at a concurrency, and the offline maximum.

An engine that is never idle gives every request W seconds for its prompt and a D-th part of each of its decode steps:
    rate X = 1 / (W + (output - 1) T(D) / D)        TPOT = T(D) + D W / (output - 1)
with T(D) a step of D decoding sequences, and W what a prompt adds to the steps it runs in. In a closed loop of C
clients D = C - X TTFT, of those who run: no more than the cache or the engine's limit holds, which is C offline. No
token takes longer than a step that is full of prompts; who then does not decode waits for the first
(`first_tokens.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from planner.layouts.table import Floats, Ints
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.first_tokens import Loop, first_token
from planner.physics.serving.points import SHARES, lognormal, points_of
from planner.physics.serving.slots import Joined, Slots, joined, slots_of
from planner.physics.serving.step import StepLoad, step_times

ROUNDS = 6


@dataclass(frozen=True, slots=True)
class RequestMix:
    """Requests alike, for each row: prompt and output tokens, and how many clients or sequences in a batch."""

    input: Floats
    output: Floats
    clients: Floats
    drafts: int = 0
    """Tokens proposed ahead in a step."""
    accepted: float = 0.0
    """Probability that one is right, those before it being so."""
    hits: float = 0.0
    """Share of prompt tokens that a cache holds; lengths are then means of requests whose spread follows."""
    input_cv: float = 0.0
    output_cv: float = 0.0
    prompts: Floats | float = np.inf
    """Requests of a run that starts with as many as may run at once, for each row."""
    scheduled: int = 1
    """Steps that are scheduled at once, so that who comes waits for half of them."""
    in_step: bool = False
    """Whether prompts of all copies and stages begin together: those who began together end together where answers are
    alike, and some engines have them wait for each other.
    """
    waves: bool = False
    """Whether clients whose lengths are all alike ask in step with each other."""

    @property
    def context(self) -> Floats:
        """Tokens in the cache of a sequence that decodes: half way through an answer, long ones being there longer."""
        return self.input + self.output * (1 + self.output_cv**2) / 2

    @property
    def behind(self) -> Floats:
        """Tokens before one of a prompt that is computed, on average; long prompts have more such tokens."""
        return self.input * (1 + self.input_cv**2) * (1 + self.hits) / 2

    @property
    def spread(self) -> bool:
        """Whether lengths differ."""
        return self.input_cv > 0 or self.output_cv > 0

    @property
    def prompt(self) -> Floats:
        """Prompt tokens that no cache holds."""
        return np.maximum(1.0, self.input * (1 - self.hits)) if self.hits else self.input

    @property
    def gain(self) -> float:
        """Tokens of a sequence in a step."""
        return 1.0 if not self.drafts else (1 - self.accepted ** (self.drafts + 1)) / (1 - self.accepted)


@dataclass(frozen=True, slots=True)
class SteadyState:
    """What one replica does: requests/s, output tokens/s, mean seconds to the first token and between tokens."""

    requests: Floats
    tokens: Floats
    ttft: Floats
    tpot: Floats
    batch: Floats
    own: Floats
    """Mean seconds of a prompt's own steps, which grow with its length."""

    def take(self, rows: Ints) -> SteadyState:
        """Return those of the chosen rows."""
        return SteadyState(*(getattr(self, f.name)[rows] for f in fields(self)))


def decode_step(d: Deployment, rows: Replicas, demand: RequestMix, batch: Floats) -> Floats:
    """Return seconds for a token of each of `batch` sequences, half way through their outputs."""
    step: Floats = mixed_step(d, rows, demand, batch, np.zeros(len(rows))) / demand.gain
    return step


def mixed_step(d: Deployment, rows: Replicas, demand: RequestMix, batch: Floats, prompt: Floats,
               on: Floats | float = np.inf) -> Floats:
    """Return seconds of a step that has `prompt` prompt tokens beside `batch` decoding sequences, on so many slots."""
    load = StepLoad(batch, demand.context, prompt, demand.behind, 1.0 + demand.drafts, on)
    return step_times(d, rows, load).total


@dataclass(frozen=True, slots=True)
class MixedSteps:
    """Steps of a batch that takes prompts, for each row, in seconds."""

    token: Floats
    """Of a token of every sequence."""
    plain: Floats
    """A step without prompts."""
    mixed: Floats
    """A step that some prompts share."""
    added: Floats
    """What a prompt adds to the steps that it shares."""
    alone: Floats
    """The steps of a prompt that shares them with none, whole."""


def steps_of(d: Deployment, rows: Replicas, demand: RequestMix, batch: Floats, together: Floats) -> MixedSteps:
    """Return the steps of `batch` sequences where `together` prompts on average share one that has some."""
    slots, many = _slots(d, rows, demand, batch), len(rows)
    together = np.clip(together, slots.fewest, slots.at_once)
    # who waits for others is worked on with them
    first = np.where(slots.held > 0, together, 1.0)
    beside = np.zeros(many) if d.engine.prefill_first else batch
    thrice = np.tile(np.arange(many), 3)
    alike = replace(demand, input=demand.input[thrice], output=demand.output[thrice], clients=demand.clients[thrice])
    (lone, on_lone), (shared, on) = slots.filled(first), slots.filled(together)
    # all kinds of step in one table
    seconds = mixed_step(d, rows.take(thrice), alike, np.concatenate([batch, beside, beside]), np.concatenate(
        [np.zeros(many), lone, shared]), np.concatenate([on, on_lone, on]))
    plain, alone, mixed = seconds[:many], seconds[many:2 * many], seconds[2 * many:]
    alone, mixed = (slots.beside_others(d.engine, at, step, plain) for at, step in ((on_lone, alone), (on, mixed)))
    return MixedSteps(plain / demand.gain, plain, mixed, slots.added(d.engine, together, on, mixed, plain),
                      slots.passes * alone)


def _slots(d: Deployment, rows: Replicas, demand: RequestMix, batch: Floats) -> Slots:
    return slots_of(d, rows, demand.prompt, batch, in_step=demand.in_step)


def _round(d: Deployment, rows: Replicas, demand: RequestMix, batch: Floats, together: Floats
           ) -> tuple[MixedSteps, Floats, Joined]:
    """Return the steps of a batch that is never empty, the requests/s that it answers, and the prompts that then share
    a step.
    """
    steps, slots = steps_of(d, rows, demand, batch, together), _slots(d, rows, demand, batch)

    def rate(added: Floats) -> Floats:
        return 1 / (added + np.maximum(demand.output - 1, 1.0) * steps.token / batch)

    known = (slots.fewest, steps.alone / slots.passes), (np.clip(together, slots.fewest, slots.at_once), steps.mixed)
    return steps, rate(steps.added), joined(slots, d.engine, steps.plain, known, rate)


def static(d: Deployment, rows: Replicas, demand: RequestMix, most: Floats) -> SteadyState:
    """Return what a batch of `clients` gives whose prompts come first, all at once; at most `most` run together."""
    batch = np.minimum(demand.clients, np.maximum(1.0, most))
    turns = demand.clients / batch
    copies = np.minimum((rows.dp * rows.pp).astype(np.float64), batch)
    whole = batch / copies * demand.input
    each = np.minimum(d.engine.chunk, whole)
    first = whole / each * mixed_step(d, rows, demand, np.zeros(len(rows)), each * copies, copies)
    tpot = decode_step(d, rows, demand, batch)
    latency = turns * (first + (demand.output - 1) * tpot)
    rate = demand.clients / latency
    # the engine is called in its own process: no server takes its part of the first token
    return SteadyState(rate, rate * demand.output, first, tpot, batch, first)


def closed(d: Deployment, rows: Replicas, demand: RequestMix, most: Floats) -> SteadyState:
    """Return what `clients` that each ask again when answered find; at most `most` sequences run.

    Times are those of the steady state, the rate that of the whole run.
    """
    demand = replace(demand, clients=np.minimum(demand.clients, demand.prompts))
    running = np.minimum(demand.clients, np.maximum(1.0, most))
    batch, together, later = running, np.full(len(rows), np.inf), np.maximum(demand.output - 1, 1.0)
    answer = np.maximum(demand.output - 1, 0.0)
    whole = mixed_step(d, rows, demand, running, d.engine.chunk * (rows.dp * rows.pp).astype(np.float64))
    # no token takes longer than a step that is full of prompts: more of them wait ahead of their first
    full = np.inf if d.engine.prefill_first else whole / demand.gain
    slots, ahead = _slots(d, rows, demand, running), d.steps_ahead(rows)
    for _ in range(ROUNDS):
        steps, rate, shared = _round(d, rows, demand, batch, together)
        together, loop = shared.prompts, Loop(slots, running, batch, rate, steps.plain, steps.added, whole, steps.alone,
                                              ahead, demand.scheduled, demand.spread)
        ttft = first_token(d, loop, waves=demand.waves) + shared.wait
        # nobody is disturbed by prompts of their own
        rate = np.minimum(rate, running / (ttft + answer * steps.token))
        # who reads a prompt has a place too; while any decode, one does at least
        held = np.clip(running - rate * ttft, 1.0, np.maximum(rate * later * full, 1.0))
        batch = np.where(answer > 0, 0.5 * batch + 0.5 * held, running)
    tpot = np.clip((running / rate - ttft) / later, steps.token, full)
    # Little's law: of those who run, all who do not decode wait for their first token, and the others for a place
    ttft = np.maximum(demand.clients / rate - answer * tpot, ttft)
    rate = _whole_run(d, rows, demand, running, rate)
    return SteadyState(rate, rate * demand.output, ttft, tpot, batch, steps.alone)


def offline(d: Deployment, rows: Replicas, demand: RequestMix, most: Floats) -> SteadyState:
    """Return the maximum with every request queued: `most` sequences run."""
    running = np.clip(demand.prompts, 1.0, np.maximum(1.0, most))
    batch, together, later = running, np.full(len(rows), np.inf), np.maximum(demand.output - 1, 1.0)
    for _ in range(ROUNDS // 2 + 1):
        steps, rate, shared = _round(d, rows, demand, batch, together)
        together, batch = shared.prompts, np.maximum(running - rate * (steps.alone + shared.wait), 1.0)
    rate = _whole_run(d, rows, demand, running, rate)
    return SteadyState(rate, rate * demand.output, steps.alone, steps.token + batch * steps.added / later, batch,
                       steps.alone)


def _whole_run(d: Deployment, rows: Replicas, demand: RequestMix, batch: Floats, rate: Floats) -> Floats:
    """Return the requests/s of a run of N requests over all of its time, of which `rate` is the steady part.

    A batch of B is emptied as answers end: where their lengths vary, a few long ones run on alone. While it fills and
    empties steps with fewer sequences take what they take with any; in the last of N/B waves of answers alike they
    take what they take with those that are left.
    """
    short = np.isfinite(demand.prompts)
    if not np.any(short):
        return rate
    requests, later = np.where(short, demand.prompts, batch), np.maximum(demand.output - 1, 1.0)
    # the first prompts are all there, so that they share whole steps
    whole = _slots(d, rows, demand, batch).at_once
    emptied = batch * steps_of(d, rows, demand, batch, whole).added + _emptying(d, rows, demand, batch)
    # share of an answer's time in which the batch fills; with prompts first, nobody decodes until it is full
    full = batch * demand.prompt / d.engine.chunk / (rows.dp * rows.pp)
    filling = 0.0 if d.engine.prefill_first else np.minimum(1.0, full * demand.gain / later)
    last = requests - batch * np.floor(requests / batch)
    alike = 0.0 if demand.output_cv else np.where(last > 0, decode_step(d, rows, demand, np.maximum(last, 1.0))
                                                  - last / batch * decode_step(d, rows, demand, batch), 0.0)
    fewer = later * (filling * decode_step(d, rows, demand, np.ones(len(rows))) + (1 - filling) * alike)
    return np.where(short, requests / ((requests - batch) / rate + emptied + fewer), rate)


def _emptying(d: Deployment, rows: Replicas, demand: RequestMix, batch: Floats) -> Floats:
    """Return seconds in which a batch that takes nobody new decodes all of its answers, lengths lognormal."""
    later, took, before, running = np.maximum(demand.output - 1, 1.0), np.zeros(len(rows)), 0.0, 1.0
    lengths = points_of(partial(lognormal, demand.output_cv)) if demand.output_cv else (1.0,)
    for length, share in zip(lengths, SHARES if demand.output_cv else (1.0,), strict=True):
        took = took + (length - before) * later * decode_step(d, rows, demand, np.maximum(batch * running, 1.0))
        before, running = length, running - share
    return took
