"""What is told beside the command that a sentence is, and the flags of how much is to be done."""

from __future__ import annotations

from dataclasses import dataclass, field

WORK = frozenset(("tokens", "samples", "epochs", "steps", "deadline", "budget"))
"""Flags of which training needs one to have a price."""
GROWING = ("rate", "users", "daily-users", "monthly-users", "concurrency")
"""Flags of a load that may grow."""


@dataclass(slots=True)
class Told:
    """What is said beside the command that a sentence is."""

    left_out: list[str] | None = None
    """Words that are not understood and may be left out; where it is none, every word must be understood."""
    assumed: list[str] = field(default_factory=list)
    """What was assumed, in words."""
    part: bool = False
    """Whether the sentence is a part of one, about a job of several."""
    first: list[tuple[str, list[str]]] = field(default_factory=list)
    """Commands that answer a part of the question before the last one, each with what it is."""
