"""Money in a sentence: a budget, a price of electricity, or the price of a thing, which no question has."""

from __future__ import annotations

import re
from collections.abc import Collection

from planner.cli.amounts import Amount
from planner.units import SECONDS
from planner.units.reading import parse_count

HOUR = 3600.0
_LIMITS = frozenset(("under", "below", "budget", "most", "max", "maximum", "spend", "limit", "within", "less"))
_QUOTED = frozenset(("quoted", "quote", "quotes", "priced", "charged", "charges"))
_PRICE = frozenset(("price", "prices", "pricing", "hourly", "list-price"))
_GPU = re.compile(r"[a-z]{0,3}\d{2,4}[a-z]{0,2}s?")
"""How GPUs are called: h100, 4090s, mi300x."""
_NEAR = 3
_COINS = ("euros", "eur", "euro", "pounds", "gbp", "chf", "francs")


def paid_for(amount: Amount, kinds: Collection[str]) -> tuple[str, str] | None:
    """Return the key of a number of a time that is money, and its value: of a month beside what is asked in a time a
    budget, of an hour beside hardware its price (h100 at 1.99/hr); none of others.
    """
    near = amount.near
    of_gpu = any(far <= _NEAR and _GPU.fullmatch(word) for word, far in near.items())
    if not amount.noun and SECONDS.factor(amount.per) == HOUR and of_gpu and (
            amount.number % 1 > 0 or any(near.get(word, _NEAR) <= 1 for word in ("at", "for"))):
        return "price", amount.value
    limit = near.keys() & {"under", "below", "budget", "most", "max", "pay", "spend"}
    paid = bool(limit) and (SECONDS.factor(amount.per) or 0.0) > 1.0 and bool(
        set(kinds) & {"requests", "rate", "users", "images", "clips"})
    return ("budget", f"{amount.value} USD/{amount.per}") if paid else None


def _is_price(amount: Amount) -> bool:
    """Say whether money of an hour is what a GPU costs, and not the most of all: quoted, or at it beside a GPU."""
    near = amount.near
    if not near.keys().isdisjoint(_LIMITS):
        return False
    priced = not near.keys().isdisjoint(_PRICE)
    of_gpu = any((priced or far <= _NEAR) and (word in ("gpu", "gpus") or _GPU.fullmatch(word))
                 for word, far in near.items())
    asked = any(near.get(word, 99) <= far for word, far in (("at", 1), ("pay", _NEAR), ("paying", _NEAR)))
    return not near.keys().isdisjoint(_QUOTED) or (of_gpu and (asked or priced))


def money_of(amount: Amount) -> tuple[str, str]:
    """Return the key that money is of, and its value."""
    coin = amount.noun if amount.noun in _COINS else "USD"
    value = f"{parse_count(amount.value, 'cents') / 100:.6g}" if amount.noun.startswith("cent") else amount.value
    if amount.per == "kwh":
        return "electricity", f"{value} {coin}/kWh"
    if amount.per in ("gpu", "gpu-hour", "gpu-hr"):
        return "price", value if coin == "USD" else f"{value} {coin}"
    of_hour = SECONDS.factor(amount.per) == HOUR or (not amount.per and not amount.near.keys().isdisjoint(_PRICE))
    if of_hour and _is_price(amount):
        return "price", value if coin == "USD" else f"{value} {coin}"
    if amount.per and not SECONDS.factor(amount.per):
        return "unpriced", f"{value} {coin} per {amount.per}"
    return "budget", f"{value} {coin}/{amount.per}" if amount.per else f"{value} {coin}"
