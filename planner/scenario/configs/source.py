"""The text of a config as keys with values: YAML, JSON and TOML by dotted path, command lines by flag."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from planner.errors import InputError
from planner.scenario.configs.containers import Carried, carried_in
from planner.scenario.configs.script import script_of
from planner.scenario.configs.shell import DEEPEST, HELD, NOTHING, Beside, Words, ran
from planner.text_io import MAX_BYTES, read_text
from planner.yaml_io.foreign import foreign

_TEMPLATED = re.compile(
    r"^[ \t]{0,40}\{\{-?[ \t]{0,9}(?:if|else|end|with|range|define|include)\b[^{}\n]{0,200}\}\}[ \t]{0,40}$"
    r"|\"?\{\{[^{}\n]{0,200}\}\}\"?", re.MULTILINE)
"""What a template of Helm or Jinja fills in."""
_REFERENCE = re.compile(r"\$\{(\.{0,8}[A-Za-z_][\w.]{0,200})\}", re.ASCII)
_DEFAULTED = re.compile(r"\$\{(?:[A-Za-z_]\w{0,99}:-|oc\.env:[ ]?\w{1,99},[ ]?)([^{}$]{0,200})\}", re.ASCII)
FILES = (".yaml", ".yml", ".json", ".toml", ".py", ".sh")
"""Of configs and scripts that a line starts."""
ASIDE = frozenset({
    "mkdir", "rm", "cp", "mv", "ln", "cd", "ls", "cat", "echo", "printf", "set", "unset", "export", "ulimit", "chmod",
    "chown", "touch", "sleep", "wait", "kill", "pkill", "trap", "tee", "find", "grep", "sed", "awk", "tar", "unzip",
    "pip", "pip3", "uv", "apt", "apt-get", "conda", "git", "curl", "wget", "huggingface-cli", "hf", "nvidia-smi",
    "ray start", "ray stop", "ray status", ":", "source", "module",
    "scontrol", "read", "mapfile", "test", "[", "[[", "if", "elif", "for", "while",
    "ssh"})
"""Commands of a script that prepare or watch what it starts."""
_DOCUMENTS = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """A config: where it is, and its keys. Of a command line also the words before its flags, of a script its calls."""

    file: str
    form: str
    """yaml, json, toml, python or command."""
    keys: Mapping[str, object]
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that a script sets before its line, of those that count GPUs."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Files that a script writes before its line, by their last name."""
    carried: Carried | None = None
    """What the manifest around a line says of it."""
    local: bool = False
    """Whether it is its user's own, who may have files beside it read; not where others than the machine's owner ask.
    """
    raw: Mapping[str, object] = field(default_factory=dict)
    """The keys as the file has them: what stands for another key does so once all files are laid over each other."""

    def named(self, key: str) -> str:
        """Return a key as the config has it: flags are known with dashes, however they are written."""
        if self.form == "python":
            return key.replace("-", "_")
        return key.replace("_", "-") if self.form == "command" else key

    def every_word(self) -> Iterator[str]:
        """Yield words and values: a script may stand behind the value of a launcher's flag."""
        yield from self.words
        for value in self.keys.values():
            yield from map(str, value if isinstance(value, list) else [value])

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
        return replace(_command(given, "the command line", _scripts("")), local=True)
    return replace(text_source(read_text(path, MAX_BYTES), given, _scripts(given)), local=True)


def _scripts(file: str) -> Beside:
    """Return what reads the scripts beside a file of the user's own."""

    def text(named: str) -> str | None:
        path = _beside(file, named)
        if path is None or str(path) == file:
            return None
        with suppress(InputError):
            return read_text(path, MAX_BYTES)
        return None

    return text


def beside(source: Source, named: str) -> Path | None:
    """Return the file that a config names: as it is named, or by the config, there also by its last name alone."""
    return _beside(source.file, named) if source.local else None


def beside_of(source: Source, named: str) -> Source:
    """Return the file that a config means: one that it writes, or beside it. Raises InputError where there is none."""
    if (found := known_beside(source, named)) is None:
        raise InputError(f"the file {named} is not there, and what is trained stands in it", file=source.file)
    return found


