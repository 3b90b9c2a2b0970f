"""A YAML text that says something else, with its comments and all that stays as they were written."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import yaml

from planner.errors import InputError
from planner.yaml_io import Dumper, dump, parse


def rewritten(text: str, data: object) -> str:
    """Return data as YAML: the text with as little changed as it can be where that has comments, else anew."""
    if "#" not in text:
        return dump(data)
    try:
        old = parse(text, "").data
        made = _Rewriting(text).made(old, data)
        return made if _plain(parse(made, "").data) == _plain(data) else dump(data)
    except (InputError, yaml.YAMLError, _Anew):
        return dump(data)


class _Anew(Exception):
    """A change that cannot be made in the place where it stands."""


class _Rewriting:
    """Changes of a text, each from one character to another, found by going through what it says and should say."""

    def __init__(self, text: str) -> None:
        self.text = text if text.endswith("\n") else text + "\n"
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.changes: list[tuple[int, int, str]] = []

    def made(self, old: object, new: object) -> str:
        """Return the text that says `new` instead of `old`. Raises _Anew."""
        self._change(yaml.compose(self.text, Loader=yaml.SafeLoader), old, new)
        made = self.text
        for start, end, text in sorted(self.changes, key=lambda one: one[:2], reverse=True):
            made = made[:start] + text + made[end:]
        return made

    def _change(self, node: Any, old: Any, new: Any) -> None:  # noqa: ANN401 - a node of the parser, plain data
        if _plain(old) == _plain(new):
            return
        if isinstance(old, dict) and isinstance(new, dict) and (not node.flow_style or old.keys() == new.keys()):
            self._mapping(node, old, new)
        elif isinstance(old, list) and isinstance(new, list) and (not node.flow_style or len(old) == len(new)):
            self._list(node, old, new)
        elif isinstance(node, yaml.CollectionNode) and not node.flow_style:
            raise _Anew
        else:
            self.changes.append((node.start_mark.index, node.end_mark.index, _in_line(new)))

    def _mapping(self, node: Any, old: dict[Any, Any], new: dict[Any, Any]) -> None:  # noqa: ANN401
        entries = list(zip(node.value, old.items(), strict=True))
        if not any(key in new for key in old):
            raise _Anew
        for (name, value), (key, said) in entries:
            if key in new:
                self._change(value, said, new[key])
            else:
                self._remove(name, value)
        added = {key: value for key, value in new.items() if key not in old}
        if added:
            self._insert(_last(node), node.value[0][0].start_mark.column, dump(added))

    def _list(self, node: Any, old: list[Any], new: list[Any]) -> None:  # noqa: ANN401
        first = _alike(old, new)
        last = _alike(old[first:][::-1], new[first:][::-1])
        was, now = old[first:len(old) - last], new[first:len(new) - last]
        if len(was) == len(now) or node.flow_style:
            for one, before, after in zip(node.value[first:], was, now, strict=False):
                self._change(one, before, after)
            return
        for one in node.value[first:first + len(was)]:
            self._remove(one, one)
        if now:
            if first + len(was) == 0:
                raise _Anew
            self._insert(_last(node.value[first + len(was) - 1]), node.start_mark.column, dump(now))

    def _remove(self, first: Any, last: Any) -> None:  # noqa: ANN401
        """Take the lines of a key with its value, or of an entry, out."""
        start, end = self.starts[first.start_mark.line], self.starts[_last(last) + 1]
        before = self.text[start:first.start_mark.index]
        if before.strip(" -") or (first is not last and "-" in before):
            raise _Anew
        self.changes.append((start, end, ""))

    def _insert(self, line: int, column: int, text: str) -> None:
        """Put lines behind a line, and behind comments below it that stand further in."""
        line += 1
        while self._line(line).startswith(" " * (column + 1)) and self._line(line).lstrip(" ").startswith("#"):
            line += 1
        at = self.starts[line]
        self.changes.append((at, at, "".join(" " * column + one for one in text.splitlines(keepends=True))))

    def _line(self, line: int) -> str:
        return self.text[self.starts[line]:self.starts[line + 1]] if line + 1 < len(self.starts) else ""


def _last(node: Any) -> int:  # noqa: ANN401
    """Return the last line of a node: what the parser says of a block goes on to what follows it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    mark = node.end_mark
    return int(mark.line if mark.column or mark.line == node.start_mark.line else mark.line - 1)


def _alike(one: list[Any], other: list[Any]) -> int:
    """Return how many entries are the same before the first that is not."""
    return sum(1 for _ in takewhile(lambda pair: _plain(pair[0]) == _plain(pair[1]), zip(one, other, strict=False)))


def _plain(data: object) -> object:
    """Return data with every value as text: `5` and `'5'` ask the same."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    return [_plain(value) for value in data] if isinstance(data, list) else str(data)


def _in_line(data: object) -> str:
    text = str(yaml.dump([data], Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10**6,
                         default_flow_style=True)).strip()
    if "\n" in text:
        raise _Anew
    return text[1:-1]
