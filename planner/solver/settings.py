"""How a CP-SAT solve is run and how it may end: plain types, so that nobody imports ortools to name them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Status = Literal["optimal", "feasible", "infeasible", "undecided"]
Heard = Callable[[int | None, int | None], None]
"""Is told the best value so far and the bound."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One worker and a fixed seed give the same answer on every run; `deterministic_limit` is not wall time.

    With a limit, a solve may end as feasible or undecided; without one it ends with a proof. linearization: how much of
    a model CP-SAT's linear relaxation holds; at 1 it may have none of a cover, 2 is all of it. so_far: whether Ctrl-C
    leaves the best so far. seconds: of the clock, for what no other limit stops; none by default, as
    answers would then differ. heard: is told of better values and bounds on the way.
    """

    deterministic_limit: float | None = None
    seed: int = 0
    workers: int = 1
    linearization: int = 1
    so_far: bool = False
    seconds: float | None = None
    heard: Heard | None = None


class OutOfTime(Exception):
    """The limit of an answer's time is reached."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What an answer may take, all its phases together: passed down as one thing, and asked by whatever takes long.

    stop: a monotonic clock reading at which to stop. workers: processes that share the search out.
    """

    stop: float | None = None
    workers: int = 1

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.stop is not None and time.monotonic() > self.stop

    @property
    def ended(self) -> Effort:
        """The same with no time left: what a search then leaves open is said at once."""
        return replace(self, stop=time.monotonic())

    def check(self) -> None:
        """Raise OutOfTime once the time is up."""
        if self.is_over:
            raise OutOfTime


UNLIMITED = Effort()
"""To the proof, in this process."""
