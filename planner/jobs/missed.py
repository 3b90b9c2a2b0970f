"""What a replay leaves of the rates of replicas that missed a target."""

from __future__ import annotations

from collections.abc import Sequence

from planner.jobs.columns import Pick
from planner.jobs.job import Tried

LEAST_CUT = 0.995
"""What is left of a rate at most after a miss."""
ROUNDED = 1.01
"""Over what a replay showed, as more replicas share their load better: what is too much is replayed again."""
SHOWN_WHOLE = 1 - 1e-6
"""Of what is asked of a replica, from which on it holds all."""


def left_of(picks: Sequence[Pick], shown: Tried) -> list[float]:
    """Return what a replay leaves of the rate of each pick: 1 where it held all that was asked of it."""
    return [min(held * ROUNDED / pick.column.rate, LEAST_CUT) if held < SHOWN_WHOLE * asked else 1.0
            for pick, held, asked in zip(picks, shown.held, shown.asked, strict=True)]
