"""Limits in words, as the user would write them."""

from __future__ import annotations

from math import ceil

from planner.scenario.limits import Limits
from planner.units import DAY, HOUR, SECONDS, WATTS, exact, show_usd


def round_up(seconds: float) -> float:
    """Return a duration a person would write: tenths of a day, or whole hours below two days."""
    return ceil(seconds / (DAY / 10)) * DAY / 10 if seconds > 2 * DAY else ceil(seconds / HOUR) * HOUR


def asked_limit(limits: Limits, name: str) -> str:
    """Write a limit as it was asked."""
    value = getattr(limits, name)
    return str(value) if name == "deadline" else show_limit(name, value)


def show_limit(name: str, value: float) -> str:
    """Write a value of a limit with its unit."""
    if name == "deadline":
        tenths = value / DAY * 10
        return f"{tenths / 10:g} d" if tenths >= 20 else exact(value, SECONDS, "d", "h", "min", "s")
    if name == "max_power":
        return exact(value, WATTS, "MW", "kW", "W")
    return show_usd(value) if name == "budget" else f"{int(value):,}"
