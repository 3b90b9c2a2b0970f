"""Read an evidence CSV: the kind by its header, every cell by its column's type.

Anything that is not clean UTF-8 CSV with one of the four headers is an InputError with file and line. A row that cannot
be read is kept with what is wrong with it, line and column, and is skipped with that for a reason.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args, get_origin

from planner.errors import InputError
from planner.evidence.rows import KINDS, MOST, Evidence, Kind, Most, Row, Zero
from planner.text_io import read_text

Parser: TypeAlias = Callable[[str], Any]
MAX_BYTES = 256 * 2**20
MAX_CELL = 10_000
"""Characters of a cell."""
LEAST = 1e-9
"""Below any number above zero, in the unit of its column."""
_TRUTH = {"yes": True, "no": False, "1": True, "0": False, "true": True, "false": False}


def read_evidence(path: Path) -> Evidence:
    """Return the rows of an evidence file. Raises InputError."""
    lines = _cells(path)
    header = next(lines, None)
    if header is None:
        raise InputError("the file is empty: expected a header line", file=str(path))
    names = [name.strip() for name in header[1]]
    kind = _kind(names, path)
    parsers: dict[str, Parser] = {"suspect": _truth, "stated": _truth}
    parsers.update((column, _parser(annotation)) for column, annotation in kind.columns().items())
    rows = tuple(_row(kind, parsers, names, cells, line) for line, cells in lines)
    return Evidence(kind.name, rows)


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


def _kind(names: list[str], path: Path) -> Kind:
    twice = next((n for n in names if n and names.count(n) > 1), None)
    if twice is not None:
        raise InputError(f"column {twice!r} occurs twice in the header", file=str(path), line=1)
    for kind in KINDS:
        if kind.signature <= set(names):
            return kind
    expected = "; ".join(f"{k.name} ({', '.join(sorted(k.signature))}, ...)" for k in KINDS)
    raise InputError(f"the header is of no evidence file: expected {expected}", file=str(path), line=1)


def _row(kind: Kind, parsers: Mapping[str, Parser], names: list[str], cells: list[str], line: int) -> Row:
    """Return a row; where anything in it cannot be read, what that is."""
    by_name = dict(zip(names, cells, strict=False))
    identifier = by_name.get("id", "").strip()[:MAX_CELL]
    try:
        values = _values(parsers, names, cells)
    except ValueError as error:
        return Row(identifier or f"line {line}", line, False, False, kind.run(), kind.measured(),
                   f"line {line}: {error}")
    run, measured = ({f.name: values[f.name] for f in fields(t)} for t in (kind.run, kind.measured))
    return Row(identifier, line, bool(values["suspect"]), bool(values["stated"]), kind.run(**run),
               kind.measured(**measured))


def _values(parsers: Mapping[str, Parser], names: list[str], cells: list[str]) -> dict[str, Any]:
    """Return what is read of every column. Raises ValueError with the column."""
    if len(cells) != len(names):
        raise ValueError(f"{len(cells)} cells where the header has {len(names)}")
    by_name, values = dict(zip(names, cells, strict=True)), {}
    for column, text in by_name.items():
        if len(text) > MAX_CELL:
            raise ValueError(f"column {column}: a cell of {len(text):,} characters, more than {MAX_CELL:,}")
    if not by_name["id"].strip():
        raise ValueError("column id: required, but empty")
    for column, parse in parsers.items():
        text = by_name.get(column, "").strip()
        try:
            values[column] = parse(text) if text else None
        except ValueError as error:
            raise ValueError(f"column {column}: {error}") from None
    return values


def _parser(annotation: Any) -> Parser:  # noqa: ANN401
    """Return what reads a cell of a column with this annotation."""
    types = {annotation, *get_args(annotation)}
    marks = [mark for t in types if get_origin(t) is Annotated for mark in get_args(t)]
    types |= {mark for mark in marks if isinstance(mark, type)}
    if str in types:
        return str
    most = next((mark.value for mark in marks if isinstance(mark, Most)), MOST)
    return _truth if bool in types else partial(_number, whole=int in types, zero=Zero in marks, most=most)


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError(f"expected yes or no, got {text[:40]!r}")
    return _TRUTH[text.lower()]


def _number(text: str, *, whole: bool, zero: bool, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"expected a number, got {text[:40]!r}") from None
    if not math.isfinite(value) or "_" in text:
        raise ValueError(f"expected a finite number, got {text[:40]!r}")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"expected a number {'of zero or more' if zero else 'above zero'}, got {text[:40]!r}")
    if value > most or 0 < value < LEAST:
        raise ValueError(f"expected a number from {LEAST:g} to {most:,.0f}, got {text[:40]!r}")
    if whole and value != int(value):
        raise ValueError(f"expected a whole number, got {text[:40]!r}")
    return int(value) if whole else value
