"""Read an evidence CSV: the kind by its header, every cell by its column's type.

Anything that is not clean UTF-8 CSV with one of the four headers is an InputError with file, line and column.
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
from planner.evidence.rows import KINDS, Evidence, Kind, Row
from planner.text_io import read_text

Parser: TypeAlias = Callable[[str], Any]
MAX_BYTES = 256 * 2**20
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
    rows = tuple(_row(kind, parsers, dict(zip(names, cells, strict=True)), line, str(path))
                 for line, cells in lines if _width(cells, names, line, path))
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


def _width(cells: list[str], names: list[str], line: int, path: Path) -> bool:
    if len(cells) != len(names):
        raise InputError(f"{len(cells)} cells where the header has {len(names)}", file=str(path), line=line)
    return True


def _row(kind: Kind, parsers: Mapping[str, Parser], cells: Mapping[str, str], line: int, file: str) -> Row:
    values: dict[str, Any] = {}
    for column, parse in parsers.items():
        text = cells.get(column, "").strip()
        try:
            values[column] = parse(text) if text else None
        except ValueError as error:
            raise InputError(f"column {column}: {error}", file=file, line=line) from None
    identifier = cells["id"].strip()
    if not identifier:
        raise InputError("column id: required, but empty", file=file, line=line)
    run, measured = ({f.name: values[f.name] for f in fields(t)} for t in (kind.run, kind.measured))
    return Row(identifier, line, bool(values["suspect"]), bool(values["stated"]), kind.run(**run),
               kind.measured(**measured))


def _parser(annotation: Any) -> Parser:  # noqa: ANN401
    """Return what reads a cell of a column with this annotation."""
    types = {annotation, *get_args(annotation)}
    zero = any(get_origin(t) is Annotated for t in types)
    types |= {inner for t in types if get_origin(t) is Annotated for inner in get_args(t)}
    if str in types:
        return str
    return _truth if bool in types else partial(_number, whole=int in types, zero=zero)


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError(f"expected yes or no, got {text!r}")
    return _TRUTH[text.lower()]


def _number(text: str, *, whole: bool, zero: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"expected a number, got {text!r}") from None
    if not math.isfinite(value) or "_" in text:
        raise ValueError(f"expected a finite number, got {text!r}")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"expected a number {'of zero or more' if zero else 'above zero'}, got {text!r}")
    if whole and value != int(value):
        raise ValueError(f"expected a whole number, got {text!r}")
    return int(value) if whole else value
