"""Traces as people publish and log them: CSV with a row a request, and Mooncake's JSON lines, told by content.

Azure: TIMESTAMP, ContextTokens, GeneratedTokens (github.com/Azure/AzurePublicDataset). BurstGPT: Timestamp in seconds,
Request tokens, Response tokens (github.com/HPMLL/BurstGPT). A gateway's own log: prompt_tokens, completion_tokens, as
in the usage of the OpenAI API, or input_tokens, output_tokens. Mooncake: timestamp in
milliseconds, input_length, output_length, hash_ids, one hash for 512 tokens (github.com/kvcache-ai/Mooncake).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from planner.errors import InputError
from planner.layouts.table import Floats, Ints
from planner.simulate.trace import MOST_TOKENS, Trace
from planner.text_io import read_text, visible

MOST_BYTES = 2**30
AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
ALSO = (("time", "arrival", "arrivaltime", "arrivedat", "@timestamp", "ts", "created", "createdat", "starttime",
         "requesttime", "startedat", "datetime", "date"),
        ("requesttokens", "prompttokens", "inputtokens", "inputlength", "inputlen", "promptlen", "promptlength",
         "numprompttokens", "tokensin"),
        ("responsetokens", "completiontokens", "outputtokens", "outputlength", "outputlen", "responselength",
         "generationtokens", "numgeneratedtokens", "numgenerationtokens", "numcompletiontokens", "tokensout"))
"""Other names of these columns, in lower case and without blanks and underscores."""
MOONCAKE = ("timestamp", "input_length", "output_length")
# within these years moments in nanoseconds neither wrap nor lie further apart than 64 bits count
_TIME = re.compile(r"((?:19|20)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:Z|\+00:00)?", re.ASCII)
_MILLISECONDS = 1e11
"""Above which a moment since 1970 is none in seconds: these would be of the year 5138."""
_SECONDS = re.compile(r"\d{1,13}(?:\.\d{1,9})?", re.ASCII)
_TOKENS = re.compile(r"\d{1,9}", re.ASCII)
_EXPECTED = f"a whole number of tokens, 1 to {MOST_TOKENS:,}"
_MOMENT = "a moment like 2023-11-16 18:15:46.6805900, or seconds in every row"


def read_trace(path: Path) -> Trace:
    """Return the requests of a trace file. Raises InputError with file, line, column, value and what was expected."""
    text = read_text(path, MOST_BYTES)
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise InputError(f"the file is empty: expected {_formats()}", file=str(path))
    return _reads(first, str(path))(lines, str(path))


def _reads(first: str, file: str) -> Callable[[list[str], str], Trace]:
    """Return what reads a trace, by its first line."""
    if not first.lstrip().startswith("{"):
        return _azure
    row = _object(first, file, 1)
    known = all(_columns(list(dict(_leaves(row)))))
    return _logged if known and not all(name in row for name in MOONCAKE) else _mooncake


def check_head(path: Path) -> None:
    """Raise InputError where the first lines of a file are not those of a trace of requests."""
    lines = [line for line in read_text(path, MOST_BYTES).splitlines() if line.strip()][:2]
    if not lines:
        raise InputError("the file is empty", file=str(path))
    _reads(lines[0], str(path))(lines, str(path))


def _formats() -> str:
    return (f"CSV with columns {', '.join(AZURE)} (or time, prompt_tokens, completion_tokens), or "
            f"JSON lines with {', '.join(MOONCAKE)} and hash_ids")


def _azure(lines: list[str], file: str, ahead: int = 0) -> Trace:
    """Return the requests of CSV; ahead: lines that are not in the file."""
    try:
        rows = list(csv.reader(lines))
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", file=file) from None
    start = next(i for i, row in enumerate(rows) if row)
    header = [name.strip() for name in rows[start]]
    named = _columns(header)
    missing = next((name for name, column in zip(AZURE, named, strict=True) if column is None), None)
    if missing is not None:
        raise InputError(f"no column {missing!r} in {visible(','.join(header))[:120]!r}: expected {_formats()}",
                         file=file, line=start + 1)
    time, *lengths = (column or "" for column in named)
    filled = [i for i in range(start + 1, len(rows)) if rows[i]]
    numbers, body = [i + 1 - ahead for i in filled], [rows[i] for i in filled]
    if not body:
        raise InputError("the trace holds no request below its header", file=file)
    for number, row in zip(numbers, body, strict=True):
        if len(row) != len(header):
            raise InputError(f"{len(row)} values in a row of {len(header)} columns", file=file, line=number)
    columns = dict(zip(header, zip(*body, strict=True), strict=True))
    moments = _moments(time, columns[time], numbers, file)
    prompts, answers = (_counts(name, columns[name], numbers, file) for name in lengths)
    _check_order(time, moments, columns[time], numbers, file)
    return Trace(moments - moments[0], prompts, answers)


def _columns(header: Sequence[str]) -> list[str | None]:
    """Return the columns of the moment, the prompt and the answer; none for what no column is."""
    return [_column(names, header) for names in zip(AZURE, ALSO, strict=True)]


def _logged(lines: list[str], file: str) -> Trace:
    """Return the requests of a log of JSON lines, where blocks may hold counts: {"usage": {"prompt_tokens": 9}}."""
    written, header = [""] * (len(lines) + 1), list[str]()
    for number, line in enumerate(lines, 1):
        if line.strip():
            row = dict(_leaves(_object(line, file, number)))
            header = header or [column or "" for column in _columns(list(row))]
            missing = next((name for name in header if name not in row), None)
            if missing is not None:
                raise InputError(f"no {missing!r}: expected {_formats()}", file=file, line=number)
            written[number] = ",".join(visible(str(row[name])).replace(",", ";") for name in header)
    return _azure([",".join(header), *written[1:]], file, ahead=1)


def _leaves(row: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the values of an object and of the blocks in it by their own names."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield name, value


def _column(names: tuple[str, Sequence[str]], header: Sequence[str]) -> str | None:
    """Return which column is meant by a name or another that means the same; none where none is."""
    published, others = names
    if published in header:
        return published
    alike = {name.lower().replace(" ", "").replace("_", ""): name for name in reversed(header)}
    return next((alike[name] for name in (published.lower(), *others) if name in alike), None)


def _moments(column: str, texts: Sequence[str], numbers: Sequence[int], file: str) -> Floats:
    """Return seconds since the first midnight of the trace, from moments as text, or from seconds."""
    if all(_SECONDS.fullmatch(text.strip()) for text in texts):
        moments = np.array(texts, np.float64)
        return moments / 1e3 if moments[0] > _MILLISECONDS else moments
    matches = [_TIME.fullmatch(text.strip()) for text in texts]
    try:
        moments = np.array([match[1] for match in matches if match], "datetime64[ns]")
    except ValueError:  # a 13th month
        moments = np.array([], "datetime64[ns]")
    if len(moments) == len(texts):
        seconds: Floats = (moments - moments[0].astype("datetime64[D]")).astype(np.int64) / 1e9
        return seconds
    at = next(i for i, match in enumerate(matches) if match is None or not _is_date(match[1]))
    raise _wrong(column, texts[at], _MOMENT, file, numbers[at])


def _is_date(text: str) -> bool:
    try:
        np.datetime64(text)
    except ValueError:
        return False
    return True


def _counts(column: str, texts: Sequence[str], numbers: Sequence[int], file: str) -> Ints:
    for number, text in zip(numbers, texts, strict=True):
        if not _TOKENS.fullmatch(text.strip()) or not 1 <= int(text) <= MOST_TOKENS:
            raise _wrong(column, text, _EXPECTED, file, number)
    return np.array(texts).astype(np.int64)


def _mooncake(lines: list[str], file: str) -> Trace:
    rows, numbers, prefixes = [], [], []
    for number, line in enumerate(lines, 1):
        if line.strip():
            row = _object(line, file, number)
            rows.append([_number(row, name, file, number) for name in MOONCAKE])
            prefixes.append(_hashes(row, file, number))
            numbers.append(number)
    moments = np.array([row[0] for row in rows], np.float64) / 1e3
    _check_order(MOONCAKE[0], moments, [row[0] for row in rows], numbers, file)
    table = np.array([row[1:] for row in rows]).astype(np.int64)
    hashed = tuple(prefixes) if any(prefixes) else None
    return Trace(moments - moments[0], table[:, 0].copy(), table[:, 1].copy(), hashed)


def _object(line: str, file: str, number: int) -> dict[str, object]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=file, line=number) from None
    if not isinstance(row, dict):
        raise InputError(f"not a JSON object: {visible(line)[:60]}", file=file, line=number)
    return row


def _number(row: dict[str, object], column: str, file: str, number: int) -> float:
    if column not in row:
        raise InputError(f"no {column!r}: expected {_formats()}", file=file, line=number)
    value, time = row[column], column == MOONCAKE[0]
    if time and isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15:
        return value
    if not time and isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TOKENS:
        return value
    raise _wrong(column, value, "milliseconds, 0 or above" if time else _EXPECTED, file, number)


def _hashes(row: dict[str, object], file: str, number: int) -> tuple[int, ...]:
    hashes = row.get("hash_ids", [])
    if not isinstance(hashes, list) or not all(type(value) is int for value in hashes):
        raise _wrong("hash_ids", hashes, "a list of whole numbers, one for each 512 tokens", file, number)
    return tuple(hashes)


def _check_order(column: str, moments: Floats, texts: Iterable[object], numbers: Sequence[int], file: str) -> None:
    falls = np.flatnonzero(np.diff(moments) < 0)
    if len(falls):
        at = int(falls[0]) + 1
        raise _wrong(column, list(texts)[at], "requests in the order of arrival, and this one is before the last", file,
                     numbers[at])


def _wrong(column: str, value: object, expected: str, file: str, line: int) -> InputError:
    shown = repr(value)
    return InputError(f"column {column}: {shown if len(shown) <= 80 else shown[:77] + '...'}, expected {expected}",
                      file=file, line=line)
