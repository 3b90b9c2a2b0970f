"""Hold predictions against the measurements of an evidence file."""

from __future__ import annotations

from pathlib import Path

from planner.answer.validation import Rank, Skipped, Validation
from planner.catalog.load import Catalog
from planner.evidence.compare import compare
from planner.evidence.ranking import rank, rank_served
from planner.evidence.reading import read_evidence
from planner.evidence.summary import summarize


def validate_file(path: Path, catalog: Catalog) -> Validation:
    """Return rows, skipped rows and summary of an evidence CSV.

    Raises InputError where the file cannot be read or is of none of the known kinds. Skipped rows are no error.
    """
    comparison = compare(read_evidence(path), catalog)
    order = rank_served(comparison.speeds) if comparison.speeds else rank(comparison.outcomes)
    return Validation(
        rows=tuple(comparison.entries), skipped=tuple(Skipped(id=name, reason=why) for name, why in comparison.skipped),
        summary={**summarize(comparison.entries), "rank": Rank(**order)})
