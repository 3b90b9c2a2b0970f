"""Where the lines of a sweep go: to stdout in variant order, or to a file that a later sweep resumes."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from planner.errors import InputError
from planner.sweeping.line import Kept, WrongLine, is_cut, kept
from planner.sweeping.task import SweepTask
from planner.text_io import io_error, real

LONGEST = 64 * 2**20
"""Bytes of a line; what is longer is no line of a sweep."""


UNLOCKABLE = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}
"""What a file system without locks answers: sweeps there are told apart by nobody."""


class Output(Protocol):
    """Takes each line as it is done."""

    def add(self, index: int, line: str) -> None:
        """Take the line of one variant."""


@contextmanager
def in_order(write: Callable[[str], None]) -> Iterator[Output]:
    """Write each line when all before it are written; at the end, however it comes, those that are left."""
    output = _InOrder(write)
    try:
        yield output
    finally:
        output.end()


class _InOrder:
    def __init__(self, write: Callable[[str], None]) -> None:
        self.write, self.next = write, 0
        self.waiting: dict[int, str] = {}

    def add(self, index: int, line: str) -> None:
        self.waiting[index] = line
        while self.next in self.waiting:
            self.next += 1
            self.write(self.waiting.pop(self.next - 1))

    def end(self) -> None:
        for index in sorted(self.waiting):
            self.write(self.waiting.pop(index))


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep other sweeps from writing `path`, also while this one replaces it. Raises InputError where one does so now.

    The lock is on the file itself and ends with this process, however that ends. A file made for it that nothing was
    written to is removed.
    """
    path = real(path)  # a link stays one
    if path.exists() and not path.is_file():
        raise InputError("not a file", file=str(path))
    made = not path.exists()
    try:
        file = _locked(path)
    except BlockingIOError:
        raise InputError("another sweep is writing it: wait for that one, or name another file for -o",
                         file=str(path)) from None
    except OSError as error:
        raise io_error(error, path, "cannot be written") from None
    with file:
        try:
            yield
        finally:
            if made and _is(path, file) and not path.stat().st_size:
                path.unlink()


def _locked(path: Path) -> BinaryIO:
    """Open `path`, made where it is missing, and lock it. Raises BlockingIOError where another process has it."""
    while True:
        file = path.open("ab")
        try:
            _lock(file)
            if _is(path, file):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # another sweep replaced or removed it in between


def _lock(file: BinaryIO) -> None:
    """Lock a file for this process. Raises BlockingIOError where another one has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in UNLOCKABLE:
            raise


def _is(path: Path, file: BinaryIO) -> bool:
    """Say whether `path` is still the file that was opened."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def lines_in(path: Path, tasks: Sequence[SweepTask], digest: str) -> dict[int, Kept]:
    """Return the lines that `path` has already, by variant. Raises InputError where one is of something else."""
    by_variant = {frozenset(task.variant.items()): task for task in tasks}
    by_number: dict[int, Kept] = {}
    for number, text in _texts(real(path)):
        try:
            line = kept(text, by_variant, digest)
        except WrongLine as error:
            raise InputError(f"{error}; the file is left as it is: name another one for -o", file=str(path),
                             line=number) from None
        # a sweep that was cut short has both the line of the time before and its new one behind it
        if line.index not in by_number or not by_number[line.index].finished:
            by_number[line.index] = line
    return by_number


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a file; none where there is no file, and no last one that was cut short."""
    try:
        if not path.exists():
            return
        if not path.is_file():
            raise InputError("not a file", file=str(path))
        with path.open("rb") as file:
            for number, raw in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
                whole = raw.endswith(b"\n")
                # a cut may go through a character
                text = raw.decode(errors="strict" if whole else "ignore").removesuffix("\n")
                if whole or not is_cut(text):
                    yield number, text
    except UnicodeDecodeError:
        raise InputError("not a text file: the bytes are not UTF-8", file=str(path)) from None
    except OSError as error:
        raise io_error(error, path) from None


@contextmanager
def in_file(path: Path, lines: Mapping[int, Kept]) -> Iterator[Output]:
    """Append each line to `path` as it is done; at the end, however it comes, put the file in variant order."""
    path = real(path)  # a link stays one
    output = _InFile(path, {index: line.text for index, line in lines.items()})
    try:
        yield output
    finally:
        output.end()


class _InFile:
    def __init__(self, path: Path, lines: dict[int, str]) -> None:
        self.path, self.lines = path, lines
        self.file: BinaryIO = self._written()

    def add(self, index: int, line: str) -> None:
        self.lines[index] = line
        with self._named():
            self.file.write(f"{line}\n".encode())
            self.file.flush()

    def end(self) -> None:
        with self._named():
            self.file.flush()
        with self.file:  # locked until its place is taken
            self._written().close()

    def _written(self) -> BinaryIO:
        """Replace the file by one that has its lines in order, at once; return that, open for more."""
        beside = self.path.with_name(f".{self.path.name}.new")
        with self._named():
            file = beside.open("wb")
            _lock(file)  # before others can see it under its name
            file.writelines(f"{self.lines[index]}\n".encode() for index in sorted(self.lines))
            file.flush()
            if self.path.exists():
                shutil.copymode(self.path, beside)
            os.replace(beside, self.path)
        return file

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise io_error(error, self.path, "cannot be written") from None
