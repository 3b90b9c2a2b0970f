"""How much of what is asked of services the limits admit, by formula: found by halving."""

from __future__ import annotations

from dataclasses import replace

from planner.jobs.columns import MICRO
from planner.jobs.fleet import Fleet, covered_by
from planner.solver.fleet.covering import Cover

STEPS = 12
"""Halvings."""


def share(fleet: Fleet) -> float:
    """Return the largest share of every rate that the limits admit."""
    return _largest(fleet.problem(), 0.0, 1.0)


def most(fleet: Fleet) -> float:
    """Return the largest multiple of every rate that the limits admit; there is one that they do not."""
    low, high, problem = 0.0, 1.0, fleet.problem()
    while high < MICRO and _admits(problem, high):
        low, high = high, 2 * high
    return _largest(problem, low, high)


def _largest(problem: Cover, low: float, high: float) -> float:
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _admits(problem, middle) else (low, middle)
    return low


def _admits(problem: Cover, factor: float) -> bool:
    """Say whether some fleet answers a multiple of every rate."""
    needs = tuple(tuple(int(need * factor) for need in service) for service in problem.needs)
    return covered_by(replace(problem, needs=needs)).value is not None
