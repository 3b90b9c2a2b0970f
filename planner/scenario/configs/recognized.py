"""Which kind of config a file is, by its content; of a line that starts a file beside it, which that is."""

from __future__ import annotations

import pkgutil
from contextlib import suppress
from dataclasses import replace
from importlib import import_module

from planner.errors import InputError
from planner.scenario.configs import readers
from planner.scenario.configs.reading import Reader
from planner.scenario.configs.shell import DEEPEST
from planner.scenario.configs.source import FILES, Source, beside, source_of

MODEL = "model_type"
"""A key that the config.json of every model of Hugging Face has."""
MODULE = "module"
"""The flag by which a line names a script as a module."""
FIRST = 6
"""Keys that are named of a config that is not known."""


def all_readers() -> list[Reader]:
    """Return every reader, by the name of its module."""
    names = sorted(module.name for module in pkgutil.iter_modules(readers.__path__))
    known = [import_module(f"{readers.__name__}.{name}").READER for name in names]
    return [reader for reader in known if isinstance(reader, Reader)]


def started(source: Source, depth: int = 0) -> tuple[Reader, Source, Source | None]:
    """Return the reader of a config; of a line that starts a file beside it that of the file, and the line.

    What the line says as `key=value` holds over the file. Raises InputError where no kind is known.
    """
    known = all_readers()
    if source.form in ("command", "python") and depth < DEEPEST and not any(reader.tells(source) for reader in known):
        words = list(source.every_word())
        if isinstance(module := source.keys.get(MODULE), str):
            words.append(f"{module.replace('.', '/')}.py")
        for word in words:
            path = beside(source, word) if word.endswith(FILES) else None
            if path is None or str(path) == source.file:
                continue
            with suppress(InputError):  # a script that prepares, a file of data
                return _inside(source_of(str(path)), words, source, depth)
    return _reader(source, known), source, None


def _inside(inner: Source, words: list[str], line: Source, depth: int) -> tuple[Reader, Source, Source | None]:
    """Return the same of a file that a line starts. Raises InputError where its kind is not known."""
    said: dict[str, object] = {}
    said |= {key: value for key, _, value in (part.partition("=") for part in words) if key in inner.keys}
    said |= {key: line.keys[flag] for key in inner.keys if (flag := line.named(key)) in line.keys}
    reader, found, launcher = started(replace(inner, keys={**inner.keys, **said}), depth + 1)
    return reader, found, launcher or line


def _reader(source: Source, known: list[Reader]) -> Reader:
    telling = [reader for reader in known if reader.tells(source)]
    if not telling and MODEL in source.keys:
        raise InputError("the config.json of a model, which says no work: --model takes it, beside what is to be done",
                         file=source.file)
    if len(telling) != 1:
        kinds = ", ".join(reader.name for reader in telling or known)
        keys = [key for key in source.keys if key][:FIRST]
        raise InputError(f"{'could be' if telling else 'none of'} {kinds}" + (
            "" if telling else f"; it has {', '.join(keys) or 'no keys'}: say by flags what it asks, such as --model, "
            "--per-device-batch, --seq-len"), file=source.file)
    return telling[0]
