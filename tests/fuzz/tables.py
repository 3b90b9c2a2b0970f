"""Broken tables: rows of CSV with cells, columns and lines changed, and the text of any file damaged."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from hypothesis import strategies as st

Table = Sequence[Sequence[str]]
CELLS = st.one_of(
    st.sampled_from(["", " ", "0", "-1", "1", "1.5", "7", "nan", "inf", "-inf", "1e308", "1e-308", "9" * 30, "9" * 400,
                     "1e18", "1_000", "0x10", "yes", "True", "None", "[]", "{}", "{'Gpus': [{}]}", "a\nb",
                     "\x1b[31mred\x1b[0m", "\x9b2J", "\u202eevil", "💥", "\x00", "\ufeff", '"', "'", ",", "²",
                     "x" * 5000, "fp8", "int4", "q8_0", "H100", "h100-sxm", "mi300x", "llama-3.1-8b", "gpt2",
                     "2023-13-01 00:00:00", "2023-11-16 18:15:46.6805900"]),
    st.floats(allow_nan=False).map(str), st.integers(0, 10**7).map(str), st.text(max_size=6))


FACTORS = (0, -1, 0.5, 2, 3, 7, 64, 1000, 1e6, 1e12, 1e100, 1e300, 1e-6, 1e-300)


def _is_number(cell: str) -> bool:
    try:
        return bool(float(cell))
    except ValueError:
        return False


def text_of(rows: Table) -> str:
    """The rows as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


@st.composite
def mutated_table(draw: st.DrawFn, rows: Table) -> str:  # noqa: C901, PLR0912 - one case a kind of change
    """`rows`, of which the first is the header, with one to four changes."""
    table = [list(row) for row in rows]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(table) - 1))
        column = draw(st.integers(0, len(table[0]) - 1))
        match draw(st.sampled_from(["cell", "number", "number", "number", "other", "other", "column", "header", "swap",
                                    "short", "twice", "order", "empty"])):
            case "cell":
                at = max(at, min(1, len(table) - 1))
                table[at][column:column + 1] = [draw(CELLS)]
            case "number":
                known = [(i, j) for i, row in enumerate(table) for j, cell in enumerate(row) if _is_number(cell)]
                if known:
                    i, j = draw(st.sampled_from(known))
                    table[i][j] = f"{float(table[i][j]) * draw(st.sampled_from(FACTORS)):.17g}"
            case "other":
                if column < min(map(len, table)):
                    table[at][column] = draw(st.sampled_from([row[column] for row in table[1:] or table]))
            case "column":
                value = draw(CELLS)
                table = [table[0], *([*row[:column], value, *row[column + 1:]] for row in table[1:])]
            case "header":
                table[0][column:column + 1] = [draw(st.one_of(CELLS, st.sampled_from(list(rows[0]))))]
            case "swap":
                other = draw(st.integers(0, len(table[0]) - 1))
                for row in table:
                    if max(column, other) < len(row):
                        row[column], row[other] = row[other], row[column]
            case "short":
                table[at] = table[at][:column] or [""]
            case "twice":
                table.insert(at, list(table[at]))
            case "order":
                table[1:] = reversed(table[1:])
            case "empty":
                table[at:] = [[""] * len(table[0])] if at else table[:1]
    return text_of(table)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """The bytes of `text` cut, doubled, in another encoding, or with a few replaced."""
    raw = text.encode("utf-8", "surrogatepass")
    at = draw(st.integers(0, max(0, len(raw) - 1)))
    if draw(st.integers(0, 2)):
        return raw
    return draw(st.sampled_from([
        raw[:at], raw[:at] + draw(st.binary(max_size=4)) + raw[at + 2:], text.encode("utf-16", "surrogatepass"),
        raw + raw, b"\xef\xbb\xbf" + raw, raw.replace(b"\n", b"\r\n")]))
