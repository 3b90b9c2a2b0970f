"""Limits in words: those asked and those advised read back to the same limit, amounts used are rounded for people."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from pydantic import ValidationError

from planner.scenario.limits import Limits
from planner.units import DAY, HOUR, SECONDS, USD, USD_PER_HOUR, WATTS, exact, parse, show_usd, show_within

MINUTE = 60.0
MOST_STEPS = 2
"""Times that advice is raised by one more quantum where rounding left it a hair too low."""


def quantum(name: str, value: float) -> float:
    """Return to what a limit is rounded up in advice, in base units: what a person would write."""
    if name == "deadline":
        return next((step for step, above in ((DAY / 10, 2 * DAY), (HOUR, 10 * HOUR), (MINUTE, 10 * MINUTE))
                     if value > above), 1.0)
    if name == "budget":
        return 0.01 if value < 1000 else 1.0 if value < 1e7 else 1e4
    return 100.0 if name == "max_power" and value >= 1e4 else 1.0


def advised(limits: Limits, name: str, least: float, more: int = 0) -> tuple[str, float] | None:
    """Return a limit of at least `least`, base units, as text and as what the text reads back to.

    `more`: quanta on top. None where no question may have such a limit.
    """
    step = quantum(name, least)
    while True:
        # a millionth of a quantum is float noise
        count = ceil(round(least / step, 6)) + more
        text = _of(limits, name, _count(name, count, step), step)
        try:
            held = getattr(type(limits).model_validate({name: text}), name)
        except ValidationError:
            return None
        value = float(held.seconds if name == "deadline" else held)
        if value >= least:
            return text, value
        more += 1


def _count(name: str, count: int, step: float) -> float:
    """Return `count` quanta; tenths and hundredths as the nearest number to what is written."""
    if name == "budget" and step < 1:
        return count / 100
    return count / 10 * DAY if name == "deadline" and step == DAY / 10 else count * step


def _of(limits: Limits, name: str, value: float, step: float) -> str:
    """Write an advised limit, a deadline with the confidence that was asked."""
    if name != "deadline":
        return _exact(name, value, hourly=limits.hourly)
    shown = f"{value / DAY:.1f}".removesuffix(".0") + " d" if step == DAY / 10 else exact(value, SECONDS, "d", "h",
                                                                                          "min", "s")
    asked = limits.confidence
    return shown if asked is None else f"{shown} at {asked * 100:g}%"


def asked_limit(limits: Limits, name: str) -> str:
    """Write a limit as it was asked."""
    value = getattr(limits, name)
    return str(value) if name == "deadline" else _exact(name, value, hourly=limits.hourly)


def show_limit(name: str, value: float, *, hourly: bool = False) -> str:
    """Write an amount of what a limit bounds, rounded, with its unit; `hourly` are those of services."""
    if name == "deadline":
        return show_within(value)
    if name == "budget":
        return show_usd(value) + ("/h" if hourly else "")
    if name == "max_power":
        return f"{value / 1000:,.1f} kW" if hourly else exact(value, WATTS, "MW", "kW", "W")
    return f"{int(value):,}"


def _exact(name: str, value: float, *, hourly: bool) -> str:
    """Write a limit so that it reads back to the same: as it is shown where that does."""
    shown = show_limit(name, value, hourly=hourly)
    if name == "budget":
        units, unit = (USD_PER_HOUR, "USD/h") if hourly else (USD, "USD")
        texts = (shown, f"{value:,.2f} {unit}", f"{value:,.0f} {unit}")
        return next((text for text in texts if _reads_back(text, units, value)), exact(value, units, unit))
    if name == "max_power":
        return shown if _reads_back(shown, WATTS, value) else exact(value, WATTS, "MW", "kW", "W")
    return shown


def _reads_back(text: str, units: Mapping[str, float], value: float) -> bool:
    try:
        return parse(text, units, "limit", "") == value
    except ValueError:
        return False
