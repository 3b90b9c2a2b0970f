"""First tokens in a closed loop: what a prompt waits for before its own steps, and who is on the way with it.

Who gets an answer at the end of a step asks again, and is there some time in the next one. The wait is half of that
step, and where an engine chooses batches ahead all of the step behind it (a = 1, else 0). m = T / (1 - X W) is the mean
step, with m X prompts in it, no more than a step holds (K):
    TTFT = request + own steps + start + (1 - 2 burst) ((1/2 + a) m P(somebody decodes) + min(m X, K - 1) W)
    start = burst (C - 1) (W + serial request)
as those who begin together, 2 burst of all requests, wait for half of each other's prompts, and for each other on the
host. That of a release is of runs whose lengths are alike, and so has in it that their clients fall into step, the more
so where prompts go first. Where lengths spread clients are together at the start alone, once in ten requests.

Where all lengths are alike nobody is ever out of step: the C clients ask in a wave, whose prompts take as many steps as
hold them, G = max(1, C passes / K), and each shares its own with min(C, K) - 1 others. Those of one step end in one
step, a step behind those before them. Without prompts steps are short: while the first ask again, and before their
prompts begin, h = request / T + 1/2 + a steps of others end, whose prompts then queue. From then on one step's end as
another's begin, so that a prompt waits for h steps that are full, or for as many as there are before it:
    h - h (h + 1) / (2 G), or (G - 1) / 2 where the wave is over by then
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats
from planner.physics.serving.crowding import STEEPEST
from planner.physics.serving.deployment import Deployment
from planner.physics.serving.slots import Slots


@dataclass(frozen=True, slots=True)
class Loop:
    """A closed loop on each row: seconds of steps, and who is there."""

    slots: Slots
    running: Floats
    """Clients, no more than run at once."""
    batch: Floats
    """Of them who decode."""
    rate: Floats
    plain: Floats
    """Of a step without prompts."""
    added: Floats
    """What a prompt adds to the steps that it shares."""
    full: Floats
    """Of a step that is full of prompts."""
    own: Floats
    """Of all the steps of a prompt that shares them with none."""
    ahead: Floats
    """Steps that are chosen before one can be in them."""
    scheduled: int
    """Steps that are chosen at once."""
    spread: bool
    """Whether lengths differ."""


def first_token(d: Deployment, loop: Loop, *, waves: bool) -> Floats:
    """Return the mean seconds to the first token; waves: whether all lengths are alike, with no end to the loop."""
    others = np.maximum(0.0, loop.running - 1)
    # half of the share of requests that come with all others, where nothing else brings them together
    burst = min(d.engine.burst, 1 / (2 * d.law.asks)) if loop.spread else d.engine.burst
    start = burst * others * (loop.added + d.law.serial * d.engine.request)
    waited = _in_waves(loop, d.engine.request) if waves else _spread(loop)
    later = max(0.0, 1 - 2 * burst)
    seconds: Floats = d.engine.request + loop.own + later * waited + start
    return seconds


def _spread(loop: Loop) -> Floats:
    """Return the wait, and what others add to a prompt's own steps, where clients ask at any time."""
    busy = np.minimum(loop.rate * loop.added, STEEPEST)
    mean = np.minimum(loop.plain / (1 - busy), np.maximum(loop.full, loop.plain))
    beside = np.minimum(loop.rate * mean, np.maximum(loop.slots.at_once - 1, 0.0)) * loop.added
    decodes = -np.expm1(-(loop.running - 1) * np.clip(loop.batch / loop.running, 0.0, 1.0))
    waited: Floats = (loop.scheduled / 2 + loop.ahead) * mean * decodes + beside
    return waited


def _in_waves(loop: Loop, request: float) -> Floats:
    """Return the same where all clients ask in a wave."""
    held = loop.slots.at_once / loop.slots.passes
    wave = np.maximum(1.0, loop.running / held)
    late = request / loop.plain + loop.scheduled / 2 + loop.ahead
    waited = np.where(late + 1 < wave, late - late * (late + 1) / (2 * wave), (wave - 1) / 2)
    beside = (np.clip(loop.running, 1.0, np.maximum(loop.slots.at_once, 1.0)) - 1) * loop.added
    seconds: Floats = waited * (loop.plain + held * loop.added) + beside
    return seconds
