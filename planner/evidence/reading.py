"""Read an evidence CSV: the kind by its header, each row as that kind's model.

A file that is not clean UTF-8 CSV with one of the known headers is an InputError with file and line. A row that does
not read is no reason to judge none: it is kept, with what is wrong with it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from planner.errors import InputError
from planner.evidence.kinds import KINDS, AnyRow, Evidence, named
from planner.evidence.skipping import why
from planner.text_io import read_text

MAX_BYTES = 256 * 2**20
MAX_CELL = 10_000
"""Characters of a cell."""


def read_evidence(path: Path) -> Evidence:
    """Return the rows of an evidence file. Raises InputError."""
    lines = _cells(path)
    header = next(lines, None)
    if header is None:
        raise InputError("the file is empty: expected a header line", file=str(path))
    names = [name.strip() for name in header[1]]
    kind = _kind(names, path)
    rows, unread = [], []
    for line, cells in lines:
        found = _row(kind, names, cells)
        if isinstance(found, str):
            identifier = next((cell.strip() for name, cell in zip(names, cells, strict=False) if name == "id"), "")
            unread.append((identifier[:MAX_CELL] or f"line {line}", f"line {line}: {found}"))
        else:
            rows.append(found)
    return Evidence(kind, tuple(rows), tuple(unread))


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of every line that is not blank."""
    text = read_text(path, MAX_BYTES)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    start = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"CSV syntax: {error}", file=str(path), line=start) from None


def _kind(names: Sequence[str], path: Path) -> str:
    twice = next((n for n in names if n and names.count(n) > 1), None)
    if twice is not None:
        raise InputError(f"column {twice!r} occurs twice in the header", file=str(path), line=1)
    for kind, (_, signature) in KINDS.items():
        if signature <= set(names):
            return kind
    expected = "; ".join(f"{kind} ({', '.join(sorted(signature))}, ...)" for kind, (_, signature) in KINDS.items())
    raise InputError(f"the header is of no evidence file: expected {expected}", file=str(path), line=1)


def _row(kind: str, names: Sequence[str], cells: Sequence[str]) -> AnyRow | str:
    """Return a row, or what is wrong with it."""
    if len(cells) != len(names):
        return f"{len(cells)} cells where the header has {len(names)}"
    for name, cell in zip(names, cells, strict=True):
        if len(cell) > MAX_CELL:
            return f"column {name}: a cell of {len(cell):,} characters, more than {MAX_CELL:,}"
    stated = {name: text for name, cell in zip(names, cells, strict=True) if (text := cell.strip())}
    stated = named(kind, stated)
    try:
        return KINDS[kind][0].model_validate({**stated, "run": stated, "measured": stated})
    except ValidationError as error:
        return f"column {why(error)}"
