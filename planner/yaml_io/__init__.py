"""The only YAML of the project: safe, C-fast, strict; and validation that names file, line and key.

Plain scalars are null, true/false, integers, floats or text (YAML 1.2 core, so `no` and `1:30` stay text).
Anchors, aliases, tags, duplicate keys, several documents, deep nesting and large files are refused.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from planner.errors import InputError, did_you_mean
from planner.text_io import decoded, read_text

MAX_DEPTH, MAX_VALUES, MAX_MESSAGE = 30, 100_000, 400
_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None,
                                  "true": True, "True": True, "TRUE": True,
                                  "false": False, "False": False, "FALSE": False}
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = {"expected keys and values below it": ("model_type", "model_attributes_type", "dict_type"),
          "expected a list": ("tuple_type", "list_type"),
          "expected a whole number": ("int_type", "int_parsing", "int_from_float", "int_parsing_size"),
          "expected a finite number": ("float_type", "float_parsing", "finite_number"),
          "expected true or false": ("bool_type", "bool_parsing"),
          "expected text": ("string_type",), "expected entries, or no such key": ("too_short",)}
_EXPECTED = {kind: text for text, kinds in _PLAIN.items() for kind in kinds}
M = TypeVar("M", bound=BaseModel)
Path_ = tuple[Hashable, ...]


def absent(value: object) -> bool:
    """Say whether a field holds nothing: `exclude_if=absent` leaves its key out."""
    return value is None


def empty(value: object) -> bool:
    """Say whether a list has nothing in it: `exclude_if=empty` leaves its key out."""
    return not value


class Frozen(BaseModel):
    """Base of everything read from or written to a file: immutable, unknown keys and `true` for 1 refused.

    The text under a field is its description in the JSON Schema, which `planner schema` reads from the source:
    pydantic's use_attribute_docstrings would read it at every start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True,
                              protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: object) -> object:
        if isinstance(data, dict):
            known = _keys(cls)
            for key, value in data.items():
                if key not in known:
                    raise PydanticCustomError("unknown_key", "unknown key {key}{hint}", {"key": _short(key), "hint": (
                        did_you_mean(str(key), (name for name in known if not name.endswith("_")))), "name": key})
                if isinstance(value, bool) and not known[key]:
                    raise PydanticCustomError("not_bool", "true or false is not a value here", {"name": key})
        return data


@cache
def _keys(model: type[BaseModel]) -> dict[str, bool]:
    """Return the keys that a model knows, by name and alias, and whether each may be true or false."""
    return {key: bool in (field.annotation, *get_args(field.annotation))
            for name, field in model.model_fields.items() for key in (name, field.alias) if key}


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed YAML: plain data, the file's name, and the line on which each path starts.

    `labels` are the names (flags) of values that did not come from the file.
    """

    data: Any
    file: str
    lines: dict[Path_, int]
    labels: Mapping[Path_, str] = field(default_factory=dict)

    def line(self, path: Iterable[Hashable]) -> int | None:
        """Return the line of `path`, skipping parts that are not in the file."""
        at: Path_ = ()
        for part in path:
            if (*at, part) in self.lines:
                at = (*at, part)
        return self.lines.get(at)

    def error(self, path: Iterable[Hashable], problem: str, below: tuple[str, ...] = ()) -> InputError:
        """Return the error that names the value at `path`: by its label, else by file, line and key (with `below`)."""
        at, problem = tuple(path), problem if len(problem) <= MAX_MESSAGE else problem[:MAX_MESSAGE] + "..."
        for length in range(len(at), 0, -1):
            if at[:length] in self.labels:
                return InputError(f"{self.labels[at[:length]]}: {problem}", key=_dotted((*at, *below)))
        key = f"{_dotted(at)}: " if at else ""
        return InputError(key + problem, file=self.file or None, line=self.line(at), key=_dotted((*at, *below)) or None)


def read(path: Path) -> Document:
    """Read one YAML file. Raises InputError for anything but one clean, small, UTF-8 document."""
    return parse(read_text(path), str(path))


def parse(raw: bytes | str, file: str) -> Document:
    """Parse one YAML document held in memory; `file` is its name in messages."""
    text = raw if isinstance(raw, str) else decoded(raw, file)
    try:
        return Builder(file).build(text)
    except yaml.YAMLError as error:
        raise InputError(f"YAML syntax: {problem(error)}", file=file, line=line_of(error, text)) from None


def problem(error: yaml.YAMLError) -> str:
    """Say what is wrong with the syntax."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"unacceptable character {error.character!r}"
    problem = " ".join(str(getattr(error, "problem", None) or error).split())
    if "nesting depth" in problem:  # PyYAML 6.0.4's scanner counts too, and may stop before ours does
        return f"nested deeper than {MAX_DEPTH} levels"
    if "cannot start any token" in problem:
        return f"{problem} (put text in quotes; indent with spaces, not tabs)"
    if isinstance(error, yaml.MarkedYAMLError) and error.context_mark:
        return f"{problem}, {error.context} that begins on line {error.context_mark.line + 1}"
    return problem


def line_of(error: yaml.YAMLError, text: str) -> int | None:
    """Return the line that an error is about."""
    if isinstance(error, yaml.reader.ReaderError):
        return text.encode()[:error.position].count(b"\n") + 1
    mark = getattr(error, "problem_mark", None)
    return min(mark.line + 1, len(text.splitlines())) if mark else None


