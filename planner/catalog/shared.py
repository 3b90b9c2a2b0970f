"""Catalogs that open the same files share what was read of them: a process that answers often opens one each time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

Key = tuple[tuple[Path, ...], Path | None]
"""Folders, and the one whose fitted constants are left out."""
Files = frozenset[tuple[str, int, int, int, int]]
"""Of every file its path, inode, size and times."""
State = tuple[Files, ...]
"""The files of each folder."""
Seen = tuple[Files, int]
"""The files of one folder, and when the last of them changed, in ns."""
SETTLED = 2.0
"""Seconds after which a file that changes has other times than before, on every file system."""
MOMENT = 1.0
"""Seconds for which what was seen of the shipped folder holds: looking takes longer than many a question."""
MOST = 8
_LAST: dict[Key, tuple[State | None, object]] = {}
_LOOKED: dict[Path, tuple[float, Seen]] = {}


def share(catalog: object, key: Key) -> None:
    """Give a catalog what the last one of the same folders has read, and will read, if no file has changed since.

    The first of a process has nobody to share with, and looks at no file. Relative paths depend on the working folder.
    """
    if not all(path.is_absolute() for path in (*key[0], key[1]) if path is not None):
        return
    state = _state(key[0]) if key in _LAST else None
    before, other = _LAST.pop(key, (None, None))
    if state is not None and state == before:
        vars(catalog).update(vars(other))
    _LAST[key] = state, catalog
    if len(_LAST) > MOST:
        del _LAST[next(iter(_LAST))]


def _state(roots: Sequence[Path]) -> State | None:
    """Return what tells whether a file has changed; none where one is so new that it may change without a trace."""
    shipped, *own = roots
    seen = [_shipped(shipped), *map(_seen, own)]
    latest = max(latest for _, latest in seen)
    return tuple(files for files, _ in seen) if latest < time.time_ns() - SETTLED * 1e9 else None


def _shipped(root: Path) -> Seen:
    """Return what was seen of the shipped folder, whose files are many and rest, within the last moments."""
    now = time.monotonic()
    at, seen = _LOOKED.get(root, (-math.inf, None))
    if seen is None or now - at > MOMENT:
        _LOOKED[root] = at, seen = now, _seen(root)
    return seen


def _seen(root: Path) -> Seen:
    """Return the files of a folder's folders as they are, and when the last changed, in ns."""
    found, latest = set(), 0
    for folder in _folders(root):
        for path, seen in _files(folder):
            found.add((path, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns))
            latest = max(latest, seen.st_mtime_ns, seen.st_ctime_ns)
    return frozenset(found), latest


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # a link to nowhere
                yield entry.path, entry.stat()


def _folders(root: Path) -> list[str]:
    with suppress(OSError), os.scandir(root) as entries:
        return [entry.path for entry in entries if entry.is_dir()]
    return []
