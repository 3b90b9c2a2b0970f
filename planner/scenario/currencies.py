"""Money of other currencies than the dollar, in which prices are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from planner.scenario.default import Default, Defaults
from planner.units import parse
from planner.units.reading import MONEY, MONEY_PER_HOUR
from planner.yaml_io import Document

_CALLED = {"EUR": "€ eur euro euros", "GBP": "£ gbp pound pounds", "CHF": "chf francs"}
_NAMES = {said: currency for currency, names in _CALLED.items() for said in names.split()}
_NAMED = re.compile("|".join(f"(?<![a-z]{{2}}){re.escape(said)}(?![a-z])" for said in sorted(
    _NAMES, key=len, reverse=True)), re.IGNORECASE)
_KEYS = ("budget", "budget_by_quarter")


def in_dollars(document: Document, rates: Mapping[str, float]) -> tuple[Document, Defaults]:
    """Return a question with its budgets in dollars, and the rates that were taken. `rates` are USD for one of each."""
    limits = document.data.get("limits") if isinstance(document.data, dict) else None
    if not isinstance(limits, dict):
        return document, []
    said, changed = Defaults(), dict(limits)
    for key in _KEYS:
        text = limits.get(key)
        match = _NAMED.search(text) if isinstance(text, str) else None
        if match is None or not isinstance(text, str):
            continue
        currency = _NAMES[match[0].lower()]
        usd = _read(text[:match.start()] + "$" + text[match.end():])
        if usd is not None and currency in rates:
            amount, unit = usd
            changed[key] = f"{amount * rates[currency]:.10g} {unit}"
            said.append(Default(name=key, value=changed[key],
                                why=f"{text} at {rates[currency]:g} USD for 1 {currency}, an "
                                "assumed rate: write USD for another"))
    return replace(document, data={**document.data, "limits": changed}), said


def _read(text: str) -> tuple[float, str] | None:
    for units, unit in ((MONEY, "USD"), (MONEY_PER_HOUR, "USD/h")):
        with suppress(ValueError):
            return parse(text, units, "amount of money", f"500 {unit}"), unit
    return None
