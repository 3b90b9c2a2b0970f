"""What a question may state and an estimate of one layout cannot heed, said by each kind of work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Idle:
    """A key of a scenario, and why an estimate does not heed it."""

    key: str
    why: str
    left_to_plan: bool = False
    """Whether a file that plans are made of may have it all the same."""
    of_work: bool = True
    """Whether it is a key of the workload, else of the scenario."""

    @property
    def path(self) -> str:
        """Where a scenario has it."""
        return f"workload.{self.key}" if self.of_work else self.key


def idle(key: str, why: str, *, left_to_plan: bool = False, of_work: bool = True) -> Idle:
    """Return a key that no part of an estimate depends on."""
    return Idle(key, f"does nothing to this estimate: {key} {why}", left_to_plan, of_work)


def several(key: str, values: Sequence[str]) -> Iterator[Idle]:
    """Yield a key that lists formats to choose from, where it lists more than one."""
    if len(values) > 1:
        yield Idle(key, f"an estimate is for one format, got {', '.join(values)}")
