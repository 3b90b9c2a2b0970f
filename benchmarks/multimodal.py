"""The section of docs/validation.md on tuning as headers of scripts state it, of text and of multimodal models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.table import ERRORS, error_cells, table
from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.evidence.compare import PredictedRow, compare
from planner.evidence.reading import read_evidence
from planner.evidence.summary import confusion

Pair = tuple[PredictedRow, Entry]
KEYS: tuple[tuple[str, Callable[[PredictedRow], str]], ...] = (
    ("model", lambda o: "multimodal" if o.prediction.model.towers else "text"),
    ("stack", lambda o: o.prediction.stack), ("method", lambda o: o.prediction.method),
    ("source", lambda o: o.row.prefix))


def multimodal(path: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    found = compare(read_evidence(path), Catalog())
    pairs = [(o, e) for o in found.outcomes for e in o.entries]
    yield from (
        "", "## Tuning of multimodal models", "",
        "Tuning as headers of scripts print it (`multimodal.csv`), of text and of multimodal models: memory rounded by "
        "hand, lengths of samples and kernels left open, cards of the 80 GB class that are not named. No constant was "
        "fitted to it. A figure that is the size of a card counts as a verdict alone.", "")
    for quantity in ("peak_mem_gib", "step_time_s"):
        for label, key in KEYS:
            groups: dict[str, list[Entry]] = {}
            for outcome, entry in pairs:
                if entry.quantity == quantity:
                    groups.setdefault(key(outcome), []).append(entry)
            yield from table((f"{quantity} by {label}", *ERRORS),
                             [[name, *error_cells(groups[name])] for name in sorted(groups)])
            yield ""
    counts = confusion([entry for _, entry in pairs if entry.quantity == "fits"])
    yield (f"Of {counts['n']} runs that fitted, {counts['true_fit']} are said to fit, {counts['tight_fit']} to be "
           f"tight, {counts['false_oom']} not to; {len(found.skipped)} rows are skipped.")
