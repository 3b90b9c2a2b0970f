"""Read an evidence CSV: the kind by its header, each row as that kind's model.

A file that is not clean UTF-8 CSV with one of the known headers is an InputError with file and line. A row that does
not read is no reason to judge none: it is kept, with what is wrong with it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from planner.errors import InputError, UnknownName
from planner.evidence.kinds import KINDS, AnyRow, EvidenceFile, named
from planner.evidence.outputs import output_rows
from planner.evidence.rates import RateRun
from planner.evidence.rl_logs import KIND, learned_rows
from planner.evidence.rows import ServeRun
from planner.evidence.run_logs import Ran, run_rows
from planner.evidence.skipping import why
from planner.evidence.unmeasured import PLAIN, unmeasured
from planner.text_io import read_text

MAX_BYTES = 256 * 2**20
MAX_CELL = 10_000
"""Characters of a cell."""


def read_evidence(path: Path, stated: Mapping[str, str] | None = None, started: Ran | None = None) -> EvidenceFile:
    """Return the rows of an evidence file, or of another tool's output. Raises InputError.

    stated: columns that such an output leaves open, by name. started: what a log of training is of.
    """
    text = read_text(path, MAX_BYTES)
    learned = learned_rows(text, path)
    ran = run_rows(text, path, started) if learned is None else None
    output = (KIND, learned) if learned is not None else ("train_throughput", ran) if ran is not None else _output(
        text, path, _columns(stated or {}))
    if output is not None:
        return _evidence(output[0], ((cells["id"], f"run {number}", _of_cells(output[0], cells))
                                     for number, cells in enumerate(output[1], 1)))
    if stated:
        raise InputError("--run is for what other tools write; a CSV states its runs in columns", file=str(path))
    lines = _cells(text, path)
    header = next(lines, None)
    if header is None:
        raise InputError("the file is empty: expected a header line", file=str(path))
    names = [name.strip() for name in header[1]]
    kind = _kind(names, path)
    return _evidence(kind, ((_identifier(names, cells) or f"line {line}", f"line {line}", _row(kind, names, cells))
                            for line, cells in lines))


def _output(text: str, path: Path, stated: Mapping[str, str]) -> tuple[str, list[dict[str, str]]] | None:
    """Return the rows of another tool's output; of a log that measures nothing, say what does."""
    try:
        found = output_rows(text, path, stated)
    except InputError as error:
        raise InputError(unmeasured(text) or error.problem, file=str(path), line=error.line) from None
    if found is None and (why := unmeasured(text)) is not None:
        raise InputError(why, file=str(path))
    return found


def _identifier(names: Sequence[str], cells: Sequence[str]) -> str:
    identifier = next((cell.strip() for name, cell in zip(names, cells, strict=False) if name == "id"), "")
    return identifier[:MAX_CELL]


def _evidence(kind: str, given: Iterable[tuple[str, str, AnyRow | str]]) -> EvidenceFile:
    """Return rows by identifier and place; of those that are none, what is wrong with them."""
    rows, unread = list[AnyRow](), list[tuple[str, str]]()
    for identifier, place, row in given:
        if isinstance(row, str):
            unread.append((identifier, f"{place}: {row}"))
        else:
            rows.append(row)
    return EvidenceFile(kind, tuple(rows), tuple(unread))


def _columns(stated: Mapping[str, str]) -> Mapping[str, str]:
    known = {*ServeRun.model_fields, *RateRun.model_fields}
    for name in stated:
        if name not in known:
            raise UnknownName("column for --run", name, known)
    return stated


def _cells(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of every line that is not blank."""
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
    if len(names) < 2:
        raise InputError(PLAIN, file=str(path))
    expected = "; ".join(f"{kind} ({', '.join(sorted(signature))}, ...)" for kind, (_, signature) in KINDS.items())
    raise InputError(f"the header is not that of an evidence file: expected {expected}", file=str(path), line=1)


def _row(kind: str, names: Sequence[str], cells: Sequence[str]) -> AnyRow | str:
    """Return a row, or what is wrong with it."""
    if len(cells) != len(names):
        return f"{len(cells)} cells where the header has {len(names)}"
    for name, cell in zip(names, cells, strict=True):
        if len(cell) > MAX_CELL:
            return f"column {name}: a cell of {len(cell):,} characters, more than {MAX_CELL:,}"
    stated = {name: text for name, cell in zip(names, cells, strict=True) if (text := cell.strip())}
    return _of_cells(kind, named(kind, stated))


def _of_cells(kind: str, stated: Mapping[str, str]) -> AnyRow | str:
    try:
        return KINDS[kind][0].model_validate({**stated, "run": stated, "measured": stated})
    except ValidationError as error:
        return f"column {why(error)}"
