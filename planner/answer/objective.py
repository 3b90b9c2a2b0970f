"""The objective in the unit of its name: the solver's integers, scaled exactly once."""

from __future__ import annotations

from collections.abc import Callable

from planner.answer.schema import Measure
from planner.solver.fleet.problem import Goal
from planner.units import DAY, plural, show_days, show_kwh, show_usd

NAMES: dict[Goal, Measure] = {"cost": "cost_usd", "time": "duration_days", "gpus": "gpus", "energy": "energy_kwh"}
_SCALES: dict[Goal, float] = {"cost": 100, "time": DAY * 1e6, "gpus": 1.0, "energy": 1000}
_SHOWN: dict[Goal, Callable[[float], str]] = {
    "cost": show_usd, "time": show_days, "energy": show_kwh,
    "gpus": lambda gpus: plural(round(gpus), "GPU")}


def amount(goal: Goal, value: int) -> float:
    """Return a value of the solver (cents, us, GPUs, Wh) in USD, days, GPUs or kWh."""
    return value / _SCALES[goal]


def show_amount(goal: Goal, value: float) -> str:
    """Write a value of the objective with its unit, and its sign where it is below zero."""
    return _SHOWN[goal](value) if value >= 0 else f"-{_SHOWN[goal](-value)}"
