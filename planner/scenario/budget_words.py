"""Budgets of a portfolio as people write them: by quarter, as amounts for some of them, or in all and by quarter."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from planner.errors import InputError
from planner.scenario.quarters import quarter_named

_QUARTERS = ("budget_by_quarter", "budget_per_quarter", "quarterly_budget")
_MONTHS = ("budget_by_month", "budget_per_month", "monthly_budget", "max_cost_per_month")
_ALL = ("total", "in_all", "all", "overall", "year", "sum")
_EACH = ("by_quarter", "quarter", "per_quarter", "quarterly", "each_quarter")
_PER = re.compile(r"(.+?) ?(?:/|\bper |\ba |\beach )(quarter|month)", re.IGNORECASE)


def with_quarters(data: dict[Any, Any]) -> dict[Any, Any]:
    """Return a portfolio with its budget of a quarter among its limits. Raises InputError for one of a month, and for
    two of a quarter.
    """
    limits = data.get("limits") or {}
    if not isinstance(limits, dict):
        return data
    told = {**{key: data[key] for key in ("budget", *_QUARTERS, *_MONTHS) if key in data}, **limits}
    parts = _parts(told.get("budget"))
    stated = {**{key: value for key, value in told.items() if key != "budget" or parts is None}, **(parts or {})}
    if (month := next((key for key in stated if key in _MONTHS), None)) is not None:
        raise InputError(f"{month}: a portfolio has budget_by_quarter, the most spent in any calendar quarter, and "
                         "budget, the most in all: three months' money is a quarter's")
    by_quarter = [key for key in stated if key in _QUARTERS]
    if len(by_quarter) > 1 or (parts is not None and any(key in told for key in _QUARTERS if key in parts)):
        raise InputError(f"{by_quarter[-1]}: a budget of quarters is given twice: give one of them")
    if not by_quarter:
        return data
    kept = {key: value for key, value in stated.items() if key not in _QUARTERS}
    return {key: value for key, value in data.items() if key not in ("budget", *_QUARTERS)} | {
        "limits": {**kept, "budget_by_quarter": stated[by_quarter[0]]}}


def _parts(said: object) -> dict[str, object] | None:
    """Return what a budget says in all and by quarter; none where it is one amount in all, or says something else."""
    if isinstance(said, str):
        match = _PER.fullmatch(said.strip())
        return None if match is None else {
            (_QUARTERS if match[2].lower() == "quarter" else _MONTHS)[0]: match[1]}
    if not isinstance(said, dict) or not said:
        return None
    keys = {key: str(key).replace("-", "_").replace(" ", "_").lower() for key in said}
    if all(quarter_named(key, date(2000, 1, 1)) for key in said):
        return {_QUARTERS[0]: said}
    if all(key in (*_ALL, *_EACH) for key in keys.values()) and len(set(keys.values())) == len(keys):
        return {("budget" if name in _ALL else _QUARTERS[0]): said[key] for key, name in keys.items()}
    return None