def known_beside(source: Source, named: str) -> Source | None:
    """Return the same, or none."""
    if (text := source.written.get(Path(named).name)) is not None:
        return text_source(text, Path(named).name)
    return None if (path := beside(source, named)) is None else source_of(str(path))


def _beside(file: str, named: str) -> Path | None:
    folder = Path(file).parent
    try:
        return next((path for path in (Path(named), folder / named, folder / Path(named).name) if path.is_file()), None)
    except (OSError, ValueError):
        return None


def text_source(text: str, given: str, scripts: Beside = NOTHING) -> Source:
    """Return the config that text is, of a file that is called `given`. Raises InputError where it is none."""
    for form, parser in (("json", _json), ("toml", _toml), ("yaml", _yaml)):
        data = parser(text, given)
        if data is not None and (carried := carried_in(data)) is not None:
            with suppress(InputError):
                line = _command(carried.line, given, scripts)
                # a worker that a config starts (python -m areal.infra.rpc) says nothing of what is asked
                if line.keys.keys() - {"m"} or "serve" in line.words or any(
                        word.endswith(FILES[:4]) for word in line.words):
                    return replace(line, carried=carried)
        if data is not None:
            keys = dict(flat(data))
            return Source(given, form, interpolated(keys), raw=keys)
    if (script := script_of(text)) is not None:
        return Source(given, "python", script.keys, tuple(script.words))
    return _command(text, given, scripts)


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
        return next((data for data in read if carried_in(data) is not None), read[0] if len(read) == 1 else None)
    try:
        whole = foreign(_TEMPLATED.sub("$template", text), file)
    except InputError:
        if Path(file).suffix in (".yaml", ".yml"):
            raise
        return None
    # a script of one "key: value" line is a mapping too
    return whole if isinstance(whole, dict) and not any(" --" in str(key) for key in whole) else None


def flat(data: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value by its dotted path; an empty table and a list are values."""
    for key, value in data.items() if isinstance(data, Mapping) else ():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def interpolated(keys: dict[str, object]) -> dict[str, object]:
    """Return keys with values that stand for those of other keys (`${model.name}`), or have a default, put in.

    A dot before a name is the table that the key stands in, each further dot the one around it.
    """

    def value(key: str, given: object, depth: int = 0) -> object:
        if not isinstance(given, str) or "${" not in given or depth > DEEPEST:
            return given
        if (whole := _REFERENCE.fullmatch(given)) and (other := _meant(whole.group(1), key)) in keys:
            return value(other, keys[other], depth + 1)
        text = _DEFAULTED.sub(lambda m: m.group(1), given)
        return _REFERENCE.sub(lambda m: str(keys.get(_meant(m.group(1), key), m.group(0))), text)

    return {key: value(key, given) for key, given in keys.items()}


def _meant(name: str, key: str) -> str:
    """Return the key that a name means where it stands under a key."""
    bare = name.lstrip(".")
    up = len(name) - len(bare)
    around = key.split(".")[:-up] if up else []
    return ".".join([*around, bare])


def _says(command: Words) -> bool:
    return bool(command.flags) or "serve" in command.words or any(word.endswith(FILES) for word in command.words)


def _told_by(command: Words) -> tuple[int, int, int]:
    """Return what makes a command that which a script is there for: the one with most flags that starts something."""
    lead = [word for word in command.words if "=" not in word][:2]
    aside = "help" in command.flags or {*lead[:1], " ".join(lead)} & ASIDE or not _says(command)
    rank = 0 if aside else 1 if lead[:1] == [HELD] else 2
    return rank, len(command.flags), len(command.words)


def _command(text: str, file: str, scripts: Beside) -> Source:
    """Return the command with most flags, and under them those that stand in arrays and variables."""
    lines, written = ran(text, scripts, file)
    most = max(lines, key=_told_by, default=None)
    if most is None or not _says(most):
        raise InputError("neither YAML, JSON or TOML with keys, nor a command with flags", file=file)
    flags: dict[str, object] = {}
    for held in (command for command in lines if command.words[:1] == [HELD]):
        flags |= held.flags
    return Source(file, "command", flags | most.flags, tuple(most.words), most.environment, written)
