"""Steady states of continuous batching: a static batch, a closed loop at a concurrency, and the offline maximum.

An engine that is never idle gives every request W seconds for its prompt and a D-th part of each of its decode steps:
    rate X = 1 / (W + (output - 1) T(D) / D)        TPOT = T(D) + D W / (output - 1)
with T(D) a step of D decoding sequences, and W what a prompt adds to the steps it runs in. In a closed loop of C
clients D = C - X TTFT; offline D is what the cache or the engine's limit holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from planner.layouts.table import Floats
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.points import SHARES, lognormal, points_of
from planner.physics.serving.step import Load, step_times

ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Demand:
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
    """Requests of a run whose prompts are all there at its start, for each row."""

    @property
    def context(self) -> Floats:
        """Tokens in the cache of a sequence that decodes: half way through an answer, long ones being there longer."""
        return self.input + self.output * (1 + self.output_cv**2) / 2

    @property
    def behind(self) -> Floats:
        """Tokens before one of a prompt that is computed, on average; long prompts have more such tokens."""
        return self.input * (1 + self.input_cv**2) * (1 + self.hits) / 2

    @property
    def prompt(self) -> Floats:
        """Prompt tokens that no cache holds."""
        return np.maximum(1.0, self.input * (1 - self.hits)) if self.hits else self.input

    @property
    def gain(self) -> float:
        """Tokens of a sequence in a step."""
        return 1.0 if not self.drafts else (1 - self.accepted ** (self.drafts + 1)) / (1 - self.accepted)


@dataclass(frozen=True, slots=True)
class Service:
    """What one replica does: requests/s, output tokens/s, mean seconds to the first token and between tokens."""

    requests: Floats
    tokens: Floats
    ttft: Floats
    tpot: Floats
    batch: Floats
    own: Floats
    """Mean seconds of a prompt's own steps, which grow with its length."""


def decode_step(d: Deployment, rows: Replicas, demand: Demand, batch: Floats) -> Floats:
    """Return seconds for a token of each of `batch` sequences, half way through their outputs."""
    found: Floats = mixed_step(d, rows, demand, batch, np.zeros(len(rows))) / demand.gain
    return found


def mixed_step(d: Deployment, rows: Replicas, demand: Demand, batch: Floats, prompt: Floats) -> Floats:
    """Return seconds of a step that has `prompt` prompt tokens beside `batch` decoding sequences."""
    load = Load(batch, demand.context, prompt, demand.behind, 1.0 + demand.drafts)
    return step_times(d, rows, load).total


def step_and_prompt(d: Deployment, rows: Replicas, demand: Demand, batch: Floats) -> tuple[Floats, Floats, Floats]:
    """Return seconds for a token of `batch` sequences, those that a prompt adds to its steps, and those steps whole."""
    # every copy of attention and every stage works on a prompt of its own
    copies = (rows.dp * rows.pp).astype(np.float64)
    each, many = np.minimum(d.engine.chunk, demand.prompt), len(rows)
    beside = np.zeros(many) if d.engine.prefill_first else batch
    both = np.tile(np.arange(many), 2)
    twice = replace(demand, input=demand.input[both], output=demand.output[both], clients=demand.clients[both])
    # both kinds of step in one table
    found = mixed_step(d, rows.take(both), twice, np.concatenate([batch, beside]),
                       np.concatenate([np.zeros(many), each * copies]))
    plain, mixed = found[:many], found[many:]
    steps = demand.prompt / each
    added = mixed if d.engine.prefill_first else mixed - plain
    return plain / demand.gain, steps * added / copies, steps * mixed


def static(d: Deployment, rows: Replicas, demand: Demand, most: Floats) -> Service:
    """Return what a batch of `clients` gives whose prompts come first, all at once; at most `most` run together."""
    batch = np.minimum(demand.clients, np.maximum(1.0, most))
    turns = demand.clients / batch
    copies = np.minimum((rows.dp * rows.pp).astype(np.float64), batch)
    whole = batch / copies * demand.input
    each = np.minimum(d.engine.chunk, whole)
    first = whole / each * mixed_step(d, rows, demand, np.zeros(len(rows)), each * copies)
    tpot = decode_step(d, rows, demand, batch)
    latency = turns * (first + (demand.output - 1) * tpot)
    rate = demand.clients / latency
    return Service(rate, rate * demand.output, first + d.engine.request, tpot, batch, first)


def closed(d: Deployment, rows: Replicas, demand: Demand, most: Floats) -> Service:
    """Return the steady state of `clients` that each ask again when answered; at most `most` sequences run."""
    most = np.maximum(1.0, most)
    batch = np.minimum(demand.clients, most)
    for _ in range(ROUNDS):
        step, added, whole = step_and_prompt(d, rows, demand, batch)
        later = np.maximum(demand.output - 1, 1.0)
        rate = 1 / (added + later * step / batch)
        ahead = d.engine.burst * np.maximum(0.0, np.minimum(demand.clients, most) - 1) * added
        ttft = d.engine.request + whole + step / 2 + ahead
        held = np.minimum(np.maximum(demand.clients - rate * ttft, demand.clients * 0.02), most)
        batch = np.maximum(0.5 * batch + 0.5 * held, 0.5)
    tpot = step + batch * added / later
    waiting = np.maximum(0.0, demand.clients - most) / rate
    return Service(rate, rate * demand.output, ttft + waiting, tpot, batch, whole)


def offline(d: Deployment, rows: Replicas, demand: Demand, most: Floats) -> Service:
    """Return the maximum with every request queued: `most` sequences run.

    A run of N requests has that rate until the last `most` are left, whose batch shrinks as answers end: where their
    lengths vary, a few long ones run on alone.
    """
    batch = np.clip(demand.prompts, 1.0, np.maximum(1.0, most))
    step, added, whole = step_and_prompt(d, rows, demand, batch)
    later = np.maximum(demand.output - 1, 1.0)
    rate = 1 / (added + later * step / batch)
    if np.any(np.isfinite(demand.prompts)):
        requests = np.where(np.isfinite(demand.prompts), demand.prompts, np.inf)
        emptied = batch * added + _emptying(d, rows, demand, batch)
        with np.errstate(invalid="ignore"):
            finite = requests / ((requests - batch) / rate + emptied)
        rate = np.where(np.isfinite(requests), finite, rate)
    return Service(rate, rate * demand.output, whole, step + batch * added / later, batch, whole)


def _emptying(d: Deployment, rows: Replicas, demand: Demand, batch: Floats) -> Floats:
    """Return seconds in which a batch that takes nobody new decodes all of its answers, lengths lognormal."""
    later, took, before, running = np.maximum(demand.output - 1, 1.0), np.zeros(len(rows)), 0.0, 1.0
    lengths = (1.0,) if not demand.output_cv else points_of(partial(lognormal, demand.output_cv))
    for length, share in zip(lengths, SHARES if demand.output_cv else (1.0,), strict=True):
        took = took + (length - before) * later * decode_step(d, rows, demand, np.maximum(batch * running, 1.0))
        before, running = length, running - share
    return took
