"""The only place where floats become the solver's integers. Use is rounded up, capacity and bounds down.

Quanta: 1 ns of time inside a step, 1 us of a job's duration, 1 MiB of memory, 1 cent, 1 micro-USD of an hourly price.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

TIME_QUANTUM = 1e-9
DURATION_QUANTUM = 1e-6
MEMORY_QUANTUM = 2**20
COST_QUANTUM = 0.01
PRICE_QUANTUM = 1e-6
LONGEST = 9e18
"""Microseconds at which a lower bound stops growing, so that it stays within 64 bits: 285,000 years."""
_MICRO_USD_US_PER_CENT = 36 * 10**12
"""(micro-USD per hour x microseconds) in one cent: 1e4 micro-USD x 3.6e9 us."""


def nanoseconds(seconds: float) -> int:
    """Return a kernel or traffic time in ns, up."""
    return math.ceil(seconds / TIME_QUANTUM)


def memory_use(size: float) -> int:
    """Return bytes held in MiB, up."""
    return math.ceil(size / MEMORY_QUANTUM)


def memory_capacity(size: float) -> int:
    """Return bytes available in MiB, down."""
    return math.floor(size / MEMORY_QUANTUM)


def duration_use(seconds: float) -> int:
    """Return a job's duration in us, up."""
    return math.ceil(seconds / DURATION_QUANTUM)


def duration_limit(seconds: float) -> int:
    """Return a deadline in us, down."""
    return math.floor(seconds / DURATION_QUANTUM)


def duration_floor(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return lower bounds of durations in us, down, and a hair more for what floats lose."""
    micros = np.floor(seconds / DURATION_QUANTUM * (1 - 1e-12))
    return np.minimum(micros, LONGEST).astype(np.int64)


def price(usd_per_hour: float) -> int:
    """Return an hourly price in micro-USD, up."""
    return math.ceil(round(usd_per_hour / PRICE_QUANTUM, 3))


def budget(usd: float) -> int:
    """Return a budget in cents, down."""
    return math.floor(round(usd / COST_QUANTUM, 3))


def cost_cents(nodes: int, micro_usd_per_node_hour: int, duration_us: int) -> int:
    """Return what `nodes` cost for `duration_us`, in cents, up; exact in integers."""
    return -(-nodes * micro_usd_per_node_hour * duration_us // _MICRO_USD_US_PER_CENT)
