"""The only place where floats become the solver's integers. Use is rounded up, capacity and bounds down.

Quanta: 1 ns of time inside a step, 1 us of a job's duration, 1 MiB of memory, 1 cent, 1 micro-USD of an hourly price.
Of a stage that takes hours or holds petabytes, the least power of two times as much that keeps its numbers in 60 bits.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Counts = TypeVar("Counts", int, NDArray[Any])

TIME_QUANTUM = 1e-9
DURATION_QUANTUM = 1e-6
MEMORY_QUANTUM = 2**20
COST_QUANTUM = 0.01
PRICE_QUANTUM = 1e-6
READ_BACK = 1e-14
"""What floats lose of a duration between its integer, its text in any unit, and the limit read from that, relative."""
LONGEST = 9e18
"""Microseconds at which a lower bound stops growing, so that it stays within 64 bits: 285,000 years."""
_MICRO_USD_US_PER_CENT = 36 * 10**12
"""(micro-USD per hour x microseconds) in one cent: 1e4 micro-USD x 3.6e9 us."""


def coarse(largest: float, limit: int) -> int:
    """Return how many quanta a unit must be for `largest`, in quanta, to stay below `limit`: a power of two."""
    units = 1
    while largest >= limit * units:
        units *= 2
    return units


def nanoseconds(seconds: float, unit: int = 1) -> int:
    """Return a kernel or traffic time in units of `unit` ns, up."""
    return math.ceil(seconds / (TIME_QUANTUM * unit))


def memory_use(size: float, unit: int = 1) -> int:
    """Return bytes held in units of `unit` MiB, up."""
    return math.ceil(size / (MEMORY_QUANTUM * unit))


def memory_capacity(size: float, unit: int = 1) -> int:
    """Return bytes available in units of `unit` MiB, down."""
    return math.floor(size / (MEMORY_QUANTUM * unit))


def duration_use(seconds: float) -> int:
    """Return a job's duration in us, up."""
    return math.ceil(seconds / DURATION_QUANTUM)


def duration_limit(seconds: float) -> int:
    """Return a deadline in us, down, and a hair more: a duration of whole us, written out and read, is no longer."""
    return math.floor(seconds / DURATION_QUANTUM * (1 + READ_BACK) + 1e-3)


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


def cost_cents(nodes: Counts, micro_usd_per_node_hour: int, duration_us: int) -> Counts:
    """Return what `nodes`, one count or an array of Python's integers, cost for `duration_us`, in cents, up; exact."""
    return -(-nodes * micro_usd_per_node_hour * duration_us // _MICRO_USD_US_PER_CENT)
