"""Money in a sentence: a budget, a price of electricity, or the price of a thing, which no question has."""

from __future__ import annotations

from collections.abc import Collection

from planner.cli.amounts import Amount
from planner.units import SECONDS
from planner.units.reading import parse_count

_COINS = ("euros", "eur", "euro", "pounds", "gbp", "chf", "francs")


def is_paid(amount: Amount, kinds: Collection[str]) -> bool:
    """Say whether a number of a month or an hour is money, as what is asked in a time is said beside it."""
    limit = amount.near.keys() & {"under", "below", "budget", "most", "max", "pay", "spend"}
    return bool(limit) and (SECONDS.factor(amount.per) or 0.0) > 1.0 and bool(
        set(kinds) & {"requests", "rate", "users", "images", "clips"})


def money_of(amount: Amount) -> tuple[str, str]:
    """Return the key that money is of, and its value."""
    coin = amount.noun if amount.noun in _COINS else "USD"
    value = f"{parse_count(amount.value, 'cents') / 100:.6g}" if amount.noun.startswith("cent") else amount.value
    if amount.per == "kwh":
        return "electricity", f"{value} {coin}/kWh"
    if amount.per in ("gpu", "gpu-hour", "gpu-hr"):
        return "price", value if coin == "USD" else f"{value} {coin}"
    if amount.per and not SECONDS.factor(amount.per):
        return "unpriced", f"{value} {coin} per {amount.per}"
    return "budget", f"{value} {coin}/{amount.per}" if amount.per else f"{value} {coin}"
