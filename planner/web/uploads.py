"""Files that people upload: kept by their content, named in a question by name and content, never by a path."""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import sha256

from planner.catalog.load import data_root
from planner.errors import InputError, IOFailure, PlannerError
from planner.text_io import decoded, write_text
from planner.web.limits import MOST_FILE, MOST_FILES
from planner.web.places import files_folder

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"
_REFERENCE = re.compile(rf"({_NAME})@([0-9a-f]{{32}})", re.ASCII)
_UNLIKE = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
TEXTS = "a file is UTF-8 text here: JSON lines, JSON, CSV or YAML; give others on the command line"


def put(name: str, content: bytes) -> str:
    """Keep a file and return what a question calls it: `NAME@CONTENT`.

    Raises InputError for what is no text, IOFailure where nothing can be kept.
    """
    if len(content) > MOST_FILE:
        raise InputError(f"a file has at most {MOST_FILE >> 20} MiB: use the command line for it")
    try:
        text = decoded(content, name)
    except PlannerError:
        raise InputError(TEXTS) from None
    called = _UNLIKE.sub("-", name.replace("\\", "/").rpartition("/")[2]).lstrip("-._")[-80:] or "file"
    if called.lower().endswith((".parquet", ".pq")):
        raise InputError(TEXTS)
    digest = sha256(content).hexdigest()[:32]
    at = files_folder() / digest
    try:
        at.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_text(at / called, text)
    except (OSError, PlannerError):  # where that is is nobody's business
        raise IOFailure("the file cannot be kept: the disk of the server is full, or it may not write there") from None
    _tidy()
    return f"{called}@{digest}"


def is_named(value: object) -> bool:
    """Say whether a value names an upload, or a trace that comes with the planner: all that a question may name."""
    return isinstance(value, str) and (_REFERENCE.fullmatch(value) is not None or value in _shipped())


def by_own_names(text: str) -> str:
    """Return the text of a scenario file with its uploads called as their files are: for the command line."""
    return _REFERENCE.sub(lambda found: found[1], text)


def path_of(key: str, value: str) -> str:
    """Return the file that a value names. Raises InputError where it was not uploaded here."""
    found = _REFERENCE.fullmatch(value)
    if found is None:
        return str(data_root("scenarios") / value)
    name, digest = found.groups()
    path = files_folder() / digest / name
    if not path.is_file():
        raise InputError(f"{key}: the file {name} was uploaded to another server, or is gone here: upload it again",
                         key=key)
    return str(path)


def _shipped() -> set[str]:
    root = data_root("scenarios")
    return {path.relative_to(root).as_posix() for path in (root / "traces").glob("*.csv")}


def _tidy() -> None:
    """Keep the newest files."""
    with suppress(OSError):
        kept = sorted(files_folder().iterdir(), key=lambda one: one.stat().st_mtime_ns)
        for old in kept[:-MOST_FILES]:
            for file in old.iterdir():
                file.unlink(missing_ok=True)
            old.rmdir()
