"""Runs that came in later, as they were first predicted, against the intervals of today."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from statistics import median, quantiles

from benchmarks.table import table
from planner.answer.validation import Entry
from planner.catalog.load import Catalog


def first(entries: Iterable[Entry], names: Mapping[str, str], catalog: Catalog) -> Iterator[str]:
    """Yield a table of first predictions.

    names: what first predictions are called -> the quantity of the entries that have today's intervals.
    """
    today = {(entry.id, entry.quantity): entry for entry in entries}
    rows = list[list[str]]()
    for name, quantity in names.items():
        inside, errors, widths = list[bool](), list[float](), list[float]()
        for row, was in catalog.first_predictions.of(name).items():
            entry = today.get((row, quantity))
            if entry is None or entry.interval90 is None or not isinstance(entry.predicted, float):
                continue
            low, high = (end / entry.predicted for end in entry.interval90)
            inside.append(low <= was.over <= high)
            errors.append(abs(1 / was.over - 1))
            widths.append(high / low)
        if len(errors) > 1:
            rows.append([name, str(len(errors)), f"{median(errors):.1%}", f"{quantiles(errors, n=10)[-1]:.1%}",
                         f"{sum(inside) / len(inside):.0%}", f"{math.exp(median(map(math.log, widths))):.2f}"])
    yield from table(("first predictions of", "rows", "median", "p90", "in today's interval", "median width"), rows)
