"""The section of docs/validation.md on diffusion models: training them, and making images and clips, by model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.table import ERRORS, error_cells, table
from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence

QUANTITIES = ("step_time_s", "latency_s", "throughput", "peak_mem_gib")


def diffusion(path: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    read = read_evidence(path)
    found = compare(read, Catalog())
    runs = {row.id: (str(getattr(row.run, "kind", "")), str(getattr(row.run, "model", ""))) for row in read.rows}
    yield from ("", "## Diffusion models", "", f"{len({entry.id for entry in found.entries})} rows have a prediction, "
                f"{len(found.skipped)} are skipped. Constants were fitted to them; docs/diffusion.md says what whole "
                "models left out give.", "")
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in found.entries:
        if entry.quantity in QUANTITIES:
            groups.setdefault((entry.quantity, *runs[entry.id]), []).append(entry)
    yield from table(("quantity", "kind", "model", *ERRORS), [
        [*key, *error_cells(mine)]
        for key, mine in sorted(groups.items(), key=lambda group: (QUANTITIES.index(group[0][0]), group[0]))])
