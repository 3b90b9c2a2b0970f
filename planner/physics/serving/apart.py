"""Prefill and decode on replicas of their own: the largest rate of each, and what sending the cache takes."""

from __future__ import annotations

import numpy as np

from planner.layouts.table import Floats
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.level import Served, Stream
from planner.physics.serving.step import Load, step_times

GRID = 64
BUSIEST = 0.98


def sending(d: Deployment, rows: Replicas, tokens: float) -> Floats:
    """Return seconds to send the cache of that many prompt tokens from one replica to another, over its adapters."""
    width = sum((layer.count * layer.cached_width(rows.tp) for layer in d.layers), np.zeros(len(rows)))
    nics = np.array([c.nic_bandwidth * c.fabric.efficiency for c in d.candidates])[rows.candidate]
    took: Floats = tokens * width * d.element / rows.pp / nics
    return took


def prefilled(d: Deployment, rows: Replicas, stream: Stream,
              ttft: tuple[float, float | None] | None) -> tuple[Floats, Floats]:
    """Return the largest rate of prompts within the level on each row, and the share of time that they are at work."""
    zero = np.zeros(len(rows))
    copies = (rows.dp * rows.pp).astype(np.float64)
    chunk = np.full(len(rows), float(d.engine.chunk)) * copies
    behind, context = np.full(len(rows), stream.input / 2), np.full(len(rows), stream.input)

    def step(prompt: Floats) -> Floats:
        return step_times(d, rows, Load(zero, context, prompt, behind)).total

    each = np.minimum(stream.prompt * copies, chunk)
    service = np.minimum(stream.prompt / chunk * step(chunk), stream.prompt / each * step(each))
    lengths = np.array(stream.inputs) * (1 - stream.hits)
    own = d.engine.request + (lengths / stream.prompt)[None, :] * (stream.prompt * copies / each * step(each))[:, None]
    rate, busy = np.zeros(len(rows)), np.zeros(len(rows))
    for share in np.linspace(BUSIEST / GRID, BUSIEST, GRID):
        prompts = np.full(len(rows), share)
        wait = prompts / (1 - prompts) * (stream.gap_cv**2 + stream.input_cv**2) / 2 * service
        found = Served(prompts, prompts / service, service, prompts, wait, own.mean(axis=1), own, zero, zero, zero)
        good = np.ones(len(rows), bool) if ttft is None else found.ttft_at(ttft[1]) <= ttft[0]
        rate, busy = np.where(good, found.rate, rate), np.where(good, share, busy)
    return rate, busy


def decoded(d: Deployment, rows: Replicas, stream: Stream, tpot: tuple[float, float | None] | None,
            most: Floats) -> tuple[Floats, Floats]:
    """Return the largest rate of answers within the level on each row, and the sequences that decode."""
    zero, later = np.zeros(len(rows)), max(stream.output - 1, 1.0)
    context = np.full(len(rows), stream.input + stream.output / 2)
    sent = sending(d, rows, stream.prompt) / later
    rate, batch = np.zeros(len(rows)), np.zeros(len(rows))
    for share in np.geomspace(1 / GRID, 1, GRID):
        many = share * most

        def step(sequences: Floats) -> Floats:
            return step_times(d, rows, Load(np.maximum(sequences, 1.0), context, zero, zero, 1.0 + stream.drafts)).total

        crowd = many + 2.33 * np.sqrt(many)
        took = step(many) / stream.tokens_per_step + sent
        wide = step(many + np.sqrt(many)) / stream.tokens_per_step + sent - took
        found = Served(many, many / (later * took), took, zero, zero, zero, zero[:, None], took, wide, crowd)
        good = crowd <= most
        if tpot is not None:
            good &= found.tpot_at(tpot[1]) <= tpot[0]
        rate, batch = np.where(good, found.rate, rate), np.where(good, many, batch)
    return rate, batch
