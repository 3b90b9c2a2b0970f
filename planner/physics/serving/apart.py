"""Prefill and decode on replicas of their own: what each does at a load, and what sending the cache takes."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from planner.layouts.table import Floats
from planner.physics.serving.crowding import crowding
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.level import ROOM, Served, Stream, waiting
from planner.physics.serving.pace import undisturbed
from planner.physics.serving.points import over_all
from planner.physics.serving.rates import rates_of
from planner.physics.serving.step import StepLoad, step_times

ROUNDS = 4
"""Of the number of prompts that share a step, which depends on how long it takes."""


def sending(d: Deployment, rows: Replicas, tokens: float) -> Floats:
    """Return seconds to send the cache of that many prompt tokens from one replica to another, over its adapters."""
    width = sum((layer.count * layer.cached_width(rows.tp) for layer in d.layers), np.zeros(len(rows)))
    nics = np.array([c.nic_bandwidth * c.fabric.efficiency for c in d.candidates])[rows.candidate]
    took: Floats = tokens * width * d.cache.element / rows.pp / nics
    return took


def prefilling(d: Deployment, rows: Replicas, stream: Stream, busy: Floats) -> Served:
    """Return what replicas that only prefill do while prompts are at work a share `busy` of the time.

    Prompts that wait share a step as far as it has room. Stages of a pipeline work on a step each, one after the other.
    """
    zero, none = np.zeros(len(rows)), np.zeros(len(rows))
    dp, pp = rows.dp.astype(np.float64), rows.pp.astype(np.float64)
    each, behind = min(stream.prompt, float(d.engine.chunk)), zero + stream.behind
    steps, most, on = stream.prompt / each, np.full(len(rows), d.engine.chunk / each), rates_of(d, rows)

    def step(tokens: Floats, before: Floats) -> Floats:
        return step_times(d, rows, StepLoad(none, zero + stream.input, tokens * dp * pp, before), on).total

    # attention makes long prompts longer still
    more = 1 - step(zero + each, zero + stream.hits * stream.input) / step(zero + each, behind)
    lengths = np.array(stream.inputs)[None, :] * (1 - stream.hits) / stream.prompt
    share = lengths * (1 - more[:, None]) + lengths**2 * more[:, None]
    mean, square = over_all(share), over_all(share**2)

    def passing(prompts: Floats) -> Floats:
        return step(np.clip(prompts * each, each, float(d.engine.chunk)), behind) * mean

    lone, full = passing(zero + 1), passing(most)
    service = steps * np.minimum(full / most, lone) / (dp * pp)
    rate = busy / service
    drawn, together = rate * steps, zero + 1
    for _ in range(ROUNDS):
        mixed = passing(together) / pp
        taken = drawn * mixed / -np.expm1(-drawn * mixed)
        together = np.clip(taken / dp, 1.0, most)
    at_work = np.minimum(drawn * mixed / np.maximum(taken, 1.0), 1.0)
    shared = 1 - each / d.engine.chunk
    # long steps are met more often; who comes in one step goes into the next together
    rest = at_work * mixed * (1 + (square / mean**2 - 1) / together)
    met = np.maximum(drawn * rest / dp + stream.gap_cv**2 - 1, 0.0)
    rest = shared * rest
    uneven = np.sqrt(np.maximum(square / mean**2 - 1, 0.0))
    others, queue = passing(1 + met) - lone, waiting(stream.gap_cv, uneven, busy, service)
    wait = queue + shared * (others - queue * rest / np.maximum(rest + queue, 1e-12))
    # of a burst all but the first wait
    alone = (1 - busy) * (1 - np.sqrt(busy) * (1 - 2 / (1 + max(stream.gap_cv**2, 1.0))))
    waits = (queue * (1 - alone) + others * at_work) / np.maximum(queue + others, 1e-12)
    share, stage = share / mean[:, None], (lone / pp)[:, None]
    own = d.engine.request + share * steps * stage + np.minimum(share * steps, 1.0) * (lone[:, None] - stage)
    return Served(busy, rate, mixed, busy, rest, waits, wait, over_all(own), own, undisturbed(zero, zero), zero)


def decoding(d: Deployment, rows: Replicas, stream: Stream, batch: Floats) -> Served:
    """Return what replicas that only decode do with `batch` sequences on average."""
    zero, later = np.zeros(len(rows)), max(stream.output - 1, 1.0)
    context = zero + stream.context
    sent, on = sending(d, rows, stream.prompt) / later, rates_of(d, rows)

    def step(sequences: Floats) -> Floats:
        load = StepLoad(np.maximum(sequences, 1.0), context, zero, zero, 1.0 + stream.drafts)
        return step_times(d, rows, load, on).total / stream.tokens_per_step + sent

    took, spread = step(batch), crowding(stream.gap_cv, batch, step, zero + 1, zero)
    crowd = batch + NormalDist().inv_cdf(ROOM) * np.sqrt(spread.variance)
    return Served(batch + spread.more, batch / (later * took), took, zero, zero, zero, zero, zero, zero[:, None],
                  undisturbed(spread.token, spread.deviation), crowd)
