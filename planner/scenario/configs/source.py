"""The text of a config as keys with values: YAML, JSON and TOML by dotted path, command lines by flag."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.errors import InputError
from planner.scenario.configs.containers import command_in
from planner.scenario.configs.shell import HELD, commands
from planner.text_io import MAX_BYTES, read_text
from planner.yaml_io import parse

_DOCUMENTS = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """A config: where it is, and its keys. Of a command line also the words before its flags."""

    file: str
    form: str
    """yaml, json, toml or command."""
    keys: Mapping[str, object]
    words: tuple[str, ...] = ()

    def named(self, key: str) -> str:
        """Return a key as the config has it: flags are known with dashes, however they are written."""
        return key.replace("_", "-") if self.form == "command" else key

    def has(self, *keys: str) -> bool:
        """Say whether all of these keys, or tables of them, are there."""
        keys = tuple(map(self.named, keys))
        return all(any(stated == key or stated.startswith(f"{key}.") for stated in self.keys) for key in keys)


def source_of(given: str) -> Source:
    """Return the config that a path or a command line itself is. Raises InputError where it is neither."""
    path = Path(given)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):
        is_file = False
    if not is_file:
        if len(given.split()) < 2:
            raise InputError("cannot read: no such file", file=given)
        return _command(given, "the command line")
    return text_source(read_text(path, MAX_BYTES), given)


def text_source(text: str, given: str) -> Source:
    """Return the config that text is, of a file that is called `given`. Raises InputError where it is none."""
    for form, parser in (("json", _json), ("toml", _toml), ("yaml", _yaml)):
        data = parser(text, given)
        if data is not None and (line := command_in(data)) is not None:
            return _command(line, given)
        if data is not None:
            return Source(given, form, dict(_flat(data, "")))
    return _command(text, given)


def _json(text: str, file: str) -> Mapping[str, object] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=file) from None
    return data if isinstance(data, dict) else None


def _toml(text: str, file: str) -> Mapping[str, object] | None:
    try:
        return tomllib.loads(text) or None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if Path(file).suffix == ".toml":
            raise InputError(f"not TOML: {error}", file=file) from None
        return None


def _yaml(text: str, file: str) -> Mapping[str, object] | None:
    if len(several := _DOCUMENTS.split(text)) > 1:
        # of the objects of a manifest the one that starts an engine
        read = [data for part in several if part.strip() and (data := _yaml(part, file)) is not None]
        return next((data for data in read if command_in(data) is not None), read[0] if len(read) == 1 else None)
    try:
        data = parse(text, file).data
    except InputError:
        if Path(file).suffix in (".yaml", ".yml"):
            raise
        return None
    # a script of one "key: value" line is a mapping too
    return data if isinstance(data, dict) and not any(" --" in str(key) for key in data) else None


def _flat(data: object, prefix: str) -> Iterator[tuple[str, object]]:
    """Yield every value by its dotted path; an empty table and a list are values."""
    for key, value in data.items() if isinstance(data, Mapping) else ():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _command(text: str, file: str) -> Source:
    """Return the command with most flags, and under them those that stand in arrays and variables."""
    lines = commands(text)
    most = max(lines, key=lambda command: (len(command.flags), len(command.words)), default=None)
    if most is None or not (most.flags or "serve" in most.words):
        raise InputError("neither YAML, JSON or TOML with keys, nor a command with flags", file=file)
    flags: dict[str, object] = {}
    for held in (command for command in lines if command.words[:1] == [HELD]):
        flags |= held.flags
    return Source(file, "command", flags | most.flags, tuple(most.words))