class Builder:
    """Builds plain data from YAML events without recursion, so that no input can exhaust the stack."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path_, int] = {}
        self.root: list[Any] = []
        self.stack: list[tuple[Any, Path_]] = []
        self.key: list[Any] = []

    def build(self, text: str) -> Document:
        """Return the document of a text. Raises InputError, and what the YAML parser raises."""
        documents = values = 0
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.DocumentStartEvent):
                if (documents := documents + 1) > 1:
                    self._refuse("more than one document in the file", event)
            elif isinstance(event, yaml.NodeEvent):
                if (values := values + 1) > MAX_VALUES:
                    self._refuse(f"more than {MAX_VALUES:,} values in the file", event)
                self._node(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self.stack.pop()
                self.key.pop()
        if not self.root or self.root[0] is None:
            raise InputError("the file is empty", file=self.file)
        return Document(self.root[0], self.file, self.lines)

    def _refuse(self, problem: str, event: yaml.Event) -> None:
        raise InputError(problem, file=self.file, line=_starts(event))

    def _node(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            self._refuse("anchors and aliases are not allowed: write the value out", event)
        tag = getattr(event, "tag", None)
        if tag and tag != "!":
            self._refuse(f"tag {tag!r} is not allowed: only plain data", event)
        if isinstance(event, yaml.ScalarEvent):
            value: Any = scalar(event.value) if event.implicit[0] else event.value
            self._place(value, event)
        else:
            if len(self.stack) >= MAX_DEPTH:
                self._refuse(f"nested deeper than {MAX_DEPTH} levels", event)
            value = {} if isinstance(event, yaml.MappingStartEvent) else []
            path = self._place(value, event)
            self.stack.append((value, path))
            self.key.append(None)

    def _place(self, value: object, event: yaml.NodeEvent) -> Path_:
        """Put `value` where the parser stands; return its path."""
        if not self.stack:
            self.root.append(value)
            self.lines[()] = _starts(event)
            return ()
        parent, path = self.stack[-1]
        if isinstance(parent, list):
            parent.append(value)
            at = (*path, len(parent) - 1)
            self.lines[at] = _starts(event)
            return at
        if self.key[-1] is None:
            if not isinstance(value, (str, int)) or isinstance(value, bool):
                self._refuse(f"a key must be text, got {_short(value)}", event)
            if value in parent:
                self._refuse(f"duplicate key {_short(value)}", event)
            self.key[-1] = (value,)
            parent[value] = None
            self.lines[(*path, value)] = _starts(event)
            return (*path, value)
        (key,) = self.key[-1]
        self.key[-1] = None
        parent[key] = value
        return (*path, key)


def _starts(event: yaml.Event) -> int:
    """Return the line on which `event` starts, counted from 1."""
    assert event.start_mark is not None
    return event.start_mark.line + 1


def scalar(text: str) -> str | int | float | bool | None:
    """Return what plain text means."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text) if len(text) <= 40 else text
    return float(text) if _FLOAT.match(text) else text


def validate(document: Document, model: type[M]) -> M:
    """Return `document` as `model`. Raises InputError: key, line, value, what was expected."""
    if not isinstance(document.data, dict):
        raise document.error((), f"expected keys and values at the top level, got {_short(document.data)}")
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise input_error(error, document) from None


def input_error(error: ValidationError, document: Document) -> InputError:
    """Turn a pydantic error into one message with file, line, key, value and what was expected."""
    first = next((e for e in error.errors() if e["type"] == "unknown_key"), error.errors()[0])
    kind, given = first["type"], _short(first["input"])
    loc = [part for i, part in enumerate(first["loc"]) if _in_data(document.data, first["loc"][:i], part)]
    if kind == "missing":
        such = ": a name such as llama-3.1-8b, or a size such as 13b" if first["loc"][-1] == "model" else ""
        return document.error([*loc, first["loc"][-1]], f"required, but missing{such}")
    if kind == "not_bool":
        return document.error([*loc, first["ctx"]["name"]], first["msg"])
    if kind == "unknown_key":
        at = [*loc, first["ctx"]["name"]]
        return InputError(f"{_dotted(loc)}{': ' if loc else ''}{first['msg']}", file=document.file or None,
                          line=document.line(at), key=_dotted(at))
    if kind.startswith("value_error"):
        return document.error(loc, first["msg"].removeprefix("Value error, "), getattr(first["ctx"]["error"], "at", ()))
    expected = _EXPECTED.get(kind) or re.sub(r"^\w+ should (be|have)", "expected", first["msg"]).partition(" after")[0]
    return document.error(loc, f"{expected}, got {given}")


def _in_data(data: object, before: Iterable[Hashable], part: Hashable) -> bool:
    """Say whether `part` is a key of the data and not a name pydantic adds (union tags, validator names)."""
    for step in before:
        try:
            data = data[step]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            continue
    return part in data if isinstance(data, dict) else isinstance(data, list) and isinstance(part, int)


def _dotted(loc: Iterable[Any]) -> str:
    return ".".join(str(part) for part in loc)


def _short(value: object) -> str:
    return text if len(text := "nothing" if value is None else repr(value)) <= 60 else text[:57] + "..."


class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes text that would be read back as something else, such as 1e5."""

    def text(self, value: str) -> yaml.ScalarNode:
        """Return the node of a text."""
        plain = scalar(value) == value and isinstance(scalar(value), str)
        return self.represent_scalar("tag:yaml.org,2002:str", value, None if plain else "'")  # type: ignore[no-any-return]


Dumper.add_representer(str, Dumper.text)


def dump(data: object) -> str:
    """Write plain data as YAML, keys in the order given."""
    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110))
