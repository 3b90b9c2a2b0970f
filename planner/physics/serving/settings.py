"""What an inference engine is started with: share of memory, tokens and sequences of a step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings other than the engine's defaults; none is the default."""

    fraction: float | None = None
    """Share of memory, as the engine means it."""
    tokens: int | None = None
    """Of a step at most: the prefill chunk."""
    sequences: int | None = None
    """Of a step at most: the batch limit."""

    @property
    def changed(self) -> int:
        """How many settings differ from the defaults."""
        return sum(value is not None for value in (self.fraction, self.tokens, self.sequences))


USUAL = EngineSettings()
"""An engine as it starts unasked."""
