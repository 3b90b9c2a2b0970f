"""How many sequences decode beside each other under an open stream of requests, and what their varying does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats

STEEPEST = 0.95
"""Beyond this no load is steady: the elasticity of a step's time in the sequences, and prompts' share of the time."""
FAR = 2.0
"""Deviations at which it is seen how much slower a step is with more sequences."""


@dataclass(frozen=True, slots=True)
class Crowding:
    """How the number of decoding sequences varies, and what that does to the seconds of a token."""

    variance: Floats
    more: Floats
    """Sequences there on average beyond those that answer as many in a steady flow."""
    token: Floats
    """Mean seconds of a token without prompts."""
    deviation: Floats
    """Of these, averaged over an answer."""


def crowding(gap_cv: float, batch: Floats, token: Callable[[Floats], Floats], left: Floats, asks: Floats) -> Crowding:
    """Return how the number of sequences varies about `batch`; `token`: seconds of one by their number.

    left: share of the time that prompts leave to decoding, which many arrivals take twice: by their prompts and after.
    asks: of a closed loop, the time of an answer over that of a thought; zero in an open one.

    Sequences leave at N / TPOT(N), which makes N a birth-death chain: variance D / (1 - e), e the elasticity of a
    token's time in N, as every one more slows all others down, and it forgets itself in 1 / (1 - e) of a request's
    time. In a closed loop every one more also is one fewer who will ask: (1 - e) becomes (1 - e + R / Z). A request
    counts itself beside those that it finds: of D sequences in a steady flow there are m more, m = e (1 + m), e along
    the chord to them.
    """
    plain, bursts = token(batch), (1 + gap_cv**2) / 2
    # over a range, as steps rise at the edges of kernels' tiles
    low = np.maximum(0.5 * batch, 1.0)
    high = np.maximum(1.5 * batch, low + 1)
    steep = np.clip((token(high) - token(low)) / (high - low) * batch / plain, 0.0, STEEPEST)
    free = 1 - steep + asks
    more = steep / free
    for _ in range(2):
        chord = np.clip((token(batch + 1 + more) / plain - 1) * batch / (1 + more), 0.0, STEEPEST)
        more = chord / (1 - chord + asks)
    more = more * bursts
    variance = batch * bursts / free / left
    averaged = np.sqrt(variance * 2 / free * (1 - (1 - np.exp(-free)) / free))
    there = np.maximum(batch + more, 1.0)
    deviation = (token(there + FAR * averaged) - token(there)) / FAR / left
    return Crowding(variance, more, plain * (1 + more / batch), deviation)
