"""Tables of the pages that benchmarks write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from planner.answer.validation import Entry
from planner.evidence.summary import errors

ERRORS = ("rows", "median", "p90", "bias", "in 90% interval")
"""Heads above `error_cells`."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def error_cells(entries: Sequence[Entry]) -> list[str]:
    """Return the number of entries, and what is shown of their errors."""
    found = errors(entries)
    return [str(len(entries)), *("-" if found[key] is None else f"{round(found[key], 3) + 0.0:.1%}" for key in (
        # plus zero: no -0.0%
        "median_abs_error", "p90_abs_error", "bias", "interval90_coverage"))]
