"""What a user's catalog folder may hold: what would be passed over in silence is refused, with what was meant."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection
from pathlib import Path

from planner.errors import InputError, did_you_mean
from planner.text_io import io_error

NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
YAML = (".yaml", ".yml")


def checked(folder: Path, kinds: Collection[str]) -> Path:
    """Return a folder of which every YAML file will be read for an entry of one of `kinds`.

    Raises InputError for folders and files that no entry is read from: misspelled, unreadable, at another depth.
    """
    try:
        if not folder.is_dir():
            raise InputError("no such catalog folder", file=str(folder))
        inside = _visible(folder)
        for path in inside:
            if path.name in kinds:
                _check_kind(path)
            elif path.is_dir() and (yaml := [inner.name for inner in _visible(path) if _is_yaml(inner)]):
                raise InputError(f"no kind of catalog entry is called {path.name!r}, so that {yaml[0]} would not be "
                                 f"read{did_you_mean(path.name, kinds)}", file=str(path))
    except OSError as error:
        raise io_error(error, Path(error.filename or folder)) from None
    if inside and not any(path.name in kinds for path in inside):
        raise InputError(f"no catalog folder: it has none of {', '.join(sorted(kinds))}{_above(folder, kinds)}",
                         file=str(folder))
    return folder


def holds_entries(folder: Path, kinds: Collection[str]) -> bool:
    """Say whether a folder is there that has entries of one of `kinds`."""
    return any((folder / kind).is_dir() for kind in kinds)


def _check_kind(path: Path) -> None:
    """Refuse what the folder of one kind holds and is not read."""
    for inner in _visible(path):
        if inner.is_dir() and inner.suffix != ".yaml":
            if yaml := [file.name for file in _visible(inner) if _is_yaml(file)]:
                raise InputError(f"{yaml[0]} would not be read: it belongs into {path}", file=str(inner))
        elif _is_yaml(inner):
            if inner.suffix != ".yaml":
                raise InputError(f"would not be read; did you mean {inner.stem}.yaml?", file=str(inner))
            if not NAME.fullmatch(inner.stem):
                raise InputError("expected the name of an entry: small letters, digits, '.', '_' and '-'",
                                 file=str(inner))
            inner.stat()  # a link that leads nowhere
            if not os.access(inner, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(inner))


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _is_yaml(path: Path) -> bool:
    return path.suffix.lower() in YAML


def _above(folder: Path, kinds: Collection[str]) -> str:
    """Return what was meant where the folder of one kind is named instead of the one that it is in."""
    return f"; did you mean {folder.parent}?" if folder.name in kinds else ""
