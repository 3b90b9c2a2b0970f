"""Hold predictions against the measurements of an evidence file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.catalog.load import Catalog
from planner.evidence.compare import compare
from planner.evidence.ranking import rank, rank_served
from planner.evidence.reading import read_evidence
from planner.evidence.summary import summarize

SCHEMA = "planner.validation/1"


def validate_file(path: Path, catalog: Catalog) -> dict[str, Any]:
    """Return rows, skipped rows and summary of an evidence CSV, schema planner.validation/1.

    Raises InputError where the file cannot be read or is of none of the four kinds. Skipped rows are no error.
    """
    comparison = compare(read_evidence(path), catalog)
    entries = comparison.entries
    order = rank_served(comparison.speeds) if comparison.speeds else rank(comparison.outcomes)
    return {"schema": SCHEMA,
            "rows": [entry.as_json() for entry in entries],
            "skipped": [{"id": identifier, "reason": reason} for identifier, reason in comparison.skipped],
            "summary": {**summarize(entries), "rank": order}}
