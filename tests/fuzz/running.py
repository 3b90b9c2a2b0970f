"""Run the command line on anything, and hold what must always hold: an answer or one clear line, never a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, settings

from planner.cli.main import main

ANSWERED = {0, 3, 4}
REFUSED = {2, 74}
LONGEST = 60
"""Seconds of a command, of this process alone."""
MOST_MEMORY = 2 * 2**20
"""KiB of this process, with all commands before."""
TIMES = int(os.environ.get("PLANNER_FUZZ", "1"))
"""How many times as many examples to try, then at random: `PLANNER_FUZZ=20 pytest tests/fuzz`."""


def fuzzing(examples: int) -> settings:
    """The settings of every fuzz test: the same examples each time, unless more are asked for."""
    return settings(max_examples=examples * TIMES, derandomize=TIMES == 1, deadline=None, database=None,
                    suppress_health_check=list(HealthCheck))


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """An empty folder for one example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def run(*argv: str | Path) -> tuple[int, str]:
    """Run `planner ARGV`; return exit code and stdout. Fails on a bug, a traceback, or an error of several lines."""
    code, out, _ = told(*argv)
    return code, out


def told(*argv: str | Path) -> tuple[int, str, str]:
    """Run `planner ARGV` as `run` does; return stderr too. Fails where it takes too long, or too much memory.

    A warning of a library is an error here, and so ends in exit code 70.
    """
    out, err, began = io.StringIO(), io.StringIO(), time.process_time()
    os.environ.pop("PLANNER_CATALOGS", None)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(arg) for arg in argv])
    said = err.getvalue()
    assert time.process_time() - began < LONGEST, argv
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < MOST_MEMORY, argv
    assert "Traceback" not in said, said
    assert "RuntimeWarning" not in said, said
    assert code in ANSWERED | REFUSED, f"exit {code} of {argv}: {said}"
    lines = [line for line in said.splitlines() if not line.startswith("warning: ")]
    if code in REFUSED:
        assert out.getvalue() == ""
        assert lines[-1].startswith("Error: "), said
        # click prints the usage before the error
        assert len(lines) == 1 or lines[0].startswith("Usage: "), said
        assert len(lines[-1]) < 2000
    else:
        assert lines == [], said
    return code, out.getvalue(), said
