"""What a question may state and an estimate of one layout has no use for, said by each kind of work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Idle:
    """A key of a scenario, and why nothing of an estimate depends on it."""

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
