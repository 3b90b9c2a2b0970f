"""Broken data: random structures, and real ones with keys deleted, doubled, retyped, or with other units."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

UNITS = ("GB", "GiB", "G", "GB/s", "Gbit/s", "Gb/s", "TFLOP/s", "d", "h", "us", "weeks", "USD", "kUSD", "USD/h", "W",
         "MW", "T", "tokens", "sequences", "%", "")
QUANTITY = re.compile(r"([\d.]+)( ?)([A-Za-z/%]+)")
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**19), st.floats(allow_nan=True),
    st.sampled_from(["", " ", "60 d", "15 T", "-1 d", "nan d", "inf USD", "1e400 W", "2 kUSD", "80 GB", "80G", "0 W",
                     "1e-300 s", "9" * 400, "llama-3.1-8b", "any", "dgx-h100", "8xh100", "0xh100", "bf16", "on-demand",
                     "64 sequences +- 2%", "60 d at 90%", "9 d at 100%", "²", "\u202e", "💥", "a\nb", "null", "{"]),
    st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace").decode()))
VALUES = st.recursive(SCALARS, lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3)), max_leaves=6)


def structures(keys: Sequence[str]) -> st.SearchStrategy[Any]:
    """Nested data that mostly uses `keys`."""
    names = st.one_of(st.sampled_from(keys), st.text(max_size=5))
    return st.recursive(SCALARS, lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=6)), max_leaves=20)


def paths(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside `data`."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from paths(value, (*at, key))


def _parent(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        data = data[key]
    return data


def _other_unit(value: Any, unit: str) -> Any:
    return QUANTITY.sub(rf"\g<1> {unit}", value, count=1) if isinstance(value, str) else f"{value} {unit}"


@st.composite
def mutated(draw: st.DrawFn, data: Any, *, most: int = 3) -> Any:
    """`data` with one to `most` values deleted, replaced, wrapped, renamed, scaled or given another unit."""
    data = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, most))):
        known = list(paths(data))
        if not known:
            break
        path = draw(st.sampled_from(known))
        parent, key = _parent(data, path), path[-1]
        match draw(st.sampled_from(["delete", "replace", "wrap", "rename", "unit", "scale", "repeat"])):
            case "delete":
                del parent[key]
            case "replace":
                parent[key] = draw(VALUES)
            case "wrap":
                parent[key] = draw(st.sampled_from([[parent[key]], {"x": parent[key]}, [parent[key]] * 3]))
            case "rename" if isinstance(parent, dict):
                parent[draw(st.text(max_size=5))] = parent.pop(key)
            case "scale" if isinstance(parent[key], int | float):
                parent[key] = parent[key] * draw(st.sampled_from([-1, 0, 3, 1000, 10**12, 0.1]))
            case "repeat" if isinstance(parent, list):
                parent.append(parent[key])
            case _:
                parent[key] = _other_unit(parent[key], draw(st.sampled_from(UNITS)))
    return data


@st.composite
def garbled(draw: st.DrawFn, text: str) -> str:
    """`text` with lines doubled, dropped, moved or reindented, and characters put in or taken out."""
    for _ in range(draw(st.integers(1, 3))):
        lines = text.split("\n")
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["double", "drop", "indent", "dedent", "insert", "cut", "end"])):
            case "double":
                lines.insert(at, lines[at])
            case "drop":
                del lines[at]
            case "indent":
                lines[at] = draw(st.sampled_from([" ", "\t", "  - "])) + lines[at]
            case "dedent":
                lines[at] = lines[at].lstrip()
            case "insert":
                column = draw(st.integers(0, len(lines[at])))
                what = draw(st.sampled_from([*":'\"[}#%|?\x00\ufeff", "&a ", "*a", "!!x "]))
                lines[at] = lines[at][:column] + what + lines[at][column:]
            case "cut":
                lines[at] = lines[at][:draw(st.integers(0, len(lines[at])))]
            case "end":
                lines = lines[:at + 1]
        text = "\n".join(lines)
    return text
