"""Prefill and decode on replicas of their own: what each does at a load, and what sending the cache takes."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from planner.layouts.table import Floats
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.level import ROOM, Served, Stream, waiting
from planner.physics.serving.pace import undisturbed
from planner.physics.serving.points import over_all
from planner.physics.serving.step import Load, step_times


def sending(d: Deployment, rows: Replicas, tokens: float) -> Floats:
    """Return seconds to send the cache of that many prompt tokens from one replica to another, over its adapters."""
    width = sum((layer.count * layer.cached_width(rows.tp) for layer in d.layers), np.zeros(len(rows)))
    nics = np.array([c.nic_bandwidth * c.fabric.efficiency for c in d.candidates])[rows.candidate]
    took: Floats = tokens * width * d.cache.element / rows.pp / nics
    return took


def prefilling(d: Deployment, rows: Replicas, stream: Stream, busy: Floats) -> Served:
    """Return what replicas that only prefill do while prompts are at work a share `busy` of the time."""
    zero = np.zeros(len(rows))
    copies = (rows.dp * rows.pp).astype(np.float64)
    chunk = np.full(len(rows), float(d.engine.chunk)) * copies
    each = np.minimum(stream.prompt * copies, chunk)
    behind = np.full(len(rows), stream.behind)

    def step(prompt: Floats) -> Floats:
        return step_times(d, rows, Load(zero, zero + stream.input, prompt, behind)).total

    alone = step(each)
    service = np.minimum(stream.prompt / chunk * step(chunk), stream.prompt / each * alone)
    lengths = np.array(stream.inputs) * (1 - stream.hits) / stream.prompt
    own = d.engine.request + lengths[None, :] * (stream.prompt * copies / each * alone)[:, None]
    wait = waiting(stream, busy, service)
    return Served(busy, busy / service, service, busy, service, busy, wait, over_all(own), own,
                  undisturbed(zero, zero), zero)


def decoding(d: Deployment, rows: Replicas, stream: Stream, batch: Floats) -> Served:
    """Return what replicas that only decode do with `batch` sequences on average."""
    zero, later = np.zeros(len(rows)), max(stream.output - 1, 1.0)
    context = zero + stream.context
    sent = sending(d, rows, stream.prompt) / later

    def step(sequences: Floats) -> Floats:
        load = Load(np.maximum(sequences, 1.0), context, zero, zero, 1.0 + stream.drafts)
        return step_times(d, rows, load).total / stream.tokens_per_step + sent

    took = step(batch)
    crowd = batch + NormalDist().inv_cdf(ROOM) * np.sqrt(batch)
    deviation = np.maximum(step(batch + np.sqrt(batch)) - took, 0.0)
    return Served(batch, batch / (later * took), took, zero, zero, zero, zero, zero, zero[:, None],
                  undisturbed(took, deviation), crowd)
