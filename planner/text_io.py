"""Files, read and written: UTF-8, of a bounded size, whole or not at all, with errors that name the file."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.errors import InputError, IOFailure, PlannerError

MAX_BYTES = 4 * 2**20
WRONG_PATH = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM,
              errno.EEXIST, errno.EINVAL, errno.EROFS, errno.ENOTEMPTY, errno.ENXIO, errno.EXDEV}
"""Errors of which the path is the cause; of all others the system is."""
_UNSEEN = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""What JSON allows in text, and what steers a terminal, turns its direction, or cannot be encoded."""


def visible(text: str) -> str:
    """Return text on one line, with what is no visible character escaped."""
    return text if text.isprintable() else "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def json_text(data: object, *, indent: int | None = None) -> str:
    """Return data as JSON that any terminal may be shown and any file may hold. Raises ValueError for NaN."""
    text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def io_error(error: OSError | ValueError, path: Path, doing: str = "cannot read") -> PlannerError:
    """Return what to raise where the system failed at a file: InputError where its path is the cause."""
    problem = f"{doing}: {getattr(error, 'strerror', None) or error}"
    if not isinstance(error, OSError) or error.errno in WRONG_PATH:
        return InputError(problem, file=str(path))
    return IOFailure(f"{path}: {problem}")


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file of at most `most`. Raises InputError, IOFailure."""
    try:
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise io_error(error, path) from None
    if len(raw) > most:
        raise InputError(f"file is larger than {most >> 20} MiB", file=str(path))
    return raw


def read_text(path: Path, most: int = MAX_BYTES) -> str:
    """Return the text of a UTF-8 file of at most `most` bytes. Raises InputError, IOFailure."""
    return decoded(read_bytes(path, most), str(path))


def decoded(raw: bytes, file: str) -> str:
    """Return UTF-8 bytes as text; `file` is their name in messages. Raises InputError."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("not a text file: the bytes are not UTF-8", file=file,
                         line=raw[:error.start].count(b"\n") + 1) from None


def real(path: Path) -> Path:
    """Return a path with its links followed. Raises InputError where they lead round in a circle, or it is too long."""
    try:
        resolved = path.resolve()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            resolved.stat()
    except RuntimeError:  # how pathlib says that links lead round in a circle
        raise io_error(OSError(errno.ELOOP, os.strerror(errno.ELOOP)), path) from None
    except (OSError, ValueError) as error:
        raise io_error(error, path) from None
    return resolved


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file: whole, or not at all. Raises InputError, IOFailure."""
    with _writing(path):
        if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
            path.write_bytes(_encoded(text))
            return
        target = real(path)  # a link stays one
        with _staged({target: text}) as staged:
            os.replace(staged[target], target)


def write_folder(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write UTF-8 files into a folder, with those above it, and return their paths. Raises InputError, IOFailure.

    A new folder appears with all of them at once; in one that is there, each is replaced, in order, when all are
    written.
    """
    with _writing(folder):
        target = real(folder)
        if target.is_dir():
            with _staged({target / name: text for name, text in files.items()}) as staged:
                for path, beside in staged.items():
                    os.replace(beside, path)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            new = _beside(target)
            try:
                new.mkdir()
                for name, text in files.items():
                    _put(new / name, text)
                os.rename(new, target)
            finally:
                shutil.rmtree(new, ignore_errors=True)
    return [folder / name for name in files]


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise io_error(error, path, "cannot be written") from None


@contextlib.contextmanager
def _staged(files: Mapping[Path, str]) -> Iterator[dict[Path, Path]]:
    """Write each text beside the file that it shall replace; what is not moved there by then is removed."""
    staged = {path: _beside(path) for path in files}
    try:
        for path, text in files.items():
            if path.exists():
                if not os.access(path, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                _put(staged[path], text)
                shutil.copymode(path, staged[path])
            else:
                _put(staged[path], text)
        yield staged
    finally:
        for beside in staged.values():
            beside.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """Return a hidden name in the same folder that is no catalog entry, of any length of the other."""
    return path.with_name(f".planner-{secrets.token_hex(6)}.new")


def _put(path: Path, text: str) -> None:
    with path.open("xb") as file:
        file.write(_encoded(text))
        file.flush()
        os.fsync(file.fileno())


def _encoded(text: str) -> bytes:
    """Return UTF-8; half a character, as names of files may have, is escaped."""
    return text.encode("utf-8", "backslashreplace")

