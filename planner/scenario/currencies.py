"""Money of other currencies than the dollar, in which prices are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from planner.scenario.default import Default, Defaults
from planner.units import parse
from planner.units.reading import MONEY, MONEY_PER_GPU_HOUR, MONEY_PER_HOUR, MONEY_PER_KWH
from planner.yaml_io import Document

_CALLED = {"EUR": "€ eur euro euros", "GBP": "£ gbp pound pounds", "CHF": "chf francs"}
_NAMES = {said: currency for currency, names in _CALLED.items() for said in names.split()}
_NAMED = re.compile("|".join(f"(?<![a-z]{{2}}){re.escape(said)}(?![a-z])" for said in sorted(
    _NAMES, key=len, reverse=True)), re.IGNORECASE)
_KEYS = {("limits",): ("budget", "budget_by_quarter"), ("sourcing",): ("electricity",),
         ("sourcing", "rent"): ("price",)}
_OF_JOBS = ("late", "worth")
"""Of a job of a portfolio."""


def in_dollars(document: Document, rates: Mapping[str, float]) -> tuple[Document, Defaults]:
    """Return a question with its money in dollars, and the rates that were taken. `rates` are USD for one of each."""
    if not isinstance(document.data, dict):
        return document, []
    said, changed = Defaults(), dict(document.data)
    jobs = changed.get("jobs")
    if isinstance(jobs, list):
        changed["jobs"] = [{**job, **{key: _dollars(f"{job.get('name', at)}.{key}", job[key], rates, said)
                                      for key in _OF_JOBS if key in job}} if isinstance(job, dict) else job
                           for at, job in enumerate(jobs)]
    for path, keys in _KEYS.items():
        held: object = changed
        for block in path:
            values = held.get(block) if isinstance(held, dict) else None
            if isinstance(held, dict) and isinstance(values, dict):
                held[block] = values = {**values}
            held = values
        if isinstance(held, dict):
            held |= {key: _of(key, held[key], rates, said) for key in keys if key in held}
    return replace(document, data=changed), said


def _of(key: str, value: object, rates: Mapping[str, float], said: Defaults) -> object:
    """Return a value in dollars; of amounts by quarter each."""
    return {part: _dollars(f"{key}.{part}", amount, rates, said) for part, amount in value.items()} if isinstance(
        value, dict) else [_dollars(key, amount, rates, said) for amount in value] if isinstance(
        value, list) else _dollars(key, value, rates, said)


def _dollars(key: str, text: object, rates: Mapping[str, float], said: Defaults) -> object:
    """Return a value in dollars where it names a currency of `rates`, and add the rate taken to what is `said`."""
    match = _NAMED.search(text) if isinstance(text, str) else None
    if match is None or not isinstance(text, str):
        return text
    currency = _NAMES[match[0].lower()]
    usd = _read(text[:match.start()] + "$" + text[match.end():])
    if usd is None or currency not in rates:
        return text
    amount, unit = usd
    changed = f"{amount * rates[currency]:.10g} {unit}"
    said.append(Default(name=key, value=changed, why=f"{text} at {rates[currency]:g} USD for 1 {currency}, an assumed "
                        "rate: write USD for another"))
    return changed


def _read(text: str) -> tuple[float, str] | None:
    for units, unit in ((MONEY, "USD"), (MONEY_PER_HOUR, "USD/h"), (MONEY_PER_KWH, "USD/kWh"),
                        (MONEY_PER_GPU_HOUR, "USD/GPU-h")):
        with suppress(ValueError):
            return parse(text, units, "amount of money", f"500 {unit}"), unit
    return None
