"""The section of docs/validation.md on diffusion models: training them, and making images and clips, by model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.first import first
from benchmarks.made_left_out import made_left_out
from benchmarks.table import ERRORS, error_cells, table
from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence

QUANTITIES = ("step_time_s", "latency_s", "throughput", "peak_mem_gib")
FIRST = {"generation-seconds": "latency_s", "generation-memory": "peak_mem_gib", "diffusion-step": "step_time_s",
         "diffusion-memory": "peak_mem_gib"}


def diffusion(path: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    read = read_evidence(path)
    catalog = Catalog()
    found = compare(read, catalog)
    runs = {row.id: (str(getattr(row.run, "kind", "")), str(getattr(row.run, "model", ""))) for row in read.rows}
    yield from ("", "## Diffusion models", "", f"{len({entry.id for entry in found.entries})} rows have a prediction, "
                f"{len(found.skipped)} are skipped. Constants were fitted to them; docs/diffusion.md says what whole "
                "models left out give.", "")
    yield from ("Runs that came in later, as they were predicted before anything was changed for them, in the "
                "intervals of today (making images and clips, then training):", "")
    yield from first(found.entries, FIRST, catalog)
    yield from made_left_out(path)
    yield from ("", "In-sample:", "")
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in found.entries:
        if entry.quantity in QUANTITIES:
            groups.setdefault((entry.quantity, *runs[entry.id]), []).append(entry)
    yield from table(("quantity", "kind", "model", *ERRORS), [
        [*key, *error_cells(mine)]
        for key, mine in sorted(groups.items(), key=lambda group: (QUANTITIES.index(group[0][0]), group[0]))])
