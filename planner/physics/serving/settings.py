"""What an inference engine is started with: share of memory, tokens and sequences of a step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from planner.layouts.table import Ints, Mask

Count: TypeAlias = int | Ints


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings other than the engine's defaults; none is the default."""

    fraction: float | None = None
    """Share of memory, as the engine means it."""
    tokens: int | None = None
    """Of a step at most: the prefill chunk."""
    sequences: int | None = None
    """Of a step at most: the batch limit."""
    delay: int | None = None
    """Steps that a prompt waits at most until all copies of attention have one; none or 0 is not at all."""

    @property
    def changed(self) -> int:
        """How many settings differ from the defaults."""
        return sum(value is not None for value in (self.fraction, self.tokens, self.sequences)) + bool(self.delay)

    def on(self, copies: int, stages: int) -> EngineSettings:
        """Return those that do something where there are so many copies of attention, and stages."""
        return self if can_wait(copies, stages) or not self.delay else replace(self, delay=None)


def can_wait(copies: Count, stages: Count) -> Mask:
    """Say whether prompts can wait for each other: where there are copies of attention, in no pipeline."""
    can: Mask = (np.asarray(copies) > 1) & (np.asarray(stages) == 1)
    return can


USUAL = EngineSettings()
"""An engine as it starts unasked."""
