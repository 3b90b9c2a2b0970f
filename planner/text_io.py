"""Text files, read and written: UTF-8, of a bounded size, with errors that name the file."""

from __future__ import annotations

from pathlib import Path

from planner.errors import InputError

MAX_BYTES = 4 * 2**20


def visible(text: str) -> str:
    """Return text on one line, with what is no visible character escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def write_text(path: Path, text: str, *, folders: bool = False) -> None:
    """Write a UTF-8 file, with the folders above it where asked. Raises InputError."""
    try:
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None


def read_text(path: Path, most: int = MAX_BYTES) -> str:
    """Return the text of a UTF-8 file of at most `most` bytes. Raises InputError."""
    try:
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read: {reason}", file=str(path)) from None
    if len(raw) > most:
        raise InputError(f"file is larger than {most >> 20} MiB", file=str(path))
    return decoded(raw, str(path))


def decoded(raw: bytes, file: str) -> str:
    """Return UTF-8 bytes as text; `file` is their name in messages. Raises InputError."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("not a text file: the bytes are not UTF-8", file=file,
                         line=raw[:error.start].count(b"\n") + 1) from None
