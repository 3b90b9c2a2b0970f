"""YAML of other programs: with anchors, merged blocks, and tags that are passed over."""

from __future__ import annotations

from typing import Any

import yaml

from planner.errors import InputError
from planner.yaml_io import MAX_DEPTH, MAX_VALUES, Builder, line_of, problem, scalar


def foreign(text: str, file: str) -> object:
    """Return the data of a YAML document of another program, which may repeat parts by anchors and has its own tags.

    Raises InputError, as `parse` does, and where what is repeated would be more than a file may hold.
    """
    try:
        return _written_out(_Foreign(file).build(text).data, [MAX_VALUES], file)
    except yaml.YAMLError as error:
        raise InputError(f"YAML syntax: {problem(error)}", file=file, line=line_of(error, text)) from None


def _written_out(data: object, left: list[int], file: str, depth: int = 0) -> object:
    """Return data with repeated parts written out, and `<<` merged under a block's own keys."""
    left[0] -= 1
    if left[0] < 0 or depth > MAX_DEPTH * 2:
        raise InputError(f"anchors repeat more than {MAX_VALUES:,} values", file=file)
    if isinstance(data, list):
        return [_written_out(value, left, file, depth + 1) for value in data]
    if not isinstance(data, dict):
        return data
    merged = {key: _written_out(value, left, file, depth + 1) for key, value in data.items()}
    under = merged.pop("<<", None)
    for block in reversed(under if isinstance(under, list) else [under]):
        merged = {**block, **merged} if isinstance(block, dict) else merged
    return merged


class _Foreign(Builder):
    """Reads what other programs write: anchors, and tags, which are passed over."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.anchors: dict[str, Any] = {}

    def _node(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, yaml.AliasEvent):
            name = str(event.anchor)
            if name not in self.anchors:
                self._refuse(f"alias *{name} has no anchor", event)
            self._place(self.anchors[name], event)
            return
        anchor, event.anchor = event.anchor, None
        if getattr(event, "tag", None):
            event.tag = None  # type: ignore[attr-defined]
        if isinstance(event, yaml.ScalarEvent):
            value: Any = scalar(event.value) if event.implicit[0] else event.value
            self._place(value, event)
        else:
            super()._node(event)
            value = self.stack[-1][0]
        if anchor is not None:
            self.anchors[anchor] = value
