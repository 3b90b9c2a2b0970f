"""How a CP-SAT solve is run and how it may end: plain types, so that nobody imports ortools to name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["optimal", "feasible", "infeasible", "undecided"]


@dataclass(frozen=True, slots=True)
class Settings:
    """One worker and a fixed seed give the same answer on every run; `deterministic_limit` is not wall time.

    With a limit, a solve may end as feasible or undecided; without one it ends with a proof.
    """

    deterministic_limit: float | None = None
    seed: int = 0
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Effort:
    """What an answer may take: a monotonic clock reading at which to stop, and processes that share the search out."""

    stop: float | None = None
    workers: int = 1


UNLIMITED = Effort()
"""To the proof, in this process."""
