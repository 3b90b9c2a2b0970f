"""Plain data with a value put in, or a key renamed, at a path."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any


def put(data: object, path: Sequence[Hashable], value: object) -> object:
    """Return `data` with `value` at `path`; what is no mapping stays, for validation to refuse."""
    if not path:
        return value
    if isinstance(data, list):
        return [put(item, path[1:], value) if at == path[0] else item for at, item in enumerate(data)]
    if data is not None and not isinstance(data, dict):
        return data
    inner = data or {}
    return {**inner, path[0]: put(inner.get(path[0]), path[1:], value)}


def renamed(data: Any, at: Sequence[Hashable], key: str, name: str) -> Any:  # noqa: ANN401 - as a file has it
    """Return `data` with a key of the block at a path under another name."""
    if at:
        rest = renamed(data[at[0]], at[1:], key, name)
        return {**data, at[0]: rest} if isinstance(data, dict) else [
            rest if place == at[0] else each for place, each in enumerate(data)]
    return {(name if inner == key else inner): value for inner, value in data.items()}
