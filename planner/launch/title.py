"""What a plan is called in files and by schedulers."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.scenario.job import UNNAMED


def title(placed: Assignment) -> str:
    """Return what a plan is called: its own name, or its model's where it has none."""
    return placed.model if placed.workload == UNNAMED and placed.model else placed.workload
