"""Which kind of config a file is, by its content; of a line that starts a file beside it, which that is."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from importlib import import_module

from planner.errors import InputError
from planner.scenario.configs import readers
from planner.scenario.configs.reading import Reader
from planner.scenario.configs.source import FILES, Source, beside, source_of

FIRST = 6
"""Keys that are named of a config that is not known."""


def all_readers() -> list[Reader]:
    """Return every reader, by the name of its module."""
    names = sorted(module.name for module in pkgutil.iter_modules(readers.__path__))
    known = [import_module(f"{readers.__name__}.{name}").READER for name in names]
    return [reader for reader in known if isinstance(reader, Reader)]


def started(source: Source) -> tuple[Reader, Source, Source | None]:
    """Return the reader of a config; of a line that starts a file beside it that of the file, and the line.

    What the line says as `key=value` holds over the file. Raises InputError where no kind is known.
    """
    known = all_readers()
    if source.form == "command" and not any(reader.tells(source) for reader in known):
        words = list(source.every_word())
        for word in words:
            path = beside(source, word) if word.endswith(FILES) else None
            if path is None or str(path) == source.file:
                continue
            inner = source_of(str(path))
            said: dict[str, object] = {}
            said |= {key: value for key, _, value in (part.partition("=") for part in words) if key in inner.keys}
            said |= {key: source.keys[flag] for key in inner.keys if (flag := source.named(key)) in source.keys}
            inner = replace(inner, keys={**inner.keys, **said})
            if inner.form != "command" and any(reader.tells(inner) for reader in known):
                return _reader(inner, known), inner, source
    return _reader(source, known), source, None


def _reader(source: Source, known: list[Reader]) -> Reader:
    telling = [reader for reader in known if reader.tells(source)]
    if len(telling) != 1:
        kinds = ", ".join(reader.name for reader in telling or known)
        keys = [key for key in source.keys if key][:FIRST]
        raise InputError(f"{'could be' if telling else 'none of'} {kinds}" + (
            "" if telling else f"; it has {', '.join(keys) or 'no keys'}: say by flags what it asks, such as --model, "
            "--per-device-batch, --seq-len"), file=source.file)
    return telling[0]
