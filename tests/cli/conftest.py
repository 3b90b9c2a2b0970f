"""Run the command line in-process, and see what a shell would see."""

import time
from dataclasses import dataclass

import pytest

from planner.cli.main import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str
    seconds: float  # of CPU, which another process on the machine does not lengthen


@pytest.fixture
def planner(capsys, monkeypatch):
    """Return a function that runs `planner ARGS` and gives exit code, stdout and stderr."""
    monkeypatch.delenv("PLANNER_CATALOGS", raising=False)
    monkeypatch.setenv("COLUMNS", "110")

    def run(*args) -> Ran:
        capsys.readouterr()
        began = time.process_time()
        code = main([str(arg) for arg in args])
        seconds = time.process_time() - began
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err, seconds)

    return run
