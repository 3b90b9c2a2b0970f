"""A closed loop over replicas of two kinds: prompts run on one, answers on the other, the cache is sent between them.

Of C clients some wait for a prefill worker, some are prefilled, the others decode. The workers for prompts are a
station of service s a prompt, s the time of one over the prompts that are worked on at once; all else is a delay Z. Its
response R solves Schweitzer's mean value equation R = s (1 + (C - 1) R / (Z + R)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats
from planner.physics.serving.apart import sending
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.steady import RequestMix, SteadyState, decode_step, mixed_step

ROUNDS = 12


@dataclass(frozen=True, slots=True)
class WorkerPool:
    """Workers of one kind, for each row: the layout of one, and how many there are."""

    rows: Replicas
    count: Floats


def disaggregated(d: Deployment, prefill: WorkerPool, decode: WorkerPool, demand: RequestMix,
                  most: Floats) -> SteadyState:
    """Return the steady state of `clients`, tokens of all decode workers together; each runs at most `most`."""
    nobody, most = np.zeros(len(most)), np.maximum(1.0, most)
    copies = (prefill.rows.dp * prefill.rows.pp).astype(np.float64)
    each = np.minimum(d.engine.chunk, demand.input)
    alone = demand.input / each * mixed_step(d, prefill.rows, demand, nobody, each * copies)
    # short prompts share a step when they queue
    full = demand.input / d.engine.chunk * mixed_step(d, prefill.rows, demand, nobody, d.engine.chunk * copies)
    service = np.minimum(alone, full) / copies / prefill.count
    later = np.maximum(demand.output - 1, 1.0)
    sent = sending(d, prefill.rows, 1.0) * demand.input
    started = d.engine.request + d.law.handover + alone + sent
    batch = np.clip(demand.clients / decode.count, 1.0, most)
    for _ in range(ROUNDS):
        tpot = decode_step(d, decode.rows, demand, batch)
        delay = started + later * tpot
        gap = delay - service * demand.clients
        response = (np.sqrt(gap**2 + 4 * service * delay) - gap) / 2
        rate = demand.clients / (delay + response)
        batch = 0.5 * batch + 0.5 * np.clip(rate * later * tpot / decode.count, 1.0, most)
    # those who find no place to decode wait for one
    held = np.minimum(rate, batch * decode.count / (later * tpot))
    waiting = np.maximum(0.0, demand.clients / held - demand.clients / rate)
    ahead = d.law.handover_burst * np.maximum(0.0, demand.clients - 1) * service
    ttft = started + np.maximum(ahead, response - service) + waiting
    return SteadyState(held, held * demand.output, ttft, tpot, batch, alone)
