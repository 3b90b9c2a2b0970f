"""Hold predictions against the measurements of an evidence file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.answer.validation import Rank, Skipped, Validation
from planner.catalog.load import Catalog
from planner.catalog.residuals import SPEEDS
from planner.evidence.compare import compare
from planner.evidence.ranking import rank, rank_served
from planner.evidence.reading import read_evidence
from planner.evidence.run_logs import Ran
from planner.evidence.summary import SPED, TRAINED, summarize


def validate_file(path: Path, catalog: Catalog, stated: Mapping[str, str] | None = None,
                  started: Ran | None = None) -> Validation:
    """Return rows, skipped rows and summary of an evidence CSV, or of another tool's output.

    stated: columns that such an output leaves open, by name. started: what a log of training is of.
    Raises InputError where the file cannot be read or is of none of the known kinds. Skipped rows are no error.
    """
    evidence = read_evidence(path, stated, started)
    comparison = compare(evidence, catalog)
    order = rank_served(comparison.speeds) if comparison.speeds else rank(comparison.outcomes)
    return Validation(
        rows=tuple(comparison.entries), skipped=tuple(Skipped(id=name, reason=why) for name, why in comparison.skipped),
        summary={**summarize(comparison.entries), "rank": Rank(**order)},
        held_out=() if evidence.kind in ("diffusion", "rl") else tuple(
            _held_out(catalog, {entry.quantity for entry in comparison.entries})))


def _held_out(catalog: Catalog, quantities: set[str]) -> Iterator[str]:
    """Say how often the intervals hold the rows they stand on, each with its source left out."""
    laws = {"step time": (catalog.step_residuals, TRAINED[:2]), "memory": (catalog.memory_residuals, TRAINED[2:]),
            **{SPEEDS[name]: (catalog.serving_residuals(name),
                              [quantity for quantity in SPED if SPEEDS[quantity] == SPEEDS[name]])
               for name in SPED}}
    for what, (law, names) in laws.items():
        if law.held_out is not None and quantities & set(names):
            yield (f"{what}: {law.held_out:.1%} of the {law.cells[-1].rows:,} rows that the intervals stand on are "
                   "inside with their source left out")
