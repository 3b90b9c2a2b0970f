"""Where all that the terminal is shown goes through: foreign text without control characters, and streams that fail.

Foreign text (names in imported files, values in messages) may hold escape sequences; here they are made visible.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import warnings
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import TextIO

import click

from planner.errors import EXIT_IO, IOFailure, PlannerError, shortened
from planner.text_io import io_error, visible

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
UNWRITTEN = {errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT}
"""Errors of writing to a stream, which bear no name of a file."""
_lost: list[str] = []
"""Why messages did not reach stderr."""


def begin() -> None:
    """Make the three streams usable, whatever the caller closed, and warnings of libraries one line each."""
    _lost.clear()
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # an answer has to arrive: what is written to a closed stdout fails; messages that nobody wants may go
            taken = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if taken != descriptor:
                os.dup2(taken, descriptor)
                os.close(taken)
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _warned


def say(text: str) -> None:
    """Print lines of text on stdout."""
    _print("\n".join(visible(line) for line in text.split("\n")))


def say_json(text: str) -> None:
    """Print JSON of `json_text`, which has escaped what a terminal must not be shown."""
    if not (sys.stdout.encoding or "utf-8").lower().startswith("utf"):
        text = _BEYOND_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], text)
    _print(text)


def say_yaml(text: str) -> None:
    """Print YAML of `dump`, which has escaped what a terminal must not be shown."""
    _print(text, nl=False)


def note(line: str) -> None:
    """Print a message of one line on stderr; one that cannot be printed stops no answer."""
    message(visible(shortened(line)))


def usage(error: click.ClickException) -> int:
    """Print what click says of a wrong command line; return the exit code."""
    shown = StringIO()
    error.show(shown)
    problem = f"Error: {error.format_message()}\n"
    if shown.getvalue().endswith(problem):
        message(shown.getvalue().removesuffix(problem), nl=False)
        note(problem.rstrip("\n"))
    else:
        message(shown.getvalue(), nl=False)
    return error.exit_code


def ended(code: int) -> int:
    """Return the exit code of a process that has ended with `code`, after all that it had to say."""
    return EXIT_IO if _lost and not code else code


def failure(error: OSError) -> PlannerError:
    """Return what to say where the system failed, and nobody has said at what: stdout, a file, or something else."""
    if error.filename is not None:
        return io_error(error, Path(os.fsdecode(error.filename)), "cannot be used")
    if error.errno in UNWRITTEN:  # rich and click write to stdout themselves
        return _unprinted(error)
    return IOFailure(error.strerror or str(error) or type(error).__name__)


def drop(stream: TextIO) -> None:
    """Point a stream at nothing, so that closing it at exit cannot fail again."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        return  # no stream of the system


def _print(text: str, *, nl: bool = True) -> None:
    try:
        click.echo(text, nl=nl)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unprinted(error) from None


def _unprinted(error: OSError) -> IOFailure:
    drop(sys.stdout)
    return IOFailure(f"standard output: cannot be written: {error.strerror or error}")


def message(text: str, *, nl: bool = True) -> None:
    """Print text as it stands on stderr; what cannot be printed stops no answer."""
    try:
        click.echo(text, nl=nl, err=True)
    except OSError as error:
        _lost.append(str(error))
        drop(sys.stderr)


def _warned(message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
            line: str | None = None) -> None:
    """Say what a library warns of; where in which source is nothing to its user."""
    note(f"warning: {category.__name__}: {message}")
