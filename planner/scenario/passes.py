"""Steps of a job that is told by steps, or by passes over samples."""

from __future__ import annotations

import math
from typing import Protocol

from planner.errors import About


class Passing(Protocol):
    """Work whose amount is steps, or samples and epochs."""

    @property
    def steps(self) -> int | None:
        """Steps of the whole job."""

    @property
    def samples(self) -> int | None:
        """Samples to pass over."""

    @property
    def epochs(self) -> float | None:
        """Passes over the samples; none means one."""


def check_amount(work: Passing) -> None:
    """Raise About where steps and passes are both given, or passes over nothing."""
    if work.steps is not None and work.epochs is not None:
        raise About("epochs", "steps and epochs are given: a job has one of them")
    if work.epochs is not None and work.samples is None:
        raise About("epochs", "epochs applies to samples, and none are given")


def steps_of(work: Passing, batch: int) -> int | None:
    """Return the steps of a job whose steps take so many samples each; none where no amount of work is given."""
    if work.steps is None and work.samples is not None:
        return max(1, math.ceil(work.samples * (work.epochs or 1) / batch))
    return work.steps
