"""What a number of a sentence is said in: what the question asks, what else is counted, and which models are named."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.cli.amounts import Amount
from planner.cli.named_work import NamedWork
from planner.cli.places import Unit, placed

NOTHING = "-"
"""The flag of a number that says nothing."""
SERVING = {"users", "rate", "requests", "streams"}
"""Kinds of numbers of a service."""


@dataclass(frozen=True, slots=True)
class Asides:
    """What else the sentence says."""

    asks: set[str]
    kinds: frozenset[str]
    """Of things that are counted in it."""
    serves: bool
    tunes: bool
    whole: bool
    """Whether things are counted in all, and not by a time."""
    work: NamedWork
    comes: bool
    """Whether those who come in a time are counted."""
    hours: int = 0
    """Of a day in which anybody asks; none where nothing says so."""
    assumed: list[str] = field(default_factory=list)
    """What was assumed, in words."""
    nouns: frozenset[str] = frozenset()
    """Kinds of things that are named and not counted."""
    used: set[str] = field(default_factory=set)
    """Words that say which key a number is of."""

    def placed(self, kind: str, amount: Amount, seconds: float = 0.0) -> str:
        """Return the key of a number of a kind that has several; none where nothing speaks for one."""
        flag, said = placed(kind, amount.near, Unit(frozenset(self.asks), self.serves, self.tunes, self.whole, seconds,
                                                    self.work.makes, bool(self.work.hears)))
        self.used.update(said)
        return flag
