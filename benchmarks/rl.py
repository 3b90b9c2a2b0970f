"""The section of docs/validation.md on reinforcement learning: published steps, phases and peaks, by framework."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.table import ERRORS, error_cells, table
from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence

QUANTITIES = ("step_s", "gen_s", "actor_update_s", "peak_mem_gib")


def rl(path: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    read = read_evidence(path)
    found = compare(read, Catalog())
    frameworks = {row.id: str(getattr(row.run, "framework", "")) for row in read.rows}
    yield from ("", "## Reinforcement learning", "", f"{len({entry.id for entry in found.entries})} rows have a "
                f"prediction, {len(found.skipped)} are skipped. Constants were chosen beside them, so these errors are "
                "in-sample.", "")
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in found.entries:
        if entry.quantity in QUANTITIES:
            groups.setdefault((entry.quantity, frameworks[entry.id]), []).append(entry)
    yield from table(("quantity", "framework", *ERRORS), [
        [*key, *error_cells(groups[key])]
        for key in sorted(groups, key=lambda key: (QUANTITIES.index(key[0]), key[1]))])
