"""Deadlines of the computed time, which a run is likely to miss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.answer.assignment import Assignment
from planner.scenario.limits import Limits
from planner.units import DAY


def late(limits: Limits, made: Iterable[Assignment]) -> Iterator[str]:
    """Yield what is late at even odds, where the deadline is of the computed time and not of a share of runs."""
    deadline = limits.deadline
    if deadline is None or deadline.confidence is not None:
        return
    for each in made:
        whole = getattr(each, "whole_run", None)
        usual = (each.duration_days or 0.0) * (whole.factor if whole else 1.0)
        if whole and usual * DAY > deadline.seconds:
            yield (f"the deadline of {deadline} is kept by the computed time alone: whole runs take longer, at even "
                   f"odds {usual:.3g} days; --deadline '{deadline} at 90%' plans for what nine of ten take")
